#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "parse.h"

namespace hpclaunch::profile {
namespace {

/// A template, or a list built from one.
Template parse_value(const Item& at, bool late) {
  if (at->kind != Json::Kind::object) {
    if (at->kind == Json::Kind::string && at->text.empty()) return {};  // an empty value
    return {parse_template(at, {.rank = true, .late = late}), Template::Each::once, ""};
  }
  const bool rank = at.need("each").choice(kEach) != "unit";
  const Item join = at["join"];
  return {parse_template(at.need("item"), {.rank = rank, .unit = true, .late = late}),
          rank ? Template::Each::rank : Template::Each::unit, join ? join.text() : ","};
}

std::vector<Assignment> parse_assignments(const Item& at, bool late) {
  std::vector<Assignment> assignments;
  for (const Item& value : at.members("variables"))
    assignments.push_back({value.variable(value->key), parse_value(value, late)});
  return assignments;
}

/// "launch" and "batch": words for each of several programs.
std::map<std::string, std::vector<std::string>> parse_words(const Item& at,
                                                            std::span<const std::string_view> known,
                                                            const Allowed& allowed) {
  std::map<std::string, std::vector<std::string>> words;
  for (const Item& list : at.members("lists")) {
    if (std::ranges::find(known, list->key) == known.end())
      list.fault(fmt::format("\"{}\" takes no {}", at->key, shown(list->key)),
                 suggestion_or_all(list->key, known));
    for (const Item& item : list.elements("flags"))
      words[list->key].push_back(parse_template(item, allowed));
  }
  return words;
}

/// Absolute, and with nothing in it that leads elsewhere.
std::vector<std::string> parse_folders(const Item& at, const Allowed& allowed) {
  std::vector<std::string> folders;
  for (const Item& item : at.elements("folders")) {
    std::string folder = parse_template(item, allowed);
    const std::vector<std::string_view> parts = split(folder, '/');
    const bool rooted = folder.starts_with("/") || folder.starts_with("${");
    const bool climbs = std::find(parts.begin(), parts.end(), "..") != parts.end();
    if (!folder.empty() && (!rooted || climbs))
      item.fault(fmt::format("{} is not an absolute path", shown(folder)),
                 "start it with '/' or ${fact}, and leave \"..\" out");
    folders.push_back(std::move(folder));
  }
  return folders;
}

std::optional<Report> parse_report(const Item& at, const Allowed& allowed) {
  if (!at) return std::nullopt;
  return Report{at.need("severity").choice(kSeverities),
                parse_template(at.need("message"), allowed), at["fix"].text()};
}

/// A rule that sets a variable in one way and also in another contradicts itself.
void check_once(const Item& at) {
  std::map<std::string, std::string> seen;
  for (const char* verb : {"default", "require", "prepend", "unset"})
    for (const Item& one : at[verb].items()) {
      const std::string& name = one->key.empty() ? one->text : one->key;
      const auto [first, added] = seen.emplace(name, verb);
      if (!added)
        one.fault(fmt::format("{} is in both \"{}\" and \"{}\"", shown(name), first->second, verb),
                  "make it two rules, or remove one");
    }
}

}  // namespace

Rule parse_rule(const Item& at) {
  Rule rule;
  rule.id = at.need("id").word();
  const std::size_t problems_before = at.context().count();
  rule.when = parse_when(at["when"], {.late = true});
  const Allowed allowed{.late = is_late(rule.when) || at.context().count() != problems_before};
  rule.defaults = parse_assignments(at["default"], allowed.late);
  rule.require = parse_assignments(at["require"], allowed.late);
  rule.prepend = parse_assignments(at["prepend"], allowed.late);
  rule.unset = at["unset"].variables();
  rule.launch = parse_words(at["launch"], kLauncherNames, allowed);
  rule.batch = parse_words(at["batch"], kSchedulerNames, allowed);
  rule.core_limit = parse_core_limit(at["core_limit"]);
  rule.make_dirs = parse_folders(at["make_dirs"], allowed);
  rule.report = parse_report(at["report"], allowed);
  rule.origin = parse_origin(at, Why::required);
  check_once(at);
  at.need_one_of({"default", "require", "prepend", "unset", "launch", "batch", "core_limit",
                  "make_dirs", "report"},
                 "the rule does nothing");
  return rule;
}

}  // namespace hpclaunch::profile
