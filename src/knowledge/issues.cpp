// Versions that are known not to work together.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"
#include "knowledge/table.h"

namespace hpclaunch::knowledge {

namespace {

struct VersionTest {
  std::string_view component, order, bound;
};

std::vector<VersionTest> tests_of(const KnownIssue& issue) {
  std::vector<VersionTest> tests;
  const std::vector<std::string_view> words = issue.versions.all();
  for (std::size_t i = 0; i + 2 < words.size(); i += 3)
    tests.push_back({words[i], words[i + 1], words[i + 2]});
  return tests;
}

// "2.9.0" of "v2.9.0+cu128", "5.0.0" of "5.0.0rc12".
std::string_view plain(std::string_view version) {
  if (version.starts_with('v') || version.starts_with('V')) version.remove_prefix(1);
  version = version.substr(0, version.find_first_not_of("0123456789."));
  while (version.ends_with('.')) version.remove_suffix(1);
  return version;
}

bool in_order(std::string_view version, std::string_view order, std::string_view bound) {
  const std::optional<int> found = compare_versions(version, bound);
  if (!found) return false;
  if (order == "eq" || order == "ne") return (*found == 0) == (order == "eq");
  if (*found == 0) return order == "le" || order == "ge";
  return (*found < 0) == order.starts_with('l');
}

// A version in short stands for all that begin with it: the oldest and the newest must pass.
bool passes(const VersionTest& test, std::string_view version) {
  const std::string_view given = plain(version);
  const auto lacking = std::ranges::count(test.bound, '.') - std::ranges::count(given, '.');
  if (given.empty()) return false;
  std::string oldest(given), newest(given);
  for (auto i = lacking; i > 0; --i) {
    oldest += ".0";
    newest += ".999999";
  }
  return in_order(oldest, test.order, test.bound) && in_order(newest, test.order, test.bound);
}

// "Instinct MI250X" is of "MI250", "L40S" is not of "L4".
bool is_of_model(std::string_view model, std::string_view name) {
  const auto part = [](char c) { return std::isalnum(static_cast<unsigned char>(c)) != 0; };
  for (std::size_t at = 0; at + name.size() <= model.size(); ++at) {
    const std::size_t end = at + name.size();
    const bool begins = at == 0 || !part(model[at - 1]);
    const bool ends = end == model.size() || model[end] < '0' || model[end] > '9';
    if (begins && ends && to_lower(model.substr(at, name.size())) == to_lower(name)) return true;
  }
  return false;
}

bool concerns_gpus(const KnownIssue& issue, const Versions& versions) {
  if (issue.gpus.empty()) return true;
  const auto models = versions.find(kGpu);
  return models != versions.end() &&
         std::ranges::any_of(issue.gpus.all(), [&](std::string_view name) {
           return is_of_model(models->second, name);
         });
}

std::string_view effect_text(KnownIssueTraits::Effect effect) {
  constexpr std::array<std::string_view, 5> kTexts = {"does not start", "may crash", "may hang",
                                                      "may compute wrong results", "is slow"};
  return kTexts[static_cast<std::size_t>(effect)];
}

// "rccl 2.21.5 to 2.22.3", "rocm before 6.4.1"
std::string bounds_text(const std::vector<VersionTest>& tests) {
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 6> kWords = {
      {{"eq", ""},
       {"ne", "not "},
       {"lt", "before "},
       {"le", "up to "},
       {"gt", "after "},
       {"ge", "from "}}};
  std::string text;
  std::string_view before;
  for (const VersionTest& test : tests) {
    text += before.empty() ? "" : test.component == before ? " " : ", ";
    if (test.component != before) text += fmt::format("{} ", test.component);
    text += fmt::format(
        "{}{}",
        std::ranges::find(kWords, test.order, &std::pair<std::string_view, std::string_view>::first)
            ->second,
        test.bound);
    before = test.component;
  }
  return text;
}

}  // namespace

std::string component_of(std::string_view module) {
  // Modules whose name is not that of the component.
  static constexpr std::array<std::pair<std::string_view, std::string_view>, 4> kNames = {
      {{"cudatoolkit", "cuda"},
       {"nvidia-cuda", "cuda"},
       {"impi", "intel-mpi"},
       {"pytorch", "torch"}}};
  std::string name = to_lower(module.substr(0, module.find('/')));
  for (const auto& [other, component] : kNames)
    if (name == other) name = component;
  return name;
}

std::string add_module(std::string_view module, Versions& versions) {
  if (module.find('/') == std::string_view::npos) return "";
  const std::string_view version = plain(module.substr(module.rfind('/') + 1));
  if (version.empty()) return "";
  std::string name = component_of(module);
  versions[name] = version;
  return name;
}

Versions versions_of_modules(std::string_view loaded) {
  Versions versions;
  for (const std::string_view module : split(loaded, ':')) add_module(module, versions);
  return versions;
}

std::vector<std::pair<Library, std::string>> newer_than_read(const Versions& versions) {
  std::vector<std::pair<Library, std::string>> newer;
  for (std::size_t i = 0; i < count_libraries(); ++i) {
    const Library one = library_at(i);
    const auto installed = versions.find(one.component);
    if (one.release.empty() || installed == versions.end()) continue;
    const std::string_view read = one.release.substr(one.release.rfind(' ') + 1);
    if (compare_versions(plain(installed->second), read).value_or(0) > 0)
      newer.emplace_back(one, installed->second);
  }
  return newer;
}

std::vector<KnownIssue> known_issues(const Versions& versions, const Lookup& environment) {
  std::vector<KnownIssue> found;
  for (std::size_t i = 0; i < count_known_issues(); ++i) {
    const KnownIssue one = known_issue_at(i);
    const bool all = std::ranges::all_of(tests_of(one), [&](const VersionTest& test) {
      const auto version = versions.find(test.component);
      return version != versions.end() && passes(test, version->second);
    });
    if (all && concerns_gpus(one, versions) && conditions_hold(one.with, environment))
      found.push_back(one);
  }
  return found;
}

Severity severity(const KnownIssue& issue) {
  const std::vector<VersionTest> tests = tests_of(issue);
  const bool one = std::ranges::all_of(
      tests, [&](const VersionTest& test) { return test.component == tests.front().component; });
  const bool slow = issue.effect == KnownIssueTraits::Effect::slow;
  return slow || (one && issue.with.empty()) ? Severity::note : Severity::warning;
}

std::string sentence(const KnownIssue& issue, const Versions& versions) {
  std::vector<std::string> components;
  for (const VersionTest& test : tests_of(issue)) {
    const auto version = versions.find(test.component);
    std::string text =
        fmt::format("{} {}", test.component, version == versions.end() ? "" : version->second);
    if (std::ranges::count(components, text) == 0) components.push_back(std::move(text));
  }
  return fmt::format("{} {}: {}", joined(components, " with "), effect_text(issue.effect),
                     issue.why);
}

std::vector<std::pair<std::string, std::string>> issues_of(std::string_view component) {
  std::vector<std::pair<std::string, std::string>> facts;
  for (std::size_t i = 0; i < count_known_issues(); ++i) {
    const KnownIssue one = known_issue_at(i);
    const std::vector<VersionTest> tests = tests_of(one);
    if (std::ranges::count(tests, component, &VersionTest::component) == 0) continue;
    facts.emplace_back(facts.empty() ? "known issues" : "",
                       fmt::format("{}{}{} {}: {}; fix: {} ({})", bounds_text(tests),
                                   one.gpus.empty() ? "" : " on " + joined(one.gpus.all(), " or "),
                                   conditions_text(one.with, " "), effect_text(one.effect), one.why,
                                   one.fix, one.source));
  }
  return facts;
}

}  // namespace hpclaunch::knowledge
