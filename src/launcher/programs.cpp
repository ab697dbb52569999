#include <fmt/format.h>

#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

extern const char kPrograms[];  // profiles/programs/launchers.json, by cmake/EmbedPrograms.cmake

std::vector<std::string_view> known_programs(std::string_view list) {
  std::vector<std::string_view> rows = split(kPrograms, '\n');
  std::erase_if(rows, [&](std::string_view row) {
    return !row.starts_with(list) || !row.substr(list.size()).starts_with('\t');
  });
  return rows;
}

std::vector<std::string_view> words_of(std::string_view row, std::string_view key) {
  const std::size_t at = row.find(fmt::format("\t{}\x1f", key));
  if (at == std::string_view::npos) return {};
  row.remove_prefix(at + key.size() + 2);
  const std::string_view words = row.substr(0, row.find('\t'));
  if (words.empty()) return {};
  return split(words.substr(0, words.size() - 1), '\x1f');
}

bool is_python(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("pypy");
}

}  // namespace hpclaunch
