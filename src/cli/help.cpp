// The text of --help and the manual page (man(7) macros), both from the option tree.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <utility>

#include "cli/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr int kColumn = 30;   // where descriptions begin
constexpr int kWidest = 120;  // longer lines are hard to read

// Shared options that the brief help describes.
constexpr std::array<std::string_view, 7> kFirst = {"--ranks",   "--nodes",    "--ranks-per-node",
                                                    "--profile", "--launcher", "--set"};

std::string spelling(const OptionInfo& option) {
  if (option.positional()) return option.value_name + (option.repeatable ? "..." : "");
  std::string text = joined(option.names, ", ");
  if (!option.value_name.empty()) text += " " + option.value();
  return text;
}

// The values it takes; "" where the description names them.
std::string choices_of(const OptionInfo& option) {
  const auto& choices = option.choices;
  if (choices.empty() || option.description.find(choices.front()) != std::string::npos) return "";
  return joined(choices, ", ");
}

std::string description(const OptionInfo& option) {
  const std::string choices = choices_of(option);
  std::string text = option.description + (choices.empty() ? "" : ": " + choices);
  if (!option.default_text.empty()) text += fmt::format(" (default {})", option.default_text);
  return text;
}

}  // namespace

std::string entry(const std::string& label, std::string_view text, int column, const Style& style) {
  std::string lead = "  " + label;
  const auto width = static_cast<std::size_t>(column);
  const bool fits = lead.size() + 2 <= width;
  const std::string above = fits ? "" : std::exchange(lead, "") + "\n";
  lead.resize(width, ' ');
  return above + paragraph(lead, text, style);
}

namespace {

// Of the options that the brief help names without a description.
bool is_other(const OptionInfo& option) {
  return option.rare || (option.shared && std::ranges::count(kFirst, option.names.back()) == 0);
}

// A family has one entry: "--stage, --stage-..." for --stage, --stage-from, --stage-to; "--[no-]supervise" for two.
void add_other(std::vector<std::string>& others, const std::string& name) {
  constexpr std::string_view kNo = "--no-";
  if (name.starts_with(kNo)) {
    const std::string rest = name.substr(kNo.size());
    const auto yes = std::ranges::find(others, "--" + rest);
    if (yes != others.end()) {
      *yes = "--[no-]" + rest;
      return;
    }
  }
  const auto is_head = [&](const std::string& one) { return name.starts_with(one + "-"); };
  const auto head = std::ranges::find_if(others, is_head);
  if (head == others.end())
    others.push_back(name);
  else if (const std::string family = *head + "-..."; std::ranges::count(others, family) == 0)
    others.insert(head + 1, family);
}

}  // namespace

std::string help_text(const CommandTree& command, bool brief, const Style& style) {
  Style narrow = style;
  narrow.width = std::min(style.width, kWidest);
  std::string text = fmt::format("hpclaunch {}: {}\n\nUsage: hpclaunch {} {}\n", command.name,
                                 command.summary, command.name, command.usage);
  bool complete = true;
  for (auto option = command.options.begin(); option != command.options.end();) {
    if (brief && command.brief_own && option->shared) {
      complete = false;
      ++option;
      continue;
    }
    const std::string& group = option->group;
    text += fmt::format("\n{}:\n", group);
    std::vector<std::string> others;
    for (; option != command.options.end() && option->group == group; ++option)
      if (brief && is_other(*option))
        add_other(others, option->names.back());
      else
        text += entry(spelling(*option), description(*option), kColumn, narrow);
    if (others.empty()) continue;
    text += paragraph("  also ", joined(others, ", "), narrow);
    complete = false;
  }
  if (!complete) text += fmt::format("All options: hpclaunch {} --help\n", command.name);
  for (const std::string_view line : split(command.footer, '\n'))
    if (!line.empty())
      text += (std::exchange(complete, true) ? "\n" : "") + paragraph("", line, narrow);
  return text;
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

std::string option_items(const CommandTree& command, bool shared) {
  std::string text;
  std::string group;
  for (const OptionInfo& option : command.options) {
    if (option.shared != shared) continue;
    if (shared && option.group != group) text += fmt::format(".SS {}\n", group = option.group);
    text += fmt::format(".TP\n{}\n{}.\n", option_heading(option), roff(description(option)));
  }
  return text;
}

// Of the lines at the end of its help: that about the exit status, or the others.
std::string footer_lines(const CommandTree& command, bool status) {
  constexpr std::string_view kStatus = "Exit status: ";
  std::string text;
  for (const std::string_view line : split(command.footer, '\n'))
    if (!line.empty() && line.starts_with(kStatus) == status)
      text += roff(std::string(line.substr(status ? kStatus.size() : 0))) + "\n";
  return text;
}

std::string command_section(const CommandTree& command) {
  std::string text = fmt::format(".SS hpclaunch {} {}\n{}\n", roff(command.name),
                                 roff(command.usage), roff(command.summary));
  text += option_items(command, false);
  if (std::ranges::any_of(command.options, &OptionInfo::shared))
    text += ".PP\nTakes the shared options as well.\n";
  const std::string notes = footer_lines(command, false);
  if (!notes.empty()) text += ".PP\n" + notes;
  return text;
}

// docs/man/hpclaunch.1, with what the options say of themselves at its marks.
std::string manual() {
  std::string synopsis;
  std::string shared;
  std::string sections;
  std::string statuses;
  for (const Command& command : commands()) {
    if (command.hidden) continue;
    Parser parser(command);
    command.declare(parser);
    const CommandTree& tree = parser.tree();
    synopsis += fmt::format(".B hpclaunch {}\n{}\n.br\n", roff(tree.name), roff(tree.usage));
    if (shared.empty()) shared = option_items(tree, true);
    sections += command_section(tree);
    statuses += fmt::format(".TP\n.B {}\n{}", roff(tree.name), footer_lines(tree, true));
  }
  std::string page(kManual);
  const std::pair<std::string_view, std::string> marks[] = {{"@version@", HPCLAUNCH_VERSION},
                                                            {"@synopsis@\n", synopsis},
                                                            {"@shared@\n", shared},
                                                            {"@commands@\n", sections},
                                                            {"@statuses@\n", statuses}};
  for (const auto& [mark, text] : marks) page.replace(page.find(mark), mark.size(), text);
  return page;
}

}  // namespace

Runner declare_man(Parser&) {
  return [](Session& session) { return print_all(session, manual()); };
}

}  // namespace hpclaunch::cli
