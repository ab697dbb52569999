#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "parse.h"

namespace hpclaunch::profile {
namespace {

std::map<std::string, std::string> parse_variables(const Item& at) {
  std::map<std::string, std::string> variables;
  for (const Item& value : at.members("variables")) {
    const bool empty = value->kind == Json::Kind::string && value->text.empty();
    variables[value.variable(value->key)] = empty ? "" : value.text();
  }
  return variables;
}

/// Names alone, or each with a text: {"job.env": "A=1\n"}.
std::map<std::string, std::string> parse_named(const Item& at) {
  std::map<std::string, std::string> named;
  if (at->kind == Json::Kind::object)
    for (const Item& one : at.members("texts"))
      named[one->key] = one->kind == Json::Kind::string ? one->text : one.text();
  else
    for (std::string& name : at.texts()) named[std::move(name)] = "";
  return named;
}

/// Lists of numbers, one per rank, ':' between.
std::optional<std::string> parse_lists(const Item& at) {
  if (!at) return std::nullopt;
  const std::string text = at.text();
  for (const std::string_view list : split(text, ':')) {
    if (text.empty() || CpuSet::parse(list)) continue;
    at.fault(fmt::format("{} is not a list of numbers", shown(list)),
             "write one list per rank, ':' between them: \"0-3:4-7\"");
    break;
  }
  return text;
}

/// As texts; an empty list says that there are none.
std::vector<std::string> parse_outcome(const Item& at, Case& one) {
  if (at->kind != Json::Kind::array || !at->items.empty()) return at.texts();
  one.none.push_back(at->key);
  return {};
}

void check_something(const Item& at) {
  static constexpr auto kKeys = {"refused",    "argv",      "argv_has", "argv_lacks", "cpus",
                                 "devices",    "set",       "per_rank", "absent",     "batch",
                                 "core_limit", "make_dirs", "reports"};
  at.need_one_of(kKeys, "the case compares nothing");
  const auto given = std::ranges::count_if(kKeys, [&](const char* key) { return bool(at[key]); });
  if (at["refused"] && given > 1)
    at.fault("a refused case has nothing else to compare", "keep \"refused\" alone");
}

}  // namespace

Case parse_case(const Item& at) {
  Case one;
  one.name = at.need("name").text();
  one.doc = at["doc"].text();
  one.options = at["options"].texts();
  one.env = parse_variables(at["env"]);
  one.hosts = at["hosts"].texts();
  one.programs = parse_named(at["programs"]);
  one.files = parse_named(at["files"]);
  one.launcher_version = at["launcher_version"].text();
  one.user = at["user"].text();
  one.job_id = at["job_id"].text();
  one.program = at["program"].texts();
  if (const Item argv = at["argv"]) one.argv = argv.texts();
  one.argv_has = at["argv_has"].texts();
  one.argv_lacks = at["argv_lacks"].texts();
  one.cpus = parse_lists(at["cpus"]);
  one.devices = parse_lists(at["devices"]);
  one.set = parse_variables(at["set"]);
  one.per_rank = parse_variables(at["per_rank"]);
  one.absent = at["absent"].variables();
  one.batch = parse_outcome(at["batch"], one);
  one.core_limit = parse_core_limit(at["core_limit"]);
  one.make_dirs = parse_outcome(at["make_dirs"], one);
  one.reports = parse_outcome(at["reports"], one);
  if (const Item refused = at["refused"]) one.refused = refused.text();
  one.origin = parse_origin(at);
  check_something(at);
  return one;
}

}  // namespace hpclaunch::profile
