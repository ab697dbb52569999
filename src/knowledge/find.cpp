// Look-ups in the compiled catalogue.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>
#include <array>
#include <bit>
#include <type_traits>

#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"
#include "knowledge/table.h"

namespace hpclaunch::knowledge {

namespace {

std::string_view text(std::uint32_t at) { return kTable.text + at; }

template <class Entry>
Entry entry_of(const Row<Entry>& row) {
  using Traits = typename Entry::Traits;
  Entry entry;
  static_cast<Traits&>(entry) = std::bit_cast<Traits>(row.traits);
  const std::uint32_t* at = row.texts.data();
  for (const auto member : kTexts<Entry>) entry.*member = text(*at++);
  for (const auto member : kLists<Entry>) entry.*member = {kTable.text + *at++};
  if constexpr (std::is_same_v<Entry, Variable>)
    entry.library = entry_of(kTable.libraries[row.library]);
  return entry;
}

template <class Entry>
std::optional<Entry> find_entry(std::span<const Row<Entry>> rows, std::string_view name) {
  const auto name_of = [](const Row<Entry>& row) { return text(row.texts[0]); };
  const auto row = std::ranges::lower_bound(rows, name, {}, name_of);
  if (row == rows.end() || name_of(*row) != name) return std::nullopt;
  return entry_of(*row);
}

}  // namespace

std::optional<Variable> find(std::string_view name) { return find_entry(kTable.variables, name); }

std::size_t count() { return kTable.variables.size(); }

Variable at(std::size_t index) { return entry_of(kTable.variables[index]); }

std::size_t count_libraries() { return kTable.libraries.size(); }

Library library_at(std::size_t index) { return entry_of(kTable.libraries[index]); }

std::optional<Library> find_library(std::string_view name) {
  for (const Row<Library>& row : kTable.libraries)
    if (text(row.texts[0]) == name) return entry_of(row);
  return std::nullopt;
}

std::optional<Misspelling> find_misspelling(std::string_view name) {
  return find_entry(kTable.misspellings, name);
}

std::size_t count_misspellings() { return kTable.misspellings.size(); }

Misspelling misspelling_at(std::size_t index) { return entry_of(kTable.misspellings[index]); }

std::optional<Family> find_family(std::string_view name) {
  const std::string wanted(name);
  const Row<Family>* best = nullptr;
  for (const Row<Family>& row : kTable.families) {
    const bool longer = best == nullptr || text(row.texts[0]).size() > text(best->texts[0]).size();
    if (longer && fnmatch(text(row.texts[0]).data(), wanted.c_str(), 0) == 0) best = &row;
  }
  return best == nullptr ? std::nullopt : std::optional(entry_of(*best));
}

std::size_t count_cautions() { return kTable.cautions.size(); }

Caution caution_at(std::size_t index) { return entry_of(kTable.cautions[index]); }

namespace {

bool holds(std::string_view condition, const Lookup& others) {
  const bool negated = condition.starts_with('!');
  if (negated) condition.remove_prefix(1);
  const std::size_t equals = condition.find('=');
  const std::optional<std::string> value = others(condition.substr(0, equals));
  if (equals == condition.npos || !value) return value.has_value() != negated;
  if (value->find('\x01') != std::string::npos) return false;
  return (*value == condition.substr(equals + 1)) != negated;
}

}  // namespace

std::string conditions_text(TextList with, std::string_view lead) {
  std::string text;
  for (const std::string_view one : with.all())
    text +=
        fmt::format("{}{} {}", text.empty() ? lead : " ", one.starts_with('!') ? "without" : "with",
                    one.substr(one.starts_with('!') ? 1 : 0));
  return text;
}

bool conditions_hold(TextList with, const Lookup& others) {
  return std::ranges::all_of(with.all(),
                             [&](std::string_view condition) { return holds(condition, others); });
}

std::size_t count_known_issues() { return kTable.known_issues.size(); }

KnownIssue known_issue_at(std::size_t index) { return entry_of(kTable.known_issues[index]); }

std::vector<Caution> cautions(std::string_view name, std::string_view value, const Lookup& others) {
  const auto name_of = [](const Row<Caution>& row) { return text(row.texts[0]); };
  std::vector<Caution> found;
  // Not std::ranges::equal_range: Clang 14 does not compile libstdc++'s subrange.
  auto row = std::ranges::lower_bound(kTable.cautions, name, {}, name_of);
  for (; row != kTable.cautions.end() && name_of(*row) == name; ++row) {
    const Caution one = entry_of(*row);
    const bool meant = one.values.empty() || std::ranges::count(one.values.all(), value) > 0;
    if (meant && conditions_hold(one.with, others)) found.push_back(one);
  }
  return found;
}

std::string_view code(CautionTraits::Kind kind) {
  constexpr std::array<std::string_view, 5> kCodes = {"slow-setting", "debug-setting",
                                                      "harmful-setting", "unneeded-setting",
                                                      "setting-without-effect"};
  return kCodes[static_cast<std::size_t>(kind)];
}

std::string sentence(const Caution& caution, std::string_view value) {
  constexpr std::size_t kMost = 60;
  return fmt::format("{}{}{}: {}{}{}{}", caution.name, value.empty() ? "" : "=",
                     shown(value, kMost), caution.why, caution.since.empty() ? "" : " (since ",
                     caution.since, caution.since.empty() ? "" : ")");
}

std::string_view to_string(Type type) {
  constexpr std::array<std::string_view, 13> kNames = {
      "yes or no", "integer", "size",          "time",         "number", "word",     "list",
      "text",      "path",    "list of paths", "list of CPUs", "range",  "algorithm"};
  return kNames[static_cast<std::size_t>(type)];
}

std::string_view to_string(Confidence confidence) {
  constexpr std::array<std::string_view, 3> kNames = {
      "read in the source", "from the documentation",
      "from scripts, strings in programs, or hearsay"};
  return kNames[static_cast<std::size_t>(confidence)];
}

}  // namespace hpclaunch::knowledge
