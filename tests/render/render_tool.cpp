// render_tool FORMAT|script [comments] < CHANGES: what render_env and render_script print, for
// tests/render/shells.py. Input: fields that end in a zero byte; "s" NAME VALUE sets, "u" NAME
// removes, "c" TEXT is the comment of the change after it, "a" WORD is a word of the command.
#include <cstdio>
#include <iostream>
#include <iterator>
#include <string>
#include <vector>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

int main(int argc, char** argv) {
  using namespace hpclaunch;
  const std::string input{std::istreambuf_iterator<char>(std::cin), {}};
  std::vector<std::string_view> fields = split(input, '\0');
  std::vector<EnvChange> changes;
  std::vector<std::string> words;
  std::string comment;
  for (std::size_t i = 0; i + 1 < fields.size(); ++i) {
    if (fields[i] == "c") {
      comment = fields[++i];
      continue;
    }
    if (fields[i] == "a") {
      words.emplace_back(fields[++i]);
      continue;
    }
    EnvChange change{std::string(fields[i + 1]), std::nullopt, comment};
    if (fields[i] == "s") change.value = std::string(fields[i + 2]);
    i += fields[i] == "s" ? 2 : 1;
    changes.push_back(change);
    comment.clear();
  }
  if (argc < 2) return 2;
  const bool comments = argc > 2;
  const auto format = env_format_from(argv[1]);
  const Result<std::string> text =
      format ? render_env(*format, changes, comments) : render_script(changes, words, comments);
  if (!text) {
    std::fprintf(stderr, "%s\n", text.error().message.c_str());
    return 1;
  }
  std::fwrite(text->data(), 1, text->size(), stdout);
  return 0;
}
