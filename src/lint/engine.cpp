#include "lint/engine.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <tuple>

#include "hpclaunch/plan.h"
#include "hpclaunch/text.h"

namespace hpclaunch::lint {

namespace {

constexpr Check kChecks[] = {check_variables,  check_catalogue, check_assignments, check_shell,
                             check_directives, check_requests,  check_pbs,         check_launches,
                             check_settings,   check_ranks,     check_places};

// ---- hpclaunch: ignore CODE[, CODE] REASON ----

struct Ignore {
  Span span;
  std::vector<std::string> codes;
  std::string reason;
  int line = 0;  // that it is about
  std::set<std::string> used = {};
};

std::vector<Ignore> read_ignores(const Shell& shell) {
  constexpr std::string_view kMark = "hpclaunch: ignore";
  std::vector<Ignore> all;
  for (const Comment& comment : shell.comments) {
    const std::string_view text = shell.at(comment.span);
    const std::size_t at = text.find(kMark);
    if (at == text.npos || !trim(text.substr(1, at - 1)).empty()) continue;
    Ignore one;
    one.span = comment.span;
    one.line = place_of(shell, comment.span.begin).line + (comment.alone ? 1 : 0);
    std::string_view rest = trim(text.substr(at + kMark.size()));
    for (bool more = true; more && !rest.empty();) {
      const std::size_t end = std::min(rest.find_first_of(", \t:"), rest.size());
      one.codes.emplace_back(rest.substr(0, end));
      rest.remove_prefix(end);
      more = rest.starts_with(',');
      rest = trim(rest.substr(std::min<std::size_t>(more ? 1 : 0, rest.size())));
    }
    one.reason = trim(rest);
    all.push_back(std::move(one));
  }
  return all;
}

void apply_ignores(const Shell& shell, Findings& findings) {
  std::vector<Ignore> ignores = read_ignores(shell);
  std::erase_if(findings.all(), [&](const Finding& one) {
    bool silent = false;
    for (Ignore& ignore : ignores) {
      const bool fits = ignore.line == one.diagnostic.where->line &&
                        std::ranges::count(ignore.codes, one.diagnostic.id) > 0 &&
                        !ignore.reason.empty();
      if (fits) ignore.used.insert(one.diagnostic.id);
      silent = silent || fits;
    }
    return silent;
  });
  for (const Ignore& one : ignores) {
    if (one.codes.empty() || one.reason.empty())
      findings.add("ignore-without-reason", one.span,
                   "this comment does not say why it ignores a finding");
    for (const std::string& code : one.codes) {
      if (find_rule(code) == nullptr)
        findings.add("ignore-unknown", one.span,
                     fmt::format("there is no rule \"{}\" to ignore", shown(code)));
      else if (!one.used.contains(code) && !one.reason.empty())
        findings.add("ignore-unused", one.span,
                     fmt::format("nothing here is reported as {}", code));
    }
  }
}

bool is_env_dump(std::string_view text, const std::string& file) {
  const std::string name = file.substr(file.rfind('/') + 1);
  if (name == ".env" || name.ends_with(".env")) return true;
  // What `env` and `export -p` print: NAME=value lines, unquoted blanks in values.
  int lines = 0;
  for (std::string_view line : split(text.substr(0, 4096), '\n')) {
    if (line.empty()) continue;
    for (const std::string_view word : {"declare -x ", "export "})  // export -p
      if (line.starts_with(word)) line.remove_prefix(word.size());
    if (lines > 0 && is_identifier(line)) continue;  // exported without a value
    if (!is_identifier(line.substr(0, line.find('='))) || line.find('=') == line.npos) return false;
    ++lines;
  }
  return lines > 1 &&
         (text.find("\nPATH=") != text.npos || text.find("\ndeclare -x PATH=") != text.npos ||
          text.find("\nexport PATH=") != text.npos);
}

}  // namespace

const Rule* find_rule(std::string_view code) {
  const std::span<const Rule> all = rows<Rule>();
  const auto found = std::ranges::lower_bound(all, code, {}, &Rule::code);
  return found == all.end() || found->code != code ? nullptr : &*found;
}

Finding& Findings::add(std::string_view code, Span span, std::string message, std::string fix) {
  const Rule* rule = find_rule(code);
  if (fix.empty() && rule != nullptr) fix = rule->fix;
  const Place begin = place_of(script_.shell, span.begin);
  const Place end = place_of(script_.shell, std::max(span.begin, span.end));
  Diagnostic diagnostic{std::string(code), rule == nullptr ? Severity::warning : rule->severity,
                        std::move(message), std::move(fix),
                        SourceRef{script_.file, begin.line, begin.column}};
  Finding finding;
  finding.diagnostic = std::move(diagnostic);
  finding.begin = span.begin;
  finding.end_line = end.line;
  finding.end_column = end.column;
  all_.push_back(std::move(finding));
  return all_.back();
}

std::string shown_value(std::string_view name, std::string_view value) {
  return is_secret(name, value) ? "..." : shown(value);
}

std::vector<Finding> check_text(std::string_view text, const std::string& file) {
  if (is_env_dump(text, file)) {  // every line is exported; what follows '=' is not shell text
    Script script = read_dump(text, file);
    Findings findings(script);
    check_variables(script, findings);
    check_catalogue(script, findings);
    return std::move(findings.all());
  }
  const Script script = read_script(text, file);
  Findings findings(script);
  for (const Check check : kChecks) check(script, findings);
  for (const Remark& remark : script.shell.remarks)
    findings.add("not-understood", remark.span, remark.text);
  const auto place = [](const Finding& one) {
    return std::tie(one.begin, one.diagnostic.id, one.diagnostic.message);
  };
  apply_ignores(script.shell, findings);
  std::ranges::stable_sort(findings.all(), std::less<>(), place);
  const auto key = [](const Finding& one) {
    return std::tuple(one.begin, std::string_view(one.diagnostic.id),
                      one.distinct ? std::string_view(one.diagnostic.message) : "");
  };
  // Not std::ranges::unique: Clang 14 does not compile libstdc++'s.
  const auto same = [&](const Finding& a, const Finding& b) { return key(a) == key(b); };
  findings.all().erase(std::unique(findings.all().begin(), findings.all().end(), same),
                       findings.all().end());
  return std::move(findings.all());
}

std::vector<Finding> check_environment(const EnvSnapshot& env) {
  std::string text;
  for (const auto& [name, value] : env.values()) {
    if (!is_identifier(name)) continue;
    text += name + "=" + replaced(value, {{'\n', " "}}) + "\n";
  }
  std::vector<Finding> found = check_text(text, ".env");
  for (Finding& one : found) {
    one.diagnostic.where = SourceRef{"<environment>"};
    one.edits.clear();
  }
  return found;
}

}  // namespace hpclaunch::lint
