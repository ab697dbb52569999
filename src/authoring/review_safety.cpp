#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "authoring/review.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

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
             fmt::format("rule {}: the value of {} looks like a secret, and every "
                         "user can read a profile",
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
