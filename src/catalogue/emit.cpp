#include <fmt/format.h>
#include <fmt/ranges.h>

#include <bit>
#include <map>

#include "catalogue.h"

namespace hpclaunch::catalogue {

namespace {

// One block of NUL-terminated texts, each kept once; offset 0 is "".
class Block {
 public:
  std::size_t offset(std::string_view text) {
    const auto [at, added] = offsets_.emplace(text, size_);
    if (added) {
      literals_ += "    \"" + escaped(text) + "\\0\"\n";
      size_ += text.size() + 1;
    }
    return at->second;
  }
  const std::string& literals() const { return literals_; }

 private:
  static std::string escaped(std::string_view text) {
    std::string out;
    for (const char c : text) {
      if (c == '\0') {
        out += "\\000";
        continue;
      }
      if (c == '"' || c == '\\' || c == '?') out += '\\';  // "??" would begin a trigraph
      out += c;
    }
    return out;
  }
  std::map<std::string_view, std::size_t> offsets_ = {{"", 0}};
  std::string literals_ = "    \"\\0\"\n";
  std::size_t size_ = 1;
};

// All that a list has but its empty end.
std::string_view bytes(knowledge::TextList list) {
  const std::vector<std::string_view> all = list.all();
  if (all.empty()) return "";
  return {list.first, static_cast<std::size_t>(all.back().end() - list.first) + 1};
}

std::size_t library_of(const Variable& variable) { return variable.number; }
template <class Entry>
std::size_t library_of(const Entry& /*entry*/) {
  return 0;
}

// The rows of all entries, which are an Entry each, as an array of that name.
template <class Entry>
std::string table(const char* type, const auto& entries, Block& block) {
  std::string rows;
  for (const auto& one : entries) {
    using Traits = typename Entry::Traits;
    std::vector<std::size_t> texts;
    texts.reserve(std::size(knowledge::kTexts<Entry>) + std::size(knowledge::kLists<Entry>));
    for (const auto text : knowledge::kTexts<Entry>) texts.push_back(block.offset(one.*text));
    for (const auto list : knowledge::kLists<Entry>)
      texts.push_back(block.offset(bytes(one.*list)));
    rows += fmt::format("    {{{{{}}}, {{{}}}, {}}},\n", fmt::join(texts, ", "),
                        fmt::join(std::bit_cast<std::array<std::uint8_t, sizeof(Traits)>>(
                                      static_cast<const Traits&>(one)),
                                  ", "),
                        library_of(one));
  }
  return fmt::format("constexpr Row<{0}> k{0}[] = {{\n{1}}};\n\n", type, rows);
}

}  // namespace

std::string emit(const Catalogue& catalogue) {
  Block block;
  const std::string tables =
      table<knowledge::Library>("Library", catalogue.libraries, block) +
      table<knowledge::Variable>("Variable", catalogue.variables, block) +
      table<knowledge::Misspelling>("Misspelling", catalogue.misspellings, block) +
      table<knowledge::Family>("Family", catalogue.families, block) +
      table<knowledge::Caution>("Caution", catalogue.cautions, block) +
      table<knowledge::KnownIssue>("KnownIssue", catalogue.known_issues, block);
  // constexpr and constinit make the compiler refuse anything that would have to run at start.
  return fmt::format(
      "// Written by hpclaunch-catalogue from profiles/variables/; edit those files.\n"
      "#include \"knowledge/table.h\"\n\n"
      "#pragma GCC diagnostic ignored \"-Woverlength-strings\"\n"
      "namespace hpclaunch::knowledge {{\n"
      "namespace {{\n\n"
      "constexpr char kText[] =\n{};\n\n{}"
      "}}  // namespace\n\n"
      "constinit const Table kTable = {{kText, kLibrary, kVariable, kMisspelling, kFamily, "
      "kCaution, kKnownIssue}};\n\n"
      "}}  // namespace hpclaunch::knowledge\n",
      block.literals(), tables);
}

}  // namespace hpclaunch::catalogue
