// What the rules of a profile set and why, and the traps that its notes describe.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "authoring/command.h"
#include "authoring/markdown.h"
#include "authoring/page.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring::page {

namespace {

using markdown::code;

std::string assignment(const Assignment& one) {
  std::string text = code(fmt::format("{}={}", one.name, one.value.text));
  if (one.value.each != Template::Each::once)
    text += one.value.each == Template::Each::rank ? " per rank" : " per unit";
  return text;
}

// `NAME=value`, `--flag`, ... : all that a rule changes.
std::string changes(const Rule& rule) {
  std::vector<std::string> items;
  for (const Assignment& one : rule.defaults) items.push_back(assignment(one));
  for (const Assignment& one : rule.require) items.push_back(assignment(one) + " (required)");
  for (const Assignment& one : rule.prepend) items.push_back("prepend " + assignment(one));
  for (const std::string& name : rule.unset) items.push_back("unset " + code(name));
  for (const auto* words : {&rule.launch, &rule.batch})
    for (const auto& [program, flags] : *words)
      items.push_back(fmt::format("{} {}", markdown::text(program),
                                  code(fmt::format("{}", fmt::join(flags, " ")))));
  if (rule.core_limit) items.push_back(code("ulimit -c " + *rule.core_limit));
  for (const std::string& dir : rule.make_dirs) items.push_back("directory " + code(dir));
  return fmt::format("{}", fmt::join(items, ", "));
}

std::string condition(const Rule& rule) {
  When rest;
  for (const Test& test : rule.when)
    if (stacks_of(rule.when).empty() || test.fact != "stack") rest.push_back(test);
  return rest.empty() ? "" : code(when_text(rest));
}

}  // namespace

std::string settings(const Profile& profile, const std::set<std::string>& elsewhere) {
  markdown::Table table({"Set", "When", "Why"});
  std::map<std::string, std::vector<std::string>> by_stack;
  for (const Rule& rule : profile.rules) {
    const std::string what = changes(rule);
    if (what.empty() || elsewhere.count(rule.origin.profile) > 0) continue;
    if (is_default(profile, rule.when))
      table.row({what, condition(rule), markdown::text(gist(rule.origin.why, ".;,"))});
    else
      for (const std::string& stack : stacks_of(rule.when)) by_stack[stack].push_back(what);
  }
  std::string list;
  for (const auto& [stack, items] : by_stack)
    list += markdown::paragraph(
        fmt::format("- With `--stack` {}: {}", code(stack), fmt::join(items, ", ")), "  ");
  const std::string rows = table.str();
  if (rows.empty() && list.empty()) return "";
  return "## Settings\n\n" +
         markdown::paragraph(
             "Your exported values and `--set` win, except over settings marked (required).") +
         (rows.empty() ? "" : "\n" + rows) + (list.empty() ? "" : "\n" + list);
}

std::string traps(const Profile& profile, const std::set<std::string>& elsewhere) {
  std::string out;
  for (const Note& note : profile.notes)
    if (elsewhere.count(note.origin.profile) == 0)
      out += markdown::paragraph(
          fmt::format("- {}: {}",
                      markdown::link(markdown::text(note.title.empty() ? note.id : note.title),
                                     note.origin.source),
                      markdown::text(gist(note.text))),
          "  ");
  return out.empty() ? "" : "## Traps and hints\n\n" + out;
}

}  // namespace hpclaunch::authoring::page
