// The text of --help and the manual page (man(7) macros), both from the option tree.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr std::size_t kColumn = 30;  // where descriptions begin
constexpr std::size_t kWidth = 100;

std::string spelling(const OptionInfo& option) {
  if (option.positional()) return option.value_name + (option.repeatable ? "..." : "");
  std::string text = fmt::format("{}", fmt::join(option.names, ", "));
  if (!option.value_name.empty()) text += " " + option.value();
  return text;
}

// The values it takes; "" where the description names them.
std::string choices_of(const OptionInfo& option) {
  const auto& choices = option.choices;
  if (choices.empty() || option.description.find(choices.front()) != std::string::npos) return "";
  return fmt::format("{}", fmt::join(choices, ", "));
}

std::string description(const OptionInfo& option) {
  const std::string choices = choices_of(option);
  std::string text = option.description + (choices.empty() ? "" : ": " + choices);
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

namespace {

// A line that begins with a dot or a quote is a request; a backslash and a hyphen have meanings too.
std::string roff(const std::string& text) {
  std::string out;
  bool line_start = true;
  for (const char c : text) {
    if (line_start && (c == '.' || c == '\'')) out += "\\&";
    if (c == '\\')
      out += "\\e";
    else if (c == '-')
      out += "\\-";
    else
      out += c;
    line_start = c == '\n';
  }
  return out;
}

std::string option_heading(const OptionInfo& option) {
  std::string heading;
  for (const std::string& name : option.names)
    heading += (heading.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  if (!option.value_name.empty())
    heading += (heading.empty() ? "\\fI" : " \\fI") + roff(option.value()) + "\\fR";
  return heading;
}

std::string command_section(const CommandTree& command) {
  std::string text = fmt::format(".SS hpclaunch {} {}\n{}\n", roff(command.name),
                                 roff(command.usage), roff(command.summary));
  for (const OptionInfo& option : command.options) {
    text += fmt::format(".TP\n{}\n{}", option_heading(option), roff(option.description));
    if (const std::string choices = choices_of(option); !choices.empty())
      text += fmt::format(" ({})", roff(choices));
    if (!option.default_text.empty())
      text += fmt::format(" (default {})", roff(option.default_text));
    text += ".\n";
  }
  if (!command.footer.empty()) text += ".PP\n" + roff(command.footer) + "\n";
  return text;
}

std::string manual() {
  std::string text =
      fmt::format(".TH HPCLAUNCH 1 \"\" \"hpclaunch {}\" \"User Commands\"\n", HPCLAUNCH_VERSION);
  text +=
      ".SH NAME\nhpclaunch \\- start distributed PyTorch jobs with the right binding and "
      "environment\n"
      ".SH SYNOPSIS\n";
  for (const CommandTree& command : option_tree())
    text += fmt::format(".B hpclaunch {}\n{}\n.br\n", roff(command.name), roff(command.usage));
  text +=
      ".SH DESCRIPTION\n"
      "hpclaunch places ranks on cores and devices, sets the environment that PyTorch and its\n"
      "libraries read, and starts the program through the site's launcher or, on one node, "
      "itself.\n"
      ".B plan, env, explain\nand\n.B run \\-\\-dry\\-run\nshow what\n.B run\nwould do, with the "
      "same options.\n"
      ".SH COMMANDS\n";
  for (const CommandTree& command : option_tree()) text += command_section(command);
  text +=
      ".SH EXIT STATUS\n"
      "plan, env, explain, topo: 0 no diagnostics, 1 diagnostics, 2 failed.\n.br\n"
      "run: the program's status (128+n for signal n); 125 hpclaunch failed before the start, "
      "126 program not\n"
      "executable, 127 program not found.\n"
      ".SH ENVIRONMENT\n.TP\n.B NO_COLOR\nDisables colour.\n"
      ".TP\n.B HPCLAUNCH_PLAN\nSet for hpclaunch\\-shim, which removes it; not to be set by hand."
      "\n"
      ".TP\n.B HPCLAUNCH_LOCAL_RANK, HPCLAUNCH_LOCAL_SIZE, HPCLAUNCH_NODE\nSet on every rank: its "
      "place on the node, the ranks on the node, the node's place in the job.\n"
      ".SH SEE ALSO\n.BR mpiexec (1),\n.BR lstopo (1),\n.BR taskset (1)\n";
  return text;
}

}  // namespace

Runner declare_man(Parser&) {
  return [](Session& session) { return print_all(session, manual()); };
}

}  // namespace hpclaunch::cli
