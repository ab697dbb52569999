#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "authoring/review.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

// A set such as [lL] says which letter it is; [a-z] and [!x] say next to nothing.
bool is_wide_set(std::string_view set) {
  return set.find('-') != std::string_view::npos || set.starts_with("!") || set.starts_with("^");
}

// Nothing but wildcards and what every name has: matches machines of any site.
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

void check_signal(const Profile& profile, const Signal& signal, std::vector<Remark>& remarks) {
  if (!signal.proves || !matches_all(signal.like)) return;
  remarks.push_back(
      {"proves-all", Severity::error,
       signal.env.empty()
           ? fmt::format(
                 "detect: the pattern \"{}\" matches hosts of any site, and proves this one",
                 signal.like)
           : fmt::format("detect: any {} matches \"{}\", and proves this site", signal.env,
                         signal.like),
       "name what only this site has, or add \"proves\": false", profile.where});
}

// Forms that tokens have, whatever they are called.
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

void check_secrets(const Rule& rule, std::vector<Remark>& remarks) {
  for (const std::vector<Assignment>* list : {&rule.defaults, &rule.require, &rule.prepend})
    for (const Assignment& one : *list) {
      const bool named = is_secret(one.name) && is_constant(one.value) && !one.value.text.empty();
      if (named || looks_secret(one.value.text))
        remarks.push_back({"secret", Severity::error,
                           fmt::format("rule {}: the value of {} looks like a secret, and every "
                                       "user can read a profile",
                                       rule.id, one.name),
                           fmt::format("let users export {} themselves", one.name),
                           rule.origin.where});
    }
}

void check_directories(const Rule& rule, std::vector<Remark>& remarks) {
  constexpr std::array<std::string_view, 7> kLocal = {
      "/tmp/", "/var/tmp/",     "/dev/shm/",          "/local/",
      "/mnt/", "${env.TMPDIR}", "${env.SLURM_TMPDIR}"};
  for (const std::string& dir : rule.make_dirs) {
    const bool local = std::any_of(kLocal.begin(), kLocal.end(), [&](std::string_view place) {
      return std::string_view(dir).starts_with(place);
    });
    if (local) continue;
    remarks.push_back(
        {"shared-directory", Severity::warning,
         fmt::format(
             "rule {}: every node makes \"{}\", which does not look as if it were the node's own",
             rule.id, dir),
         "use a place below /tmp, /dev/shm, /local or /mnt", rule.origin.where});
  }
}

}  // namespace

void review_signals(const Profile& profile, std::vector<Remark>& remarks) {
  if (profile.part) return;
  if (profile.detect.empty())
    remarks.push_back({"no-signals", Severity::warning,
                       "nothing tells this site apart: it is used only with --profile",
                       "add \"detect\"", profile.where});
  for (const Signal& signal : profile.detect) check_signal(profile, signal, remarks);
}

void review_safety(const Profile& profile, std::vector<Remark>& remarks) {
  for (const Rule& rule : profile.rules) {
    if (rule.origin.profile != profile.name) continue;
    check_secrets(rule, remarks);
    check_directories(rule, remarks);
  }
}

}  // namespace hpclaunch::cli
