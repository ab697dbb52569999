// What the rules of a profile set, ask for, warn of, and correct.
#include <fmt/format.h>

#include <algorithm>

#include "authoring/markdown.h"
#include "authoring/page.h"

namespace hpclaunch::cli::page {

namespace {

using markdown::Table;
using Stacks = std::vector<std::string>;

// The stacks that a rule asks for; none: it does not ask, or not by name.
Stacks stacks_of(const Rule& rule) {
  for (const Test& test : rule.when)
    if (test.fact == "stack" && test.op == Test::Op::eq) return test.values;
  return {};
}

std::string conditions(const Rule& rule) {
  return when(rule.when, stacks_of(rule).empty() ? "" : "stack");
}

std::string_view default_stack(const Profile& profile) {
  if (!profile.stack.empty() || profile.stacks.empty()) return profile.stack;
  return profile.stacks.front().name;
}

// Groups of rules that ask for the same stacks: every stack first, then those of the default one.
std::vector<Stacks> stack_groups(const Profile& profile, const std::vector<const Rule*>& rules) {
  std::vector<Stacks> groups;
  for (const Rule* rule : rules)
    if (std::find(groups.begin(), groups.end(), stacks_of(*rule)) == groups.end())
      groups.push_back(stacks_of(*rule));
  const auto place = [&](const Stacks& group) -> std::size_t {
    if (group.empty()) return 0;
    const std::string_view first = default_stack(profile);
    if (std::find(group.begin(), group.end(), first) != group.end()) return 1;
    for (std::size_t i = 0; i < profile.stacks.size(); ++i)
      if (profile.stacks[i].name == group.front()) return 2 + i;
    return 2 + profile.stacks.size();
  };
  std::stable_sort(groups.begin(), groups.end(),
                   [&](const Stacks& a, const Stacks& b) { return place(a) < place(b); });
  return groups;
}

std::string value_text(const Template& value) {
  std::string item = markdown::code(value.text);
  if (value.each == Template::Each::once) return item;
  return fmt::format("{} for each {}, joined by {}", item,
                     value.each == Template::Each::rank ? "rank of the node" : "unit of the node",
                     markdown::code(value.join));
}

struct Line {
  std::string name;
  std::string value;
};

std::vector<Line> variables(const Rule& rule) {
  std::vector<Line> lines;
  for (const Assignment& one : rule.defaults)
    lines.push_back({markdown::code(one.name), value_text(one.value)});
  for (const Assignment& one : rule.require)
    lines.push_back({markdown::code(one.name), value_text(one.value) + ", **required**"});
  for (const Assignment& one : rule.prepend)
    lines.push_back({markdown::code(one.name), value_text(one.value) + " put in front"});
  for (const std::string& name : rule.unset) lines.push_back({markdown::code(name), "removed"});
  return lines;
}

std::string directive_of(const std::string& scheduler) {
  if (scheduler == "slurm") return "`sbatch` option";
  if (scheduler == "pbs" || scheduler == "cobalt" || scheduler == "sge") return "`qsub` option";
  if (scheduler == "flux") return "`flux batch` option";
  if (scheduler == "lsf") return "`bsub` option";
  return "job option";
}

std::vector<Line> requests_of(const Rule& rule) {
  std::vector<Line> lines;
  for (const auto& [launcher, flags] : rule.launch)
    for (const std::string& flag : flags)
      lines.push_back(
          {fmt::format("launcher flag ({})", markdown::text(launcher)), markdown::code(flag)});
  for (const auto& [scheduler, directives] : rule.batch)
    for (const std::string& directive : directives)
      lines.push_back({directive_of(scheduler), markdown::code(directive)});
  if (rule.core_limit)
    lines.push_back({"core files (`ulimit -c`)", markdown::code(*rule.core_limit)});
  for (const std::string& dir : rule.make_dirs)
    lines.push_back({"directory on every node", markdown::code(dir)});
  return lines;
}

// A rule gives its condition and reason once, in its first row.
void add_rows(const Rule& rule, const std::vector<Line>& lines, const std::string& why,
              Table& table) {
  bool first = true;
  for (const Line& line : lines) {
    if (first)
      table.row({line.name, line.value, conditions(rule), why, origin(rule.id, rule.origin)});
    else
      table.row({line.name, line.value, "", "", ""});
    first = false;
  }
}

std::string heading_of(const Profile& profile, const Stacks& group) {
  if (!group.empty()) return fmt::format("### With {}\n\n", markdown::codes(group, "and"));
  return profile.stacks.size() > 1 ? "### With every stack\n\n" : "";
}

std::string tables_by_stack(const Profile& profile, const char* first_column,
                            std::vector<Line> (*lines_of)(const Rule&),
                            std::string (*why_of)(const Rule&)) {
  std::vector<const Rule*> rules;
  for (const Rule& rule : profile.rules)
    if (!lines_of(rule).empty()) rules.push_back(&rule);
  std::string out;
  for (const Stacks& group : stack_groups(profile, rules)) {
    Table table({first_column, "Value", "When", "Why", "Rule, source, last compared"});
    for (const Rule* rule : rules)
      if (stacks_of(*rule) == group) add_rows(*rule, lines_of(*rule), why_of(*rule), table);
    out += fmt::format("{}{}{}", out.empty() ? "" : "\n", heading_of(profile, group), table.str());
  }
  return out;
}

// What a rule does, in a few words, for lists of corrections.
std::string what_is_done(const Rule& rule) {
  std::vector<Line> lines = variables(rule);
  std::string out;
  for (const Line& line : lines) {
    const std::string sign = line.value == "removed" ? " is " : ": ";
    out += fmt::format("{}{}{}{}", out.empty() ? "" : "; ", line.name, sign, line.value);
  }
  for (const Line& line : requests_of(rule))
    out += fmt::format("{}{} {}", out.empty() ? "" : "; ", line.name, line.value);
  if (out.empty() && rule.report) out = markdown::text(rule.report->message);
  return out;
}

// The reason stands where the rule comes first.
std::string why_in_settings(const Rule& rule) { return markdown::text(rule.origin.why); }

std::string why_in_requests(const Rule& rule) {
  return variables(rule).empty() ? why_in_settings(rule) : "as under Settings";
}

std::string why_in_warnings(const Rule& rule) {
  return requests_of(rule).empty() ? why_in_requests(rule) : "as above";
}

struct Entry {
  std::string what;  // "rule", "binding"
  std::string id;
  std::string done;
  const Origin* origin;
};

std::vector<Entry> entries(const Profile& profile) {
  std::vector<Entry> all;
  for (const NodeModel& one : profile.nodes)
    all.push_back({"node type", one.name, "", &one.origin});
  for (const Stack& one : profile.stacks) all.push_back({"stack", one.name, "", &one.origin});
  for (const DeviceMode& one : profile.device_modes)
    all.push_back({"device mode", one.name, "", &one.origin});
  for (const Binding& one : profile.bindings)
    all.push_back({"binding", one.id, markdown::text(one.origin.why), &one.origin});
  for (const Rule& one : profile.rules)
    all.push_back({"rule", one.id, what_is_done(one), &one.origin});
  for (const Note& one : profile.notes)
    all.push_back({"note", one.id, markdown::text(one.title), &one.origin});
  if (profile.retired) all.push_back({"retirement", profile.name, "", &profile.retired->origin});
  return all;
}

std::string named(const Entry& entry) {
  return fmt::format("{} {}", entry.what, origin(entry.id, *entry.origin));
}

}  // namespace

std::string settings(const Profile& profile) {
  const std::string tables = tables_by_stack(profile, "Variable", variables, why_in_settings);
  if (tables.empty()) return "";
  return "## Settings\n\n" +
         markdown::paragraph(
             "What you export or give with `--set` is kept, except where the table says "
             "**required**. `${...}` is filled in for each job or rank. Empty cells mean the same "
             "as above: one "
             "rule sets them together. `hpclaunch explain NAME` shows what holds in your job, and "
             "why.") +
         "\n" + tables;
}

std::string requests(const Profile& profile) {
  const std::string tables = tables_by_stack(profile, "What", requests_of, why_in_requests);
  return tables.empty() ? "" : "## ChosenLauncher, batch system and node\n\n" + tables;
}

std::string warnings(const Profile& profile) {
  Table table({"When", "What hpclaunch says", "What to do", "Why", "Rule, source, last compared"});
  for (const Rule& rule : profile.rules)
    if (rule.report)
      table.row({when(rule.when),
                 fmt::format("{}: {}", markdown::text(rule.report->severity),
                             markdown::text(rule.report->message)),
                 markdown::text(rule.report->fix), why_in_warnings(rule),
                 origin(rule.id, rule.origin)});
  const std::string rows = table.str();
  return rows.empty() ? "" : "## Warnings\n\n" + rows;
}

std::string corrections(const Profile& profile) {
  std::string out;
  for (const Entry& entry : entries(profile)) {
    if (entry.origin->printed.empty()) continue;
    std::string item = fmt::format("- Printed: {}.", markdown::code(entry.origin->printed));
    if (!entry.origin->printed_why.empty())
      item += fmt::format(" But {}.", markdown::text(entry.origin->printed_why));
    if (!entry.done.empty()) item += fmt::format(" Done instead: {}", entry.done);
    out += markdown::paragraph(fmt::format("{} ({})", item, named(entry)), "  ");
  }
  if (out.empty()) return "";
  return "## What the site's pages print, and what is done instead\n\n" + out;
}

std::string disputes(const Profile& profile) {
  std::string out;
  for (const Entry& entry : entries(profile)) {
    if (entry.origin->disputed.empty()) continue;
    const std::string here = entry.done.empty() ? "" : fmt::format("Here: {}. ", entry.done);
    out += markdown::paragraph(
        fmt::format("- {}But {} ({})", here, markdown::text(entry.origin->disputed), named(entry)),
        "  ");
  }
  return out.empty() ? "" : "## Where sources disagree\n\n" + out;
}

}  // namespace hpclaunch::cli::page
