#include "hpclaunch/programs.h"

#include "hpclaunch/launcher.h"

namespace hpclaunch {

Words second_words(const StartingProgram& row, std::string_view program) {
  for (const NamedWords& one : row.words)
    if (one.name == program) return one.words;
  return {};
}

const Wrapper* find_wrapper(std::string_view name) {
  for (const Wrapper& row : rows<Wrapper>())
    if (has_word(row.programs, name)) return &row;
  return nullptr;
}

bool is_python(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("pypy");
}

}  // namespace hpclaunch
