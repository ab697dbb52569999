#include "cli/suggest.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

Error unknown_option(const CLI::App& app, const std::string& word) {
  const std::string name = word.substr(0, word.find('='));
  std::vector<std::string> known;
  for (const CLI::Option* option : app.get_options()) {
    for (const std::string& one : option->get_lnames()) known.push_back("--" + one);
    for (const std::string& one : option->get_snames()) known.push_back("-" + one);
  }
  std::string hint = fmt::format("hpclaunch {} --help", app.get_name());
  const bool is_long = name.starts_with("--");  // one letter is as near to any other
  if (const auto near = is_long ? nearest(name, known) : std::nullopt) hint = *near;
  return Error{ErrorKind::usage, fmt::format("{}: no option \"{}\"", app.get_name(), name), hint};
}

Error unknown_command(const std::string& word) {
  std::vector<std::string> known;
  for (const Command& command : commands())
    if (!command.hidden) known.emplace_back(command.name);
  std::string hint = "hpclaunch --help";
  if (const auto near = nearest(word, known)) hint = "hpclaunch " + *near;
  return Error{ErrorKind::usage, fmt::format("no command \"{}\"", word), hint};
}

}  // namespace hpclaunch::cli
