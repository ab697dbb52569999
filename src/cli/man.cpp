// The manual page, from the option tree: man(7) macros.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "cli/command.h"

namespace hpclaunch::cli {

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
  const auto add = [&](const std::string& name) {
    heading += (heading.empty() ? "\\fB" : ", \\fB") + roff(name) + "\\fR";
  };
  for (const std::string& name : option.short_names) add("-" + name);
  for (const std::string& name : option.long_names) add("--" + name);
  if (option.positional && heading.empty()) return "\\fI" + roff(option.value_name) + "\\fR";
  if (!option.value_name.empty()) heading += " \\fI" + roff(option.value()) + "\\fR";
  return heading;
}

std::string command_section(const CommandTree& command) {
  std::string text = fmt::format(".SS hpclaunch {} {}\n{}\n", roff(command.name),
                                 roff(command.usage), roff(command.summary));
  for (const OptionInfo& option : command.options) {
    text += fmt::format(".TP\n{}\n{}", option_heading(option), roff(option.description));
    if (!option.choices.empty() &&
        option.description.find(option.choices.front()) == std::string::npos)
      text += fmt::format(" ({})", roff(fmt::format("{}", fmt::join(option.choices, ", "))));
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
