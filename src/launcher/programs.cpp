#include "hpclaunch/programs.h"

#include <algorithm>

#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

Grammars grammars_of(std::string_view program) {
  Grammars all;
  if (const Grammar* own = find_row<Grammar>(program)) {
    all.push_back(own);
    for (const std::string_view name : own->family)
      if (const Grammar* part = find_row<Grammar>(name)) all.push_back(part);
  }
  return all;
}

std::string_view gpu_vendor(std::string_view request) {
  std::string text = "_";  // "_gpu_b200_4_"
  const auto is_digit = [](char c) { return c >= '0' && c <= '9'; };
  for (const char c : to_lower(request)) text += is_digit(c) || (c >= 'a' && c <= 'z') ? c : '_';
  text += '_';
  const auto has = [&](std::string_view name) {
    const std::string word = "_" + std::string(name);
    for (std::size_t at = 0; (at = text.find(word, at)) != text.npos; ++at)
      if (!is_digit(name.back()) || !is_digit(text[at + word.size()])) return true;
    return false;
  };
  for (const GpuModels& row : rows<GpuModels>())
    if (std::ranges::any_of(row.names, has)) return row.vendor;
  return "";
}

const ContainerEngine* engine_of(std::string_view program) {
  for (const ContainerEngine& row : rows<ContainerEngine>())
    if (has_word(row.programs, program)) return &row;
  return nullptr;
}

const Wrapper* find_wrapper(std::string_view name) {
  for (const Wrapper& row : rows<Wrapper>())
    if (has_word(row.programs, name)) return &row;
  const ContainerEngine* engine = engine_of(name);
  return engine == nullptr ? nullptr : &engine->line;
}

Grammars grammars_of(const Wrapper& row) { return {&row.grammar}; }

bool is_python(std::string_view program) {
  const std::string_view name = program.substr(program.rfind('/') + 1);
  return name.starts_with("python") || name.starts_with("pypy");
}

}  // namespace hpclaunch
