// What the catalogue of environment variables says of each that a script sets.
#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpclaunch/knowledge.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/secret.h"
#include "hpclaunch/text.h"
#include "lint/engine.h"
#include "lint/values.h"
#include "lint/words.h"

namespace hpclaunch::lint {

namespace {

using How = Setting::How;

// A new name in place of the old one; not where the script sets the new one as well.
void rename(const Script& script, const Setting& setting, Finding& finding) {
  const std::string& fix = finding.diagnostic.fix;
  const std::string name = fix.substr(0, fix.find('='));
  const Shell& shell = script.shell;
  if (!is_identifier(name) || name == setting.name || script.by_name.contains(name)) return;
  if (shell.at(setting.name_span) != setting.name) return;
  finding.edits = {{setting.name_span.begin, setting.name_span.end, name}};
  finding.certain = finding.diagnostic.severity == Severity::error;
}

// The value that was probably meant: to be looked at before it is applied.
void correct(const Script& script, const Setting& setting, Finding& finding) {
  const std::string& fix = finding.diagnostic.fix;
  const std::size_t equals = fix.find('=');
  const bool plain = script.shell.at(setting.value_span) == setting.value.text;
  if (equals == std::string::npos || fix.ends_with("=...") || !plain || setting.value_span.empty())
    return;
  finding.edits = {{setting.value_span.begin, setting.value_span.end, fix.substr(equals + 1)}};
}

void check_setting(const Script& script, const Setting& setting, bool used,
                   const knowledge::Versions& versions, Findings& findings) {
  const bool known =
      setting.value.known() && !setting.array && !is_secret(setting.name, setting.value.text);
  // An assignment that stays in the shell may be the script's own affair: its value is judged where it is exported.
  const Diagnostic found =
      knowledge::check(setting.name, known ? setting.value.text : "", versions);
  if (found.id.empty()) return;
  if (!setting.exported && found.id == knowledge::kBadValue) return;
  // A name that the script itself uses is its own, unless it is nearly that of a library.
  const bool own = used && (!setting.exported || found.fix.empty());
  if (found.id == knowledge::kUnknownVariable && own) return;
  // NAME=$NEW_NAME, or both names set: for older and newer versions.
  const bool both = found.id == knowledge::kOldVariable && !found.fix.empty() &&
                    (script.by_name.contains(found.fix) ||
                     script.shell.at(setting.value_span).find(found.fix) != std::string::npos);
  if (both) return;
  // What hpclaunch prints has the names that a site's libraries read.
  if (found.id == knowledge::kOldVariable && found.severity == Severity::note &&
      script.by_name.contains("HPCLAUNCH_PLAN"))
    return;
  const Span span = found.id == knowledge::kBadValue && !setting.value_span.empty()
                        ? setting.value_span
                        : setting.name_span;
  Finding& finding = findings.add(found.id, span, found.message, found.fix);
  finding.diagnostic.severity = found.severity;
  if (found.id == knowledge::kBadValue)
    correct(script, setting, finding);
  else
    rename(script, setting, finding);
}

// $NAME or ${NAME} in a command, each with its name's place.
template <class See>
void for_each_use(const Shell& shell, See see) {
  for (const Command& command : shell.commands) {
    const std::string_view text = shell.at(command.span);
    for (std::size_t at = 0; (at = text.find('$', at)) != text.npos;) {
      at += at + 1 < text.size() && text[at + 1] == '{' ? 2 : 1;
      std::size_t end = at;
      while (end < text.size() && is_name_char(text[end])) ++end;
      if (end > at)
        see(text.substr(at, end - at), span_of(command.span.begin + at, command.span.begin + end));
      at = end;
    }
  }
}

// NAME=${NAME:-value} is no use of its own.
std::set<std::string_view> names_used(const Shell& shell) {
  std::set<std::string_view> names;
  for_each_use(shell, [&](std::string_view name, Span span) {
    const auto command = std::ranges::upper_bound(
        shell.commands, span.begin, {}, [](const Command& one) { return one.span.begin; });
    const bool own =
        command != shell.commands.begin() &&
        std::ranges::any_of((command - 1)->assignments, [&](const Assignment& one) {
          return one.name == name && one.span.begin <= span.begin && span.end <= one.span.end;
        });
    if (!own) names.insert(name);
  });
  return names;
}

// $SLURM_JOB_NODELIS: a batch system's variable that is nearly right.
void check_reads(const Script& script, Findings& findings) {
  std::set<std::string_view> seen;
  for_each_use(script.shell, [&](std::string_view name, Span span) {
    const bool of_system = begins_with_one(words_named("job prefixes"), name);
    if (!of_system || script.by_name.contains(name) || !seen.insert(name).second) return;
    const Diagnostic found = knowledge::check(name, "");
    if (found.id != knowledge::kUnknownVariable || found.fix.empty()) return;
    Finding& finding = findings.add(found.id, span, found.message, found.fix);
    finding.edits = {{span.begin, span.end, found.fix}};
  });
}

void add_secret(std::string_view name, std::string_view value, Span span, Findings& findings) {
  if (value.size() > 7 && value.front() != '/')
    findings.add("secret-in-script", span, fmt::format("{} has a secret value in this file", name));
}

void check_secret(const Setting& setting, Findings& findings) {
  if (setting.value.known() && is_secret(setting.name, setting.value.text))
    add_secret(setting.name, setting.value.text, setting.name_span, findings);
}

// "wandb login KEY", "python train.py --hf_token hf_...": what is no setting, and written as it is.
void check_secrets_of_commands(const Script& script, Findings& findings) {
  for (const Command& command : script.shell.commands) {
    std::vector<std::string> words;
    for (const Word& word : command.words) {
      bool plain = true;
      words.push_back(literal(word, &plain));
      if (!plain) words.back().clear();
    }
    if (words.empty() || words.front() == "echo" || words.front() == "printf") continue;
    for (const SecretWord& one : secrets_in(words)) {
      const Span span = command.words[one.word].span;
      const bool is_setting = std::ranges::any_of(script.settings, [&](const Setting& setting) {
        return span.begin <= setting.name_span.begin && setting.name_span.begin < span.end;
      });
      if (!is_setting)
        add_secret(one.name, words[one.word].substr(one.begin, one.end - one.begin), span,
                   findings);
    }
  }
}

}  // namespace

void check_variables(const Script& script, Findings& findings) {
  check_reads(script, findings);
  check_secrets_of_commands(script, findings);
  const std::set<std::string_view> used = names_used(script.shell);
  const knowledge::Versions versions = loaded_versions(script);
  for (const Setting& setting : script.settings) {
    if (setting.how == How::unset || setting.how == How::read) continue;
    if (setting.how == How::exported && setting.value_span.empty() &&
        script.shell.dialect == Dialect::posix &&
        script.by_name.find(setting.name)->second.size() > 1)
      continue;  // export NAME: the assignment is judged
    check_setting(script, setting, used.contains(setting.name), versions, findings);
    check_secret(setting, findings);
  }
}

}  // namespace hpclaunch::lint
