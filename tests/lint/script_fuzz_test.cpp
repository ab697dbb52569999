// Mutated scripts: nothing crashes or hangs, every finding lies in the text, and what --fix writes is read again.
#include <algorithm>
#include <array>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>
#include <string>
#include <vector>

#include "hpclaunch/lint.h"
#include "lint/script.h"
#include "support/catch.h"
#include "support/dice.h"

using namespace hpclaunch;

namespace {

std::vector<std::string> scripts() {
  std::vector<std::filesystem::path> files;
  for (const char* folder : {"tests/data/lint", "examples/jobs"})
    for (const auto& one :
         std::filesystem::directory_iterator(std::string(HPCLAUNCH_SOURCE_DIR "/") + folder))
      if (one.is_regular_file()) files.push_back(one.path());
  std::ranges::sort(files);  // folders are listed in any order
  // All that there is in a shell.
  std::vector<std::string> texts = {
      "#!/bin/bash\n#SBATCH -N 2 --time=1:00\nset -e\nmodule load a/1 b\nexport A=${B:-$(c \"d\")} "
      "E=\"f 'g'\" \\\n  H=`i`\n"
      "ARGS=(-n 4 \"$A\")\nrun() { srun \"${ARGS[@]}\" \"$@\"; }\nif [[ $A == 1 ]]; then run x; "
      "elif y; then z; else :; fi\n"
      "case $E in a|b) j ;; *) k;; esac\nfor i in 1 2; do l <<EOF\n$i ${m}\nEOF\ndone\n"
      "mpiexec -n $((4 * 2)) --genv X=1 bash -c 'torchrun a.py' > o 2>&1 &\nwait\n"};
  for (const std::filesystem::path& file : files) {
    std::ifstream in(file, std::ios::binary);
    texts.emplace_back(std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>());
  }
  return texts;
}

// What opens or ends something in a shell, or is no text at all.
constexpr std::array<std::string_view, 43> kPieces = {"\"",
                                                      "'",
                                                      "`",
                                                      "$(",
                                                      ")",
                                                      "${",
                                                      "}",
                                                      "$((",
                                                      "))",
                                                      "\\",
                                                      "\\\n",
                                                      "\n",
                                                      "#",
                                                      "<<EOF\n",
                                                      "<<'E'\n",
                                                      "EOF",
                                                      ";;",
                                                      "case x in",
                                                      "esac",
                                                      "if ",
                                                      "fi",
                                                      "done",
                                                      "do ",
                                                      "{ ",
                                                      "( ",
                                                      "| ",
                                                      "&",
                                                      " && ",
                                                      "[[ ",
                                                      "]]",
                                                      "<(",
                                                      ">",
                                                      "=",
                                                      " ",
                                                      "\r",
                                                      "\xFF",
                                                      "\xE2",
                                                      "#SBATCH ",
                                                      "$",
                                                      "srun ",
                                                      "function f ",
                                                      "\r\n",
                                                      std::string_view("\0", 1)};

std::string mutated(std::string text, const std::vector<std::string>& all, Dice& dice) {
  for (std::size_t left = 1 + dice.below(6); left > 0; --left) {
    const std::size_t at = dice.below(text.size() + 1);
    const std::size_t size = std::min(dice.below(60), text.size() - at);
    switch (dice.below(6)) {
      case 0:
        text.erase(at, size);
        break;
      case 1:
        text.insert(at, kPieces[dice.below(kPieces.size())]);
        break;
      case 2:
        text.insert(dice.below(text.size() + 1), text.substr(at, size));
        break;
      case 3:
        text.resize(at);
        break;
      case 4:
        if (at < text.size()) text[at] = static_cast<char>(dice.below(256));
        break;
      default: {  // the rest of another script
        const std::string& other = all[dice.below(all.size())];
        text.replace(at, std::string::npos, other.substr(dice.below(other.size() + 1)));
      }
    }
  }
  return text;
}

}  // namespace

// HPCLAUNCH_TEST_ALL (scripts/test --all): ten times as many.
TEST_CASE("mutated scripts are read to their end", "[lint]") {
  const std::size_t mutants = std::getenv("HPCLAUNCH_TEST_ALL") != nullptr ? 20'000 : 2'000;
  const std::vector<std::string> all = scripts();
  REQUIRE(all.size() > 10);
  std::size_t found = 0, unknown = 0;
  for (std::size_t seed = 0; seed < mutants; ++seed) {
    Dice dice(seed);
    const std::string text = mutated(all[seed % all.size()], all, dice);
    const lint::Script script = lint::read_script(text, "job.sh");
    for (const lint::Command& one : script.shell.commands)
      REQUIRE((one.span.begin <= one.span.end && one.span.end <= text.size()));
    for (const lint::Setting& one : script.settings)
      REQUIRE((one.name_span.end <= text.size() && one.value_span.end <= text.size()));
    const auto lines = std::ranges::count(text, '\n') + 1;
    const std::vector<lint::Finding> findings = lint::check_text(text, "job.sh");
    found += findings.size();
    for (const lint::Finding& one : findings) {
      const int line = one.diagnostic.where->line;
      bool inside = one.begin <= text.size() && line >= 1 && line <= lines && one.end_line <= lines;
      for (const lint::Edit& edit : one.edits)
        inside = inside && edit.begin <= edit.end && edit.end <= text.size();
      if (!inside) {
        INFO("seed " << seed << ", " << one.diagnostic.id << ", line " << line << " of " << lines);
        CHECK(inside);
      }
      unknown += lint::find_rule(one.diagnostic.id) == nullptr ? 1 : 0;
    }
    if (seed % 9 != 0) continue;
    const std::string once = lint::fixed(text, findings);
    CHECK(lint::unified_diff(text, once, "job.sh").empty() == (text == once));
    (void)lint::check_text(once, "job.sh");
  }
  CHECK(found > mutants);
  CHECK(unknown == 0);
}
