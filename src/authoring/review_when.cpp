#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <set>

#include "authoring/review.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

using Op = Test::Op;

std::string or_list(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

Remark unknown_name(const std::string& what, const std::string& kind, const std::string& name,
                    const std::vector<std::string>& known, const Origin& origin) {
  const auto near = nearest(name, known);
  return {"unknown-" + kind, Severity::error,
          fmt::format("{}: no {} is named \"{}\"", what, kind, name),
          near ? fmt::format("did you mean \"{}\"?", *near) : "one of " + or_list(known),
          origin.where};
}

template <class Entry>
std::vector<std::string> names_of(const std::vector<Entry>& entries) {
  std::vector<std::string> names;
  names.reserve(entries.size());
  for (const Entry& entry : entries) names.push_back(entry.name);
  return names;
}

std::vector<std::string> launcher_names() {
  std::vector<std::string> names;
  for (const Launcher& launcher : launchers()) names.emplace_back(launcher.name);
  return names;
}

// Facts whose values are a closed list. A part does not know the lists of those who extend it.
std::map<std::string, std::vector<std::string>> closed_facts(const Profile& profile) {
  std::map<std::string, std::vector<std::string>> closed = {
      {"even", {"yes", "no"}},
      {"gpu_view", {"own", "all", "launcher"}},
      {"in_job", {"yes", "no"}},
      {"launcher", launcher_names()},
      {"scheduler", {"pbs", "slurm", "flux", "lsf", "cobalt", "sge", "none"}},
  };
  const auto add = [&](const char* fact, std::vector<std::string> names) {
    if (!names.empty() || !profile.part) closed[fact] = std::move(names);
  };
  add("stack", names_of(profile.stacks));
  add("device_mode", names_of(profile.device_modes));
  std::vector<std::string> nodes = names_of(profile.nodes);
  if (!nodes.empty()) nodes.emplace_back("live");
  add("node_type", std::move(nodes));
  return closed;
}

void check_names(const Profile& profile, const std::string& what, const When& when,
                 const Origin& origin, std::vector<Remark>& remarks) {
  const auto closed = closed_facts(profile);
  for (const Test& test : when) {
    const auto facts = closed.find(test.fact);
    if (facts == closed.end() || (test.op != Op::eq && test.op != Op::ne)) continue;
    for (const std::string& value : test.values)
      if (std::find(facts->second.begin(), facts->second.end(), value) == facts->second.end())
        remarks.push_back(unknown_name(what, test.fact, value, facts->second, origin));
  }
}

// Values at which a set of tests of one fact would hold if any does. Order is only judged for facts that
// are whole numbers: between two versions there is always a third.
std::vector<std::string> candidates(const std::string& fact, const std::vector<Test>& tests) {
  static const std::set<std::string> kNumbers = {
      "devices", "live.cores",       "live.numa_nodes", "min_cores", "nodes",
      "ranks",   "ranks_per_device", "ranks_per_node",  "units"};
  std::vector<std::string> values;
  for (const Test& test : tests)
    if (test.op == Op::eq) return test.values;
  if (kNumbers.count(fact) == 0) return {};
  for (const Test& test : tests)
    for (const std::string& text : test.values)
      if (const auto number = parse_natural(text))
        for (const long n : {*number - 1, *number, *number + 1})
          if (n >= 0) values.push_back(std::to_string(n));
  return values;
}

bool can_hold(const std::string& fact, const std::vector<Test>& tests) {
  const bool must_lack = std::any_of(tests.begin(), tests.end(),
                                     [](const Test& test) { return test.op == Op::is_unset; });
  if (must_lack)
    return std::all_of(tests.begin(), tests.end(), [](const Test& test) {
      return test.op == Op::is_unset || test.op == Op::ne || test.op == Op::unlike;
    });
  const std::vector<std::string> values = candidates(fact, tests);
  if (values.empty()) return true;
  return std::any_of(values.begin(), values.end(), [&](const std::string& value) {
    Facts facts;
    facts.rank[fact] = value;
    return std::all_of(tests.begin(), tests.end(),
                       [&](const Test& test) { return holds(test, facts); });
  });
}

void check_contradictions(const std::string& what, const When& when, const Origin& origin,
                          std::vector<Remark>& remarks) {
  std::map<std::string, std::vector<Test>> by_fact;
  for (const Test& test : when) by_fact[test.fact].push_back(test);
  for (const auto& [fact, tests] : by_fact)
    if (!can_hold(fact, tests))
      remarks.push_back({"never-holds", Severity::warning,
                         fmt::format("{}: no {} is {}", what, fact, when_text(tests)),
                         "change one of the tests, or take the entry away", origin.where});
}

void roles_in(const std::string& text, std::set<std::string>& roles) {
  constexpr std::string_view kGroup = "role.";
  for (const std::string& fact : facts_in(Template{text, Template::Each::once, ""}))
    if (fact.starts_with(kGroup)) roles.insert(fact.substr(kGroup.size()));
}

std::set<std::string> roles_of(const Rule& rule) {
  std::set<std::string> roles;
  for (const std::vector<Assignment>* list : {&rule.defaults, &rule.require, &rule.prepend})
    for (const Assignment& one : *list) roles_in(one.value.text, roles);
  for (const std::string& dir : rule.make_dirs) roles_in(dir, roles);
  return roles;
}

}  // namespace

void each_when(const Profile& profile,
               const std::function<void(const std::string&, const When&, const Origin&)>& visit) {
  const auto own = [&](const std::string& what, const When& when, const Origin& origin) {
    if (origin.profile == profile.name) visit(what, when, origin);
  };
  for (const NodeModel& one : profile.nodes) own("node " + one.name, one.when, one.origin);
  for (const Stack& one : profile.stacks)
    for (const When& when : one.when) own("stack " + one.name, when, one.origin);
  for (const Binding& one : profile.bindings) own("binding " + one.id, one.when, one.origin);
  for (const Rule& one : profile.rules) own("rule " + one.id, one.when, one.origin);
}

void review_conditions(const Profile& profile, std::vector<Remark>& remarks) {
  each_when(profile, [&](const std::string& what, const When& when, const Origin& origin) {
    const std::size_t before = remarks.size();
    check_names(profile, what, when, origin, remarks);
    if (remarks.size() == before) check_contradictions(what, when, origin, remarks);
  });
}

void review_roles(const Profile& profile, std::vector<Remark>& remarks) {
  std::set<std::string> defined;
  for (const Binding& binding : profile.bindings)
    for (const Binding::Role& role : binding.roles) defined.insert(role.name);
  if (profile.part && profile.bindings.empty()) return;  // those who extend it bring them
  const std::vector<std::string> known(defined.begin(), defined.end());
  for (const Rule& rule : profile.rules) {
    if (rule.origin.profile != profile.name) continue;
    for (const std::string& role : roles_of(rule)) {
      if (defined.count(role) > 0) continue;
      const auto near = nearest(role, known);
      remarks.push_back({"unknown-role", Severity::error,
                         fmt::format("rule {}: no binding has the role \"{}\"", rule.id, role),
                         near            ? fmt::format("did you mean ${{role.{}}}?", *near)
                         : known.empty() ? "add \"roles\" to the bindings that the rule goes with"
                                         : "one of " + or_list(known),
                         rule.origin.where});
    }
  }
}

std::string when_text(const When& when) {
  static const std::map<Op, std::string> kSigns = {
      {Op::eq, "="}, {Op::ne, "is not"}, {Op::lt, "<"},      {Op::le, "<="},
      {Op::gt, ">"}, {Op::ge, ">="},     {Op::like, "like"}, {Op::unlike, "unlike"}};
  std::vector<std::string> tests;
  for (const Test& test : when) {
    if (test.op == Op::is_set || test.op == Op::is_unset) {
      tests.push_back(test.fact + (test.op == Op::is_set ? " is set" : " is not set"));
      continue;
    }
    std::vector<std::string> values;
    for (const std::string& value : test.values) values.push_back(value.empty() ? "\"\"" : value);
    tests.push_back(
        fmt::format("{} {} {}", test.fact, kSigns.at(test.op), fmt::join(values, " or ")));
  }
  return fmt::format("{}", fmt::join(tests, ", "));
}

std::string template_text(const Template& value) {
  if (value.each == Template::Each::once) return value.text;
  return fmt::format("{} (once per {}, \"{}\" between)", value.text,
                     value.each == Template::Each::rank ? "local rank" : "unit", value.join);
}

}  // namespace hpclaunch::cli
