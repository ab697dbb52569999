#include "check_variables.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/knowledge.h"

namespace hpclaunch {

namespace {

using knowledge::Grade;
using knowledge::Verdict;

const char* rule_of(Verdict::About about) {
  switch (about) {
    case Verdict::About::unknown_name:
      return "unknown-variable";
    case Verdict::About::old_name:
      return "old-variable";
    case Verdict::About::value:
      return "bad-value";
    case Verdict::About::nothing:
      break;
  }
  return "";
}

Severity severity_of(Grade grade) {
  if (grade == Grade::wrong) return Severity::error;
  return grade == Grade::doubtful ? Severity::warning : Severity::note;
}

// The value of a secret is not checked, as messages would show it; its name is.
Verdict verdict_of(const std::string& name, const std::string& value) {
  return knowledge::check(name, is_secret(name) ? "" : value);
}

// A newer name is suggested without a value, which may have another meaning there.
std::string fix_of(const Verdict& verdict, const char* how) {
  if (verdict.suggestion.empty()) return "";
  const bool old = verdict.about == Verdict::About::old_name;
  return fmt::format("{} {}", old ? "hpclaunch explain" : how, verdict.suggestion);
}

void typed(const Setting& setting, std::vector<Diagnostic>& diagnostics) {
  const Decision& last = setting.history.back();
  const auto* value = std::get_if<std::string>(&last.value);
  if (last.layer != Layer::command_line || value == nullptr) return;
  const Verdict verdict = verdict_of(setting.name, *value);
  if (verdict.grade == Grade::fine) return;
  diagnostics.push_back({rule_of(verdict.about), severity_of(verdict.grade), verdict.message,
                         fix_of(verdict, "--set")});
}

void exported(const std::string& name, const std::string& value,
              std::vector<Diagnostic>& diagnostics) {
  const Verdict verdict = verdict_of(name, value);
  if (verdict.grade != Grade::doubtful && verdict.grade != Grade::wrong) return;
  std::string fix = fix_of(verdict, "export");
  if (fix.empty()) fix = fmt::format("unset {}", name);
  diagnostics.push_back({rule_of(verdict.about), Severity::warning,
                         fmt::format("exported: {}", verdict.message), fix});
}

}  // namespace

void check_variables(const Plan& plan, const EnvSnapshot& env,
                     std::vector<Diagnostic>& diagnostics) {
  for (const Setting& setting : plan.env) {
    typed(setting, diagnostics);
    if (setting.history.back().layer != Layer::environment) continue;
    if (const std::string* value = env.find(setting.name))
      exported(setting.name, *value, diagnostics);
  }
  for (std::size_t i = 0; i < knowledge::count_misspellings(); ++i) {
    const std::string_view wrong = knowledge::misspelling_at(i).wrong;
    const std::string* value = env.find(wrong);
    if (value != nullptr && plan.find_env(wrong) == nullptr)
      exported(std::string(wrong), *value, diagnostics);
  }
}

}  // namespace hpclaunch
