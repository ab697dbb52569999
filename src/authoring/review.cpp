// `profile validate`: variables against the catalogue, contradictory conditions, unknown names, signals that match every
// site, secrets, directories shared by nodes, the age of sources. Each question looks at the profile's own entries
// only: those of a part are validated with the part.
#include "authoring/review.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <map>
#include <set>
#include <span>

#include "authoring/command.h"
#include "hpclaunch/json_reader.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

std::vector<OwnEntry> own_entries(const Profile& profile) {
  using Known = FactInfo::Known;
  std::vector<OwnEntry> all;
  const auto add = [&](const std::string& what,
                       std::vector<std::pair<std::string, const When*>> when, const Origin& origin,
                       Known step = Known::rule) {
    all.push_back({what, std::move(when), &origin, step});
  };
  const auto listed = [](const std::vector<When>& all_of, const std::string& place) {
    std::vector<std::pair<std::string, const When*>> when;
    for (std::size_t i = 0; i < all_of.size(); ++i)
      when.emplace_back(fmt::format("{}/{}", place, i), &all_of[i]);
    return when;
  };
  if (profile.retired) add("retired", {}, profile.retired->origin);
  for (const NodeModel& one : profile.nodes) {
    add("node " + one.name, {{"/when", &one.when}}, one.origin, Known::node);
    for (std::size_t i = 0; i < one.services.size(); ++i)
      add("service " + one.services[i].name,
          listed(one.services[i].when, fmt::format("/services/{}/when", i)), one.origin);
  }
  for (const Stack& one : profile.stacks)
    add("stack " + one.name, listed(one.when, "/when"), one.origin, Known::stack);
  for (const DeviceMode& one : profile.device_modes) add("device mode " + one.name, {}, one.origin);
  for (const Binding& one : profile.bindings)
    add("binding " + one.id, {{"/when", &one.when}}, one.origin, Known::binding);
  for (const Rule& one : profile.rules) add("rule " + one.id, {{"/when", &one.when}}, one.origin);
  for (const Note& one : profile.notes) add("note " + one.id, {}, one.origin);
  return all;
}

Diagnostic about(const std::string& what, const Origin& origin, const char* id, Severity severity,
                 const std::string& message, std::string fix, const std::string& below) {
  SourceRef where = origin.where;
  where.pointer += below;  // review() finds its line
  return {id, severity, fmt::format("{}: {}", what, message), std::move(fix), std::move(where)};
}

bool is_constant(const Template& value) {
  return value.each == Template::Each::once && facts_in(value).empty();
}

namespace {

/// Names and values of one entry against the catalogue.
struct Judging {
  const std::string what;
  const Origin& origin;
  std::vector<Diagnostic>& diagnostics;

  void add(const Diagnostic& found, const std::string& below) {
    diagnostics.push_back(about(what, origin, found.id.c_str(), found.severity, found.message,
                                found.fix.empty() ? "" : "write " + found.fix, below));
  }

  // Rules may test or unset variables by their old or misspelt names.
  void name(const std::string& name, const std::string& below) {
    const Diagnostic found = knowledge::check(name, "");
    if (found.id == knowledge::kUnknownVariable && !knowledge::find_misspelling(name))
      add(found, below);
  }

  // Values with facts are not known here.
  void values(const std::vector<Assignment>& assignments, const std::string& below) {
    for (const Assignment& one : assignments) {
      const bool shown = is_constant(one.value) && !is_secret(one.name, one.value.text);
      const Result<std::string> value =
          shown ? expand(one.value.text, Facts()) : Result<std::string>(std::string());
      const Diagnostic found = knowledge::check(one.name, value ? *value : "");
      if (!found.id.empty()) add(found, below + one.name);
    }
  }
};

// 18 months and a day are too old, 18 months are not.
bool too_old(const std::string& checked, const std::string& today) {
  constexpr int kYear = 12, kMonths = 18;
  const auto part = [&](std::size_t at, std::size_t size) {
    return static_cast<int>(parse_natural(today.substr(at, size)).value_or(0));
  };
  const int month = part(0, 4) * kYear + part(5, 2) - 1 - kMonths;
  return checked < fmt::format("{:04}-{:02}{}", month / kYear, month % kYear + 1, today.substr(7));
}

void review_variables(const Profile& profile, const Profile&,
                      std::vector<Diagnostic>& diagnostics) {
  for (const Rule& rule : profile.rules) {
    Judging judging{"rule " + rule.id, rule.origin, diagnostics};
    judging.values(rule.defaults, "/default/");
    judging.values(rule.require, "/require/");
    for (const Assignment& one : rule.prepend) judging.name(one.name, "/prepend/" + one.name);
    for (std::size_t i = 0; i < rule.unset.size(); ++i)
      judging.name(rule.unset[i], fmt::format("/unset/{}", i));
  }
  for (const DeviceMode& mode : profile.device_modes)
    if (!mode.mask.empty())
      Judging{"device mode " + mode.name, mode.origin, diagnostics}.name(mode.mask, "/mask");
  for (const OwnEntry& entry : own_entries(profile))
    for (const auto& [place, when] : entry.conditions)
      for (const Test& test : *when)
        for (const std::string_view group : {"env.", "value."})
          if (test.fact.starts_with(group))
            Judging{entry.what, *entry.origin, diagnostics}.name(test.fact.substr(group.size()),
                                                                 place + "/" + test.fact);
}

void review_age(const Profile& profile, const std::string& today,
                std::vector<Diagnostic>& diagnostics) {
  std::map<std::string, std::vector<OwnEntry>> old;
  for (const OwnEntry& entry : own_entries(profile)) {
    if (entry.what.starts_with("service ")) continue;  // of a node
    const Origin& origin = *entry.origin;
    const auto say = [&](const std::string& message, const std::string& fix) {
      diagnostics.push_back(about(entry.what, origin, "stale", Severity::warning, message, fix));
    };
    if (!origin.source.empty() && origin.checked.empty())
      say("has a source but no date of the last comparison", "add \"checked\": \"YYYY-MM-DD\"");
    if (origin.checked.empty()) continue;
    if (origin.checked > today)
      say(fmt::format("compared with its source on {}, which is in the future", origin.checked),
          "write the date of the comparison");
    // A retired site no longer changes.
    if (!profile.retired && too_old(origin.checked, today)) old[origin.checked].push_back(entry);
  }
  for (const auto& [day, entries] : old) {
    const std::string more =
        entries.size() == 1 ? "" : fmt::format(" and {} more", entries.size() - 1);
    diagnostics.push_back(
        about(entries.front().what + more, *entries.front().origin, "stale", Severity::warning,
              fmt::format("last compared with the source on {}, more than 18 months ago", day),
              "read the source again, then put today's date into \"checked\""));
  }
}

std::vector<Assignment> assignments_of(const Rule& rule) {
  std::vector<Assignment> all;
  for (const auto* list : {&rule.defaults, &rule.require, &rule.prepend})
    all.insert(all.end(), list->begin(), list->end());
  return all;
}

// Whether `text` has `name` as a word.
bool mentions(std::string_view text, std::string_view name) {
  const auto inside = [&](std::size_t at) {
    return at < text.size() && consists_of(text.substr(at, 1), "_");
  };
  for (std::size_t at = text.find(name); at != text.npos; at = text.find(name, at + 1))
    if (!inside(at - 1) && !inside(at + name.size())) return true;
  return false;
}

// One sentence about several variables that names some of them.
void review_reasons(const Profile& profile, const Profile&, std::vector<Diagnostic>& diagnostics) {
  for (const Rule& rule : profile.rules)
    for (const auto& [key, sentence] :
         {std::pair("why", &rule.origin.why), std::pair("disputed", &rule.origin.disputed)}) {
      std::vector<std::string> named, silent;
      for (const std::string& name : variables_of(rule))
        (mentions(*sentence, name) ? named : silent).push_back(name);
      if (named.empty() || silent.empty()) continue;
      diagnostics.push_back(about(
          "rule " + rule.id, rule.origin, "partial-reason", Severity::warning,
          fmt::format("\"{}\" names {}, not {}", key, joined(named, ", "), joined(silent, ", ")),
          fmt::format("write one for each: \"{}\": {{\"{}\": \"...\"}}", key, named[0]),
          fmt::format("/{}", key)));
    }
}

std::set<std::string> roles_of(const Rule& rule) {
  constexpr std::string_view kGroup = "role.";
  std::set<std::string> roles;
  const auto add = [&](const std::string& text) {
    for (const std::string& fact : facts_in(Template{text, Template::Each::once, ""}))
      if (fact.starts_with(kGroup)) roles.insert(fact.substr(kGroup.size()));
  };
  for (const Assignment& one : assignments_of(rule)) add(one.value.text);
  for (const std::string& dir : rule.make_dirs) add(dir);
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

bool begins_with_any(std::string_view text, std::span<const std::string_view> begins) {
  return std::ranges::any_of(begins, [&](auto begin) { return text.starts_with(begin); });
}

void review_roles(const Profile& profile, const Profile& whole,
                  std::vector<Diagnostic>& diagnostics) {
  if (profile.part && whole.bindings.empty()) return;  // profiles that extend it define them
  std::set<std::string> defined;
  for (const Binding& binding : whole.bindings)
    for (const Binding::Role& role : binding.roles) defined.insert(role.name);
  const std::vector<std::string> known(defined.begin(), defined.end());
  for (const Rule& rule : profile.rules)
    for (const std::string& role : roles_of(rule)) {
      if (defined.contains(role)) continue;
      std::string fix = known.empty() ? "add \"roles\" to the bindings"
                                      : json_reader::suggestion_or_all(role, known);
      if (const auto near = nearest(role, known))
        fix = fmt::format("did you mean ${{role.{}}}?", *near);
      diagnostics.push_back(about("rule " + rule.id, rule.origin, "unknown-role", Severity::error,
                                  fmt::format("unknown role \"{}\"", role), std::move(fix)));
    }
}

void review_signals(const Profile& profile, const Profile&, std::vector<Diagnostic>& diagnostics) {
  if (profile.part) return;
  if (profile.detect.empty())
    diagnostics.push_back({"no-signals", Severity::warning,
                           "no detection signal: the profile is used only with --profile",
                           "add \"detect\"", profile.where});
  for (const Signal& signal : profile.detect)
    if (signal.proves && matches_all(signal.like))
      diagnostics.push_back(
          {"proves-all", Severity::error,
           signal.env.empty()
               ? fmt::format("detect: host pattern \"{}\" matches every site", signal.like)
               : fmt::format("detect: every value of {} matches \"{}\"", signal.env, signal.like),
           "write a pattern of this site only, or add \"proves\": false", profile.where});
}

void review_safety(const Profile& profile, const Profile&, std::vector<Diagnostic>& diagnostics) {
  constexpr std::array<std::string_view, 7> kLocal = {
      "/tmp/", "/var/tmp/",     "/dev/shm/",          "/local/",
      "/mnt/", "${env.TMPDIR}", "${env.SLURM_TMPDIR}"};
  for (const Rule& rule : profile.rules) {
    const auto add = [&](const char* id, Severity severity, const std::string& what,
                         const std::string& fix) {
      diagnostics.push_back(about("rule " + rule.id, rule.origin, id, severity, what, fix));
    };
    for (const Assignment& one : assignments_of(rule)) {
      if (is_secret(one.name, one.value.text) && is_constant(one.value) && !one.value.text.empty())
        add("secret", Severity::error,
            fmt::format("the value of {} looks like a secret, and every user can read a profile",
                        one.name),
            fmt::format("let users export {} themselves", one.name));
    }
    for (const std::string& dir : rule.make_dirs)
      if (!begins_with_any(dir, kLocal))
        add("shared-directory", Severity::warning,
            fmt::format("directory \"{}\" does not look local to the node", dir),
            "use a directory below /tmp, /dev/shm, /local or /mnt");
  }
}

struct ReviewStep {
  const char* rule;
  const char* name;
  void (*ask)(const Profile& own, const Profile& whole, std::vector<Diagnostic>&);
};

constexpr ReviewStep kReviewSteps[] = {
    {"catalogue", "variables and values are known", review_variables},
    {"reasons", "each variable has its own reason", review_reasons},
    {"conditions", "conditions can hold", review_conditions},
    {"options", "words for launchers and batch systems are options", review_options},
    {"interfaces", "nodes have the network interfaces that values name", review_interfaces},
    {"roles", "helper cores used by values are defined", review_roles},
    {"signals", "the site can be detected and is not confused with others", review_signals},
    {"safety", "no secrets; directories are local to the node", review_safety},
};

}  // namespace

std::vector<Check> review(const LoadedProfile& loaded, const std::string& today) {
  std::vector<Check> checks = {unreadable(loaded, "validate", "schema")};
  if (!loaded.resolved) return checks;
  const Profile& profile = loaded.own;
  for (const ReviewStep& question : kReviewSteps) {
    Check check{"validate", fmt::format("{}: {}", question.rule, question.name), profile.where};
    question.ask(profile, *loaded.resolved, check.diagnostics);
    checks.push_back(std::move(check));
  }
  Check age{"validate", "sources: compared within 18 months", profile.where};
  review_age(profile, today, age.diagnostics);
  checks.push_back(std::move(age));
  for (Check& check : checks) {
    for (Diagnostic& one : check.diagnostics)
      if (one.where) one.where = loaded.place(*one.where);
    // A variable may be asked for twice in one condition.
    const auto repeated = std::unique(check.diagnostics.begin(), check.diagnostics.end());
    check.diagnostics.erase(repeated, check.diagnostics.end());
  }
  return checks;
}

}  // namespace hpclaunch::authoring
