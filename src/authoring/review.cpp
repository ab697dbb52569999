// `profile validate`: variables, conditions, signals, secrets, and the age of sources.
#include "authoring/review.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/check.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

Severity severity_of(knowledge::Grade grade) {
  if (grade == knowledge::Grade::wrong) return Severity::error;
  return grade == knowledge::Grade::doubtful ? Severity::warning : Severity::note;
}

std::string rule_of(knowledge::Verdict::About about) {
  switch (about) {
    case knowledge::Verdict::About::unknown_name:
      return "unknown-variable";
    case knowledge::Verdict::About::old_name:
      return "old-variable";
    default:
      return "bad-value";
  }
}

/// Names and values of one entry against the catalogue.
struct Judging {
  const std::string what;
  const Origin& origin;
  std::vector<Diagnostic>& diagnostics;

  void add(const std::string& id, Severity severity, const knowledge::Verdict& verdict) {
    diagnostics.push_back({id, severity, fmt::format("{}: {}", what, verdict.message),
                           verdict.suggestion.empty() ? "" : "write " + verdict.suggestion,
                           origin.where});
  }

  // Rules may test or unset variables by their old or misspelt names.
  void name(const std::string& name) {
    const knowledge::Verdict verdict = knowledge::check(name, "");
    const bool unknown = verdict.about == knowledge::Verdict::About::unknown_name;
    if (unknown && !knowledge::find_misspelling(name))
      add("unknown-variable", Severity::warning, verdict);
  }

  // Values with facts are not known here.
  void values(const std::vector<Assignment>& assignments) {
    for (const Assignment& one : assignments) {
      const bool constant = one.value.each == Template::Each::once && facts_in(one.value).empty();
      const bool shown = constant && !is_secret(one.name);
      const Result<std::string> value =
          shown ? expand(one.value.text, Facts()) : Result<std::string>(std::string());
      const knowledge::Verdict verdict = knowledge::check(one.name, value ? *value : "");
      if (verdict.grade != knowledge::Grade::fine)
        add(rule_of(verdict.about), severity_of(verdict.grade), verdict);
    }
  }
};

int months_of(const std::string& day) {
  constexpr int kYear = 12;
  const std::vector<std::string_view> parts = split(day, '-');
  if (parts.size() < 2) return 0;
  return static_cast<int>(parse_natural(parts[0]).value_or(0) * kYear +
                          parse_natural(parts[1]).value_or(0));
}

// 18 months and a day are too old, 18 months are not.
bool too_old(const std::string& checked, const std::string& today) {
  constexpr int kMonths = 18;
  const int months = months_of(today) - months_of(checked);
  return months > kMonths || (months == kMonths && today.substr(7) > checked.substr(7));
}

struct Question {
  const char* rule;
  const char* name;
  void (*ask)(const Profile&, std::vector<Diagnostic>&);
};

constexpr Question kQuestions[] = {
    {"catalogue", "variables and values are known", review_variables},
    {"conditions", "conditions can hold", review_conditions},
    {"roles", "helper cores used by values are defined", review_roles},
    {"signals", "the site can be detected and is not confused with others", review_signals},
    {"safety", "no secrets; directories are local to the node", review_safety},
};

}  // namespace

std::vector<OwnEntry> own_entries(const Profile& profile) {
  std::vector<OwnEntry> all;
  const auto add = [&](const std::string& what, std::vector<const When*> when,
                       const Origin& origin) {
    if (origin.profile == profile.name) all.push_back({what, std::move(when), &origin});
  };
  if (profile.retired) add("retired", {}, profile.retired->origin);
  for (const NodeModel& one : profile.nodes) add("node " + one.name, {&one.when}, one.origin);
  for (const Stack& one : profile.stacks) {
    std::vector<const When*> when;
    for (const When& each : one.when) when.push_back(&each);
    add("stack " + one.name, std::move(when), one.origin);
  }
  for (const DeviceMode& one : profile.device_modes) add("device mode " + one.name, {}, one.origin);
  for (const Binding& one : profile.bindings) add("binding " + one.id, {&one.when}, one.origin);
  for (const Rule& one : profile.rules) add("rule " + one.id, {&one.when}, one.origin);
  for (const Note& one : profile.notes) add("note " + one.id, {}, one.origin);
  return all;
}

void review_variables(const Profile& profile, std::vector<Diagnostic>& diagnostics) {
  for (const Rule& rule : profile.rules) {
    if (rule.origin.profile != profile.name) continue;
    Judging judging{"rule " + rule.id, rule.origin, diagnostics};
    judging.values(rule.defaults);
    judging.values(rule.require);
    for (const Assignment& one : rule.prepend) judging.name(one.name);
    for (const std::string& name : rule.unset) judging.name(name);
  }
  for (const DeviceMode& mode : profile.device_modes)
    if (mode.origin.profile == profile.name && !mode.mask.empty())
      Judging{"device mode " + mode.name, mode.origin, diagnostics}.name(mode.mask);
  for (const OwnEntry& entry : own_entries(profile))
    for (const When* when : entry.conditions)
      for (const Test& test : *when)
        for (const std::string_view group : {"env.", "value."})
          if (test.fact.starts_with(group))
            Judging{entry.what, *entry.origin, diagnostics}.name(test.fact.substr(group.size()));
}

void review_age(const Profile& profile, const std::string& today,
                std::vector<Diagnostic>& diagnostics) {
  std::map<std::string, std::vector<std::string>> old;
  std::map<std::string, SourceRef> first;
  for (const auto& [what, conditions, from] : own_entries(profile)) {
    const Origin& origin = *from;
    const auto say = [&, &what = what](const std::string& message, const std::string& fix) {
      diagnostics.push_back(
          {"stale", Severity::warning, fmt::format("{}: {}", what, message), fix, origin.where});
    };
    if (!origin.source.empty() && origin.checked.empty())
      say("has a source but no date of the last comparison", "add \"checked\": \"YYYY-MM-DD\"");
    if (origin.checked.empty()) continue;
    if (origin.checked > today)
      say(fmt::format("compared with its source on {}, which is in the future", origin.checked),
          "write the date of the comparison");
    // A retired site no longer changes.
    if (profile.retired || !too_old(origin.checked, today)) continue;
    first.emplace(origin.checked, origin.where);
    old[origin.checked].push_back(what);
  }
  for (const auto& [day, entries] : old)
    diagnostics.push_back(
        {"stale", Severity::warning,
         fmt::format(
             "{}{}: last compared with the source on {}, more than 18 months ago", entries.front(),
             entries.size() == 1 ? "" : fmt::format(" and {} more", entries.size() - 1), day),
         "read the source again, then put today's date into \"checked\"", first[day]});
}

std::vector<Check> review(const LoadedProfile& loaded, const std::string& today) {
  std::vector<Check> checks = {unreadable(loaded, "validate", "schema")};
  if (!loaded.resolved) return checks;
  const Profile& profile = *loaded.resolved;
  for (const Question& question : kQuestions) {
    Check check{"validate", fmt::format("{}: {}", question.rule, question.name), profile.where};
    question.ask(profile, check.diagnostics);
    checks.push_back(std::move(check));
  }
  Check age{"validate", "sources: compared within 18 months", profile.where};
  review_age(profile, today, age.diagnostics);
  checks.push_back(std::move(age));
  return checks;
}

}  // namespace hpclaunch::authoring
