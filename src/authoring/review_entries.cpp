// What the entries of a profile must not be: contradictory conditions, unknown names, signals that
// match every site, secrets, directories shared by nodes.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>

#include "authoring/review.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

using Op = Test::Op;

std::string or_list(const std::vector<std::string>& names) {
  return fmt::format("{}", fmt::join(names, ", "));
}

Diagnostic unknown_name(const std::string& what, const std::string& kind, const std::string& name,
                        const std::vector<std::string>& known, const Origin& origin) {
  const auto near = nearest(name, known);
  return {
      "unknown-" + kind, Severity::error, fmt::format("{}: unknown {} \"{}\"", what, kind, name),
      near ? fmt::format("did you mean \"{}\"?", *near) : "one of " + or_list(known), origin.where};
}

// Names that the profile itself lists; other closed lists are checked by the parser. A part does not know
// the lists of profiles that extend it.
std::map<std::string, std::vector<std::string>> listed_names(const Profile& profile) {
  std::map<std::string, std::vector<std::string>> listed = {
      {"stack", names_of(profile.stacks)},
      {"device_mode", names_of(profile.device_modes)},
      {"node_type", names_of(profile.nodes)}};
  if (profile.part) std::erase_if(listed, [](const auto& one) { return one.second.empty(); });
  if (!profile.nodes.empty()) listed["node_type"].emplace_back("live");
  return listed;
}

void check_names(const Profile& profile, const std::string& what, const When& when,
                 const Origin& origin, std::vector<Diagnostic>& diagnostics) {
  const auto listed = listed_names(profile);
  for (const Test& test : when) {
    const auto facts = listed.find(test.fact);
    if (facts == listed.end() || (test.op != Op::eq && test.op != Op::ne)) continue;
    for (const std::string& value : test.values)
      if (std::find(facts->second.begin(), facts->second.end(), value) == facts->second.end())
        diagnostics.push_back(unknown_name(what, test.fact, value, facts->second, origin));
  }
}

// Values to try on a set of tests of one fact. Order is tried for whole numbers only: between two versions
// there is always a third.
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
                          std::vector<Diagnostic>& diagnostics) {
  std::map<std::string, std::vector<Test>> by_fact;
  for (const Test& test : when) by_fact[test.fact].push_back(test);
  for (const auto& [fact, tests] : by_fact)
    if (!can_hold(fact, tests))
      diagnostics.push_back({"never-holds", Severity::warning,
                             fmt::format("{}: no {} satisfies {}", what, fact, when_text(tests)),
                             "change one of the tests, or remove the entry", origin.where});
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

// ---- signals and rules -------------------------------------------------------------------------------

// [lL] is specific; [a-z] and [!x] match almost anything.
bool is_wide_set(std::string_view set) {
  return set.find('-') != std::string_view::npos || set.starts_with("!") || set.starts_with("^");
}

// Only wildcards and separators: matches machines of any site.
bool matches_all(std::string_view pattern) {
  for (std::size_t at = 0; at < pattern.size(); ++at) {
    const std::size_t end = pattern[at] == '[' ? pattern.find(']', at) : std::string_view::npos;
    if (end != std::string_view::npos) {
      if (!is_wide_set(pattern.substr(at + 1, end - at - 1))) return false;
      at = end;
    } else if (std::string_view("*?.-").find(pattern[at]) == std::string_view::npos) {
      return false;
    }
  }
  return true;
}

void check_signal(const Profile& profile, const Signal& signal,
                  std::vector<Diagnostic>& diagnostics) {
  if (!signal.proves || !matches_all(signal.like)) return;
  diagnostics.push_back(
      {"proves-all", Severity::error,
       signal.env.empty()
           ? fmt::format("detect: host pattern \"{}\" matches every site", signal.like)
           : fmt::format("detect: every value of {} matches \"{}\"", signal.env, signal.like),
       "write a pattern of this site only, or add \"proves\": false", profile.where});
}

// Prefixes of known access tokens.
bool looks_secret(const std::string& value) {
  constexpr std::array<std::string_view, 8> kBegins = {
      "hf_", "ghp_", "github_pat_", "glpat-", "AKIA", "xoxb-", "sk-", "-----BEGIN"};
  constexpr std::size_t kShortest = 16;
  return value.size() >= kShortest &&
         std::any_of(kBegins.begin(), kBegins.end(),
                     [&](std::string_view begin) { return value.starts_with(begin); });
}

bool is_constant(const Template& value) {
  return value.each == Template::Each::once && facts_in(value).empty();
}

void check_secrets(const Rule& rule, std::vector<Diagnostic>& diagnostics) {
  for (const std::vector<Assignment>* list : {&rule.defaults, &rule.require, &rule.prepend})
    for (const Assignment& one : *list) {
      const bool named = is_secret(one.name) && is_constant(one.value) && !one.value.text.empty();
      if (named || looks_secret(one.value.text))
        diagnostics.push_back(
            {"secret", Severity::error,
             fmt::format(
                 "rule {}: the value of {} looks like a secret, and every user can read a profile",
                 rule.id, one.name),
             fmt::format("let users export {} themselves", one.name), rule.origin.where});
    }
}

void check_directories(const Rule& rule, std::vector<Diagnostic>& diagnostics) {
  constexpr std::array<std::string_view, 7> kLocal = {
      "/tmp/", "/var/tmp/",     "/dev/shm/",          "/local/",
      "/mnt/", "${env.TMPDIR}", "${env.SLURM_TMPDIR}"};
  for (const std::string& dir : rule.make_dirs) {
    const bool local = std::any_of(kLocal.begin(), kLocal.end(), [&](std::string_view place) {
      return std::string_view(dir).starts_with(place);
    });
    if (local) continue;
    diagnostics.push_back(
        {"shared-directory", Severity::warning,
         fmt::format("rule {}: directory \"{}\" does not look local to the node", rule.id, dir),
         "use a directory below /tmp, /dev/shm, /local or /mnt", rule.origin.where});
  }
}

}  // namespace

void review_conditions(const Profile& profile, std::vector<Diagnostic>& diagnostics) {
  for (const OwnEntry& entry : own_entries(profile))
    for (const When* when : entry.conditions) {
      const std::size_t before = diagnostics.size();
      check_names(profile, entry.what, *when, *entry.origin, diagnostics);
      if (diagnostics.size() == before)
        check_contradictions(entry.what, *when, *entry.origin, diagnostics);
    }
}

void review_roles(const Profile& profile, std::vector<Diagnostic>& diagnostics) {
  std::set<std::string> defined;
  for (const Binding& binding : profile.bindings)
    for (const Binding::Role& role : binding.roles) defined.insert(role.name);
  if (profile.part && profile.bindings.empty()) return;  // profiles that extend it define them
  const std::vector<std::string> known(defined.begin(), defined.end());
  for (const Rule& rule : profile.rules) {
    if (rule.origin.profile != profile.name) continue;
    for (const std::string& role : roles_of(rule)) {
      if (defined.count(role) > 0) continue;
      const auto near = nearest(role, known);
      diagnostics.push_back({"unknown-role", Severity::error,
                             fmt::format("rule {}: unknown role \"{}\"", rule.id, role),
                             near            ? fmt::format("did you mean ${{role.{}}}?", *near)
                             : known.empty() ? "add \"roles\" to the bindings"
                                             : "one of " + or_list(known),
                             rule.origin.where});
    }
  }
}

void review_signals(const Profile& profile, std::vector<Diagnostic>& diagnostics) {
  if (profile.part) return;
  if (profile.detect.empty())
    diagnostics.push_back({"no-signals", Severity::warning,
                           "no detection signal: the profile is used only with --profile",
                           "add \"detect\"", profile.where});
  for (const Signal& signal : profile.detect) check_signal(profile, signal, diagnostics);
}

void review_safety(const Profile& profile, std::vector<Diagnostic>& diagnostics) {
  for (const Rule& rule : profile.rules) {
    if (rule.origin.profile != profile.name) continue;
    check_secrets(rule, diagnostics);
    check_directories(rule, diagnostics);
  }
}

}  // namespace hpclaunch::authoring
