#include "cli/option_tree.h"

#include <CLI/CLI.hpp>

#include "cli/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

// CLI11 shows a closed list of values as "{a,b,c}" behind the type's name.
std::vector<std::string> choices_of(const std::string& type_text) {
  const std::size_t open = type_text.find('{');
  const std::size_t close = type_text.find('}', open);
  std::vector<std::string> choices;
  if (open == std::string::npos || close == std::string::npos) return choices;
  for (const std::string_view choice : split(std::string_view(type_text).substr(open + 1, close - open - 1), ','))
    choices.emplace_back(trim(choice));
  return choices;
}

OptionInfo describe(const CLI::Option& option) {
  OptionInfo info;
  info.short_names = option.get_snames();
  info.long_names = option.get_lnames();
  info.description = option.get_description();
  info.default_text = option.get_default_str();
  info.group = option.get_group();
  info.positional = option.get_positional();
  info.repeatable = option.get_items_expected_max() > 1;
  const std::string type = option.get_type_name();
  info.choices = choices_of(type);
  if (option.get_type_size() != 0) info.value_name = type.substr(0, type.find_first_of(": "));
  return info;
}

}  // namespace

std::vector<CommandTree> option_tree() {
  std::vector<CommandTree> tree;
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    CLI::App app(command.summary, command.name);
    command.declare(app);
    CommandTree entry{command.name, command.summary, command.usage, app.get_footer(), {}};
    for (const CLI::Option* option : app.get_options()) entry.options.push_back(describe(*option));
    tree.push_back(std::move(entry));
  }
  return tree;
}

}  // namespace hpclaunch::cli
