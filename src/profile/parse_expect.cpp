#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "parse.h"

namespace hpclaunch::profile {
namespace {

std::map<std::string, std::string> parse_variables(Object& object, const char* key) {
  std::map<std::string, std::string> variables;
  Context& context = object.context();
  for (const auto& [name, value] : object.members(key, "variables")) {
    const bool empty = value.json->kind == Json::Kind::string && value.json->text.empty();
    variables[context.variable_name(value, name)] = empty ? "" : context.text(value);
  }
  return variables;
}

/// Lists of numbers, one per rank, ':' between.
std::optional<std::string> parse_lists(Object& object, const char* key) {
  const Item at = object.find(key);
  if (!at) return std::nullopt;
  const std::string text = object.context().text(at);
  const std::vector<std::string_view> lists =
      text.empty() ? std::vector<std::string_view>() : split(text, ':');
  for (const std::string_view list : lists) {
    if (CpuSet::parse(list)) continue;
    object.context().fault(at, fmt::format("{} is not a list of numbers", shown(list)),
                           "write one list per rank, ':' between them: \"0-3:4-7\"");
    break;
  }
  return text;
}

/// As texts; an empty list says that there are none.
std::vector<std::string> parse_outcome(Object& object, const char* key, Case& one) {
  const Item at = object.find(key);
  const bool none = at.json->kind == Json::Kind::array && at.json->items.empty();
  if (none) one.none.emplace_back(key);
  return none ? std::vector<std::string>() : object.texts(key);
}

void check_something(Object& object) {
  static constexpr auto kKeys = {"argv",    "argv_has",   "argv_lacks", "cpus",
                                 "devices", "set",        "per_rank",   "absent",
                                 "batch",   "core_limit", "make_dirs",  "reports"};
  if (!object.has("refused")) return object.need_one_of(kKeys, "the case compares nothing");
  for (const char* key : kKeys)
    if (object.has(key))
      return object.context().fault(object.at(), "a refused case has nothing else to compare",
                                    "keep \"refused\" alone");
}

}  // namespace

Case parse_case(Object& object) {
  Context& context = object.context();
  Case one;
  one.name = object.text("name", Need::required);
  one.doc = object.text("doc");
  one.options = object.texts("options");
  one.env = parse_variables(object, "env");
  one.hosts = object.texts("hosts");
  one.program = object.texts("program");
  if (const Item argv = object.find("argv")) one.argv = context.texts(argv, "strings");
  one.argv_has = object.texts("argv_has");
  one.argv_lacks = object.texts("argv_lacks");
  one.cpus = parse_lists(object, "cpus");
  one.devices = parse_lists(object, "devices");
  one.set = parse_variables(object, "set");
  one.per_rank = parse_variables(object, "per_rank");
  one.absent = object.variable_names("absent");
  one.batch = parse_outcome(object, "batch", one);
  one.core_limit = parse_core_limit(object);
  one.make_dirs = parse_outcome(object, "make_dirs", one);
  one.reports = parse_outcome(object, "reports", one);
  if (const Item refused = object.find("refused")) one.refused = context.text(refused);
  one.origin = parse_origin(object, Need::optional);
  check_something(object);
  return one;
}

}  // namespace hpclaunch::profile
