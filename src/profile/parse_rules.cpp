#include <fmt/format.h>

#include <algorithm>

#include "facts.h"
#include "hpclaunch/text.h"
#include "parse.h"

namespace hpclaunch::profile {
namespace {

/// A template, or a list built from one.
Template parse_value(Context& context, const Item& at, bool late) {
  if (at.json->kind != Json::Kind::object) {
    if (at.json->kind == Json::Kind::string && at.json->text.empty()) return {};  // an empty value
    return {parse_template(context, at, {.rank = true, .late = late}), Template::Each::once, ""};
  }
  Template value;
  Object::inside(context, at, [&](Object& object) {
    const bool rank = object.choice("each", kEach, Need::required) == "rank";
    value.each = rank ? Template::Each::rank : Template::Each::unit;
    value.text = parse_template(context, object.find("item", Need::required),
                                {.rank = rank, .unit = true, .late = late});
    const Item join = object.find("join");
    value.join = join ? context.text(join) : ",";
  });
  return value;
}

std::vector<Assignment> parse_assignments(Object& rule, const char* key, bool late) {
  std::vector<Assignment> assignments;
  for (const auto& [name, value] : rule.members(key, "variables"))
    assignments.push_back(
        {rule.context().variable_name(value, name), parse_value(rule.context(), value, late)});
  return assignments;
}

/// "launch" and "batch": words for each of several programs.
std::map<std::string, std::vector<std::string>> parse_words(Object& rule, const char* key,
                                                            std::span<const std::string_view> known,
                                                            const Allowed& allowed) {
  std::map<std::string, std::vector<std::string>> words;
  Context& context = rule.context();
  for (const auto& [name, list] : rule.members(key, "lists")) {
    if (std::find(known.begin(), known.end(), name) == known.end())
      context.fault(list, fmt::format("\"{}\" takes no {}", key, shown(name)),
                    suggestion_or_all(name, known));
    for (const Item& item : context.elements(list, "flags"))
      words[name].push_back(parse_template(context, item, allowed));
  }
  return words;
}

/// Absolute, and with nothing in it that leads elsewhere.
std::vector<std::string> parse_folders(Object& rule, const Allowed& allowed) {
  std::vector<std::string> folders;
  for (const Item& item : rule.elements("make_dirs", "folders")) {
    std::string folder = parse_template(rule.context(), item, allowed);
    const std::vector<std::string_view> parts = split(folder, '/');
    const bool rooted = folder.starts_with("/") || folder.starts_with("${");
    const bool climbs = std::find(parts.begin(), parts.end(), "..") != parts.end();
    if (!folder.empty() && (!rooted || climbs)) {
      rule.context().fault(item, fmt::format("{} is not an absolute path", shown(folder)),
                           "start it with '/' or ${fact}, and leave \"..\" out");
    }
    folders.push_back(std::move(folder));
  }
  return folders;
}

std::optional<Report> parse_report(Object& rule, const Allowed& allowed) {
  std::optional<Report> report;
  rule.object("report", [&](Object& object) {
    report = Report{object.choice("severity", kSeverities, Need::required),
                    parse_template(rule.context(), object.find("message", Need::required), allowed),
                    object.text("fix")};
  });
  return report;
}

/// A rule that sets a variable in one way and also in another contradicts itself.
void check_once(Object& object) {
  std::map<std::string, std::string> seen;
  const auto note = [&](const std::string& name, const Item& at, const char* verb) {
    const auto [first, added] = seen.emplace(name, verb);
    if (added) return;
    object.context().fault(
        at, fmt::format("{} is in both \"{}\" and \"{}\"", shown(name), first->second, verb),
        "make it two rules, or remove one");
  };
  const std::string& pointer = object.at().pointer;
  for (const char* verb : {"default", "require", "prepend"}) {
    const Json* values = object.at().json->find(verb);
    if (values == nullptr) continue;
    for (const Member& member : values->members)
      note(member.key, {&member.value, pointer + step(verb) + step(member.key)}, verb);
  }
  const Json* unset = object.at().json->find("unset");
  for (std::size_t i = 0; unset != nullptr && i < unset->items.size(); ++i)
    note(unset->items[i].text, {&unset->items[i], pointer + "/unset" + step(i)}, "unset");
}

}  // namespace

Rule parse_rule(Object& object) {
  Rule rule;
  rule.id = object.word("id", Need::required);
  rule.when = parse_when(object, {.late = true});
  const Allowed allowed{.late = is_late(rule.when)};
  rule.defaults = parse_assignments(object, "default", allowed.late);
  rule.require = parse_assignments(object, "require", allowed.late);
  rule.prepend = parse_assignments(object, "prepend", allowed.late);
  rule.unset = object.variable_names("unset");
  rule.launch = parse_words(object, "launch", kLauncherNames, allowed);
  rule.batch = parse_words(object, "batch", kSchedulers, allowed);
  rule.core_limit = parse_core_limit(object);
  rule.make_dirs = parse_folders(object, allowed);
  rule.report = parse_report(object, allowed);
  rule.origin = parse_origin(object, Need::required);
  check_once(object);
  object.need_one_of({"default", "require", "prepend", "unset", "launch", "batch", "core_limit",
                      "make_dirs", "report"},
                     "the rule does nothing");
  return rule;
}

}  // namespace hpclaunch::profile
