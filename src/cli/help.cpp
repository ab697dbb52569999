// The text of --help.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr std::size_t kColumn = 30;  // where descriptions begin
constexpr std::size_t kWidth = 100;

std::string spelling(const OptionInfo& option) {
  if (option.positional) return option.value_name + (option.repeatable ? "..." : "");
  std::vector<std::string> names;
  for (const std::string& name : option.short_names) names.push_back("-" + name);
  for (const std::string& name : option.long_names) names.push_back("--" + name);
  std::string text = fmt::format("{}", fmt::join(names, ", "));
  if (!option.value_name.empty()) text += " " + option.value();
  return text;
}

std::string description(const OptionInfo& option) {
  std::string text = option.description;
  const bool named =
      !option.choices.empty() && text.find(option.choices.front()) != std::string::npos;
  if (!option.choices.empty() && !named)
    text += fmt::format(": {}", fmt::join(option.choices, ", "));
  if (!option.default_text.empty()) text += fmt::format(" (default {})", option.default_text);
  return text;
}

}  // namespace

std::string entry(const std::string& label, std::string_view text, std::size_t column,
                  std::size_t width) {
  const std::string indent(column, ' ');
  std::string out = "  " + label;
  if (out.size() + 2 > column)
    out += "\n" + indent;
  else
    out.resize(column, ' ');
  std::size_t at = column;
  for (const std::string_view word : split(text, ' ')) {
    if (at > column && at + 1 + word.size() > width) {
      out += "\n" + indent;
      at = column;
    } else if (at > column) {
      out += ' ';
      ++at;
    }
    out += word;
    at += word.size();
  }
  return out + "\n";
}

std::string help_text(const CommandTree& command) {
  std::string text = fmt::format("hpclaunch {}: {}\n\nUsage: hpclaunch {} {}\n", command.name,
                                 command.summary, command.name, command.usage);
  std::string group;
  for (const OptionInfo& option : command.options) {
    if (option.group != group) {
      group = option.group;
      text += fmt::format("\n{}:\n", group);
    }
    text += entry(spelling(option), description(option), kColumn, kWidth);
  }
  if (!command.footer.empty()) text += "\n" + command.footer + "\n";
  return text;
}

std::vector<CommandTree> option_tree() {
  std::vector<CommandTree> tree;
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    Parser parser(command);
    command.declare(parser);
    tree.push_back(parser.tree());
  }
  return tree;
}

}  // namespace hpclaunch::cli
