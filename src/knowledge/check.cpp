#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"
#include "knowledge/table.h"

namespace hpclaunch::knowledge {

namespace {

bool suggestible(const Variable& v) {
  return v.removed.empty() && v.successor.empty() && !v.internal;
}

// Known names with the family's prefix: candidates for a misspelt name.
std::vector<std::string_view> relatives(std::string_view pattern) {
  std::vector<std::string_view> names;
  const std::string_view prefix = pattern.substr(0, pattern.find('*'));
  const auto name_of = [](const auto& row) -> std::string_view {
    return kTable.text + row.texts[0];
  };
  const auto rows = kTable.variables;
  for (auto row = std::ranges::lower_bound(rows, prefix, {}, name_of);
       row != rows.end() && name_of(*row).starts_with(prefix); ++row) {
    const Variable v = at(static_cast<std::size_t>(row - rows.begin()));
    if (suggestible(v)) names.push_back(v.name);
  }
  return names;
}

// In families that grow, a name counts as misspelt only when exactly one part between underscores differs,
// and that part is nearly right.
bool differs_in_one_part(std::string_view a, std::string_view b) {
  const std::vector<std::string_view> x = split(a, '_');
  const std::vector<std::string_view> y = split(b, '_');
  if (x.size() != y.size()) return false;
  int different = 0;
  for (std::size_t i = 0; i < x.size(); ++i) {
    if (x[i] == y[i]) continue;
    const std::vector<std::string> other = {std::string(y[i])};
    if (++different > 1 || x[i].size() < 3 || !nearest(x[i], other)) return false;
  }
  return different == 1;
}

std::string near_name(std::string_view name, const Family& family) {
  if (name.starts_with("RCCL_"))  // RCCL reads what NCCL reads under the name that it has there
    if (std::string of_nccl = fmt::format("N{}", name.substr(1)); find(of_nccl)) return of_nccl;
  const std::vector<std::string_view> names = relatives(family.pattern);
  const std::optional<std::string> near = nearest(name, names);
  // NCCL_IBDISABLE, and not NCCL_SHM_DISABLE for NCCL_SHARP_DISABLE
  const auto letters = [](std::string_view text) { return replaced(text, {{'_', ""}}); };
  const bool same = near && letters(name) == letters(*near);
  if (near && (same || differs_in_one_part(name, *near))) return *near;
  // NCCL_DISABLE_IB: the same parts in another order.
  const auto sorted = [](std::string_view text) {
    std::vector<std::string_view> parts = split(text, '_');
    std::ranges::sort(parts);
    return parts;
  };
  const std::vector<std::string_view> parts = sorted(name);
  const auto found = std::ranges::find_if(names, [&](std::string_view one) {
    return one.size() == name.size() && sorted(one) == parts;
  });
  return found == names.end() ? "" : std::string(*found);
}

// A value with shell characters is left for the user to fill in.
std::string assignment(std::string_view name, std::string_view value) {
  constexpr std::string_view kPlain =
      "abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ0123456789_.,:/+-=^%@";
  const bool plain = value.find_first_not_of(kPlain) == std::string_view::npos;
  if (value.empty()) return std::string(name);
  return fmt::format("{}={}", name, plain ? value : "...");
}

Diagnostic misspelt(const Misspelling& known, std::string_view name, std::string_view value) {
  std::string message = fmt::format("nothing reads {}", name);
  if (!known.certain) message += ", as far as known";
  if (!known.note.empty()) message += fmt::format(": {}", known.note);
  return {kUnknownVariable, known.certain ? Severity::error : Severity::warning, message,
          known.meant.empty() ? "" : assignment(known.meant, value)};
}

// NCCL_ROOT_DIR, NCCL_VERSION: where an installation is and which, for builds, images and scripts. No library reads it,
// and nobody means it to.
bool of_installation(std::string_view name, const Family& family) {
  constexpr std::array<std::string_view, 14> kParts = {
      "ROOT", "HOME", "DIR",     "PATH", "PREFIX", "BASE",    "VERSION",
      "LIB",  "BIN",  "INCLUDE", "SRC",  "BUILD",  "INSTALL", "LIBRARY"};
  const std::size_t prefix = family.pattern.find('*');
  return std::ranges::all_of(
      split(name.substr(std::min(prefix, name.size())), '_'),
      [&](std::string_view part) { return std::ranges::count(kParts, part) > 0; });
}

// "MPICH 5.0.1" for "mpich, cray-mpich": the family's first library counts.
std::optional<Library> library_of(const Family& family) {
  return find_library(family.library.substr(0, family.library.find(',')));
}

// Nothing is known of names that came later: a library may well read this one.
std::string not_known(std::string_view name, const Family& family) {
  const std::optional<Library> library = library_of(family);
  return fmt::format("{} is not known{}{}", name,
                     library && !library->release.empty() ? " up to " : "",
                     library ? library->release : "");
}

Diagnostic unknown(std::string_view name, std::string_view value, const Versions& versions) {
  const std::optional<Family> family = find_family(name);
  if (!family || family->unknown == Family::Unknown::open || of_installation(name, *family))
    return {};
  const std::string near = near_name(name, *family);
  if (near.empty() && family->unknown == Family::Unknown::near_miss) return {};
  Diagnostic found{kUnknownVariable, Severity::warning, not_known(name, *family),
                   near.empty() ? "" : assignment(near, value)};
  const std::optional<Library> library = library_of(*family);
  for (const auto& [newer, version] : newer_than_read(versions)) {
    if (!library || newer.component != library->component || found.severity == Severity::note)
      continue;
    found.severity = Severity::note;
    found.message += fmt::format(", and {} {} is here", newer.component, version);
  }
  if (!near.empty()) found.message += fmt::format("; did you mean {}?", near);
  return found;
}

Diagnostic check_value(const Variable& v, std::string_view name, std::string_view value) {
  const std::optional<Fault> fault = find_fault(v, value);
  if (!fault) return {};
  const bool sure = v.confidence == Confidence::source && !v.library.parser.empty();
  return {kBadValue, sure ? Severity::error : Severity::warning,
          fmt::format("{}={} {}", name, shown(value), fault->what),
          fault->meant.empty() ? "" : assignment(name, fault->meant)};
}

// Only the name is suggested: the meaning of values may have changed.
Diagnostic old_name(const Variable& v) {
  const bool works = v.removed.empty();
  return {kOldVariable, works ? Severity::note : Severity::warning,
          works ? fmt::format("{} was renamed to {}", v.name, v.successor)
                : fmt::format("{} is no longer read ({})", v.name, v.removed),
          std::string(v.successor)};
}

// MPIR_PARAM_X is the old name of MPIR_CVAR_X, and so on.
std::optional<Variable> find_by_family(std::string_view name) {
  const std::optional<Family> family = find_family(name);
  if (!family || family->stands_for == "-") return std::nullopt;
  const std::size_t prefix = family->pattern.find('*');
  return find(fmt::format("{}{}", family->stands_for, name.substr(std::min(prefix, name.size()))));
}

std::string range_text(const Variable& v) {
  if (v.lowest.empty() && v.highest.empty()) return "";
  if (v.highest.empty()) return fmt::format("{} or more", v.lowest);
  if (v.lowest.empty()) return fmt::format("at most {}", v.highest);
  return fmt::format("{} to {}", v.lowest, v.highest);
}

std::string commas(TextList words) { return joined(words.all(), ", "); }

std::string values_text(const Variable& v) {
  std::string text(to_string(v.type));
  if (v.numbers) text += " of integers";
  if (!v.unit.empty()) text += fmt::format(" in {}", v.unit);
  const std::string range = range_text(v);
  if (!range.empty()) text += ", " + range;
  if (!v.values.empty()) {
    text += fmt::format(": {}{}", commas(v.values), v.closed ? "" : ", ...");
    if (v.closed && v.type == Type::word)
      text += v.any_case ? " (case-insensitive)" : " (case-sensitive)";
  }
  if (v.type == Type::boolean)
    text += v.library.truths.empty()
                ? ": 1 or 0"
                : fmt::format(": {} or {}", commas(v.library.truths), commas(v.library.falsehoods));
  return text;
}

using Facts = std::vector<std::pair<std::string, std::string>>;

// One row for each caution of the variable: what is slow, harmful or unneeded, since when and by which source.
void add_cautions(std::string_view name, Facts& facts) {
  constexpr std::array kLabels = {"slow", "debugging", "harmful", "unneeded", "no effect"};
  for (std::size_t i = 0; i < count_cautions(); ++i) {
    const Caution one = caution_at(i);
    if (one.name != name) continue;
    std::string text = joined(one.values.all(), " or ");
    text += conditions_text(one.with, text.empty() ? "" : " ");
    if (!one.since.empty()) text += fmt::format("{}since {}", text.empty() ? "" : ", ", one.since);
    facts.emplace_back(
        kLabels[static_cast<std::size_t>(one.kind)],
        fmt::format("{}{}{} ({})", text, text.empty() ? "" : ": ", one.why, one.source));
  }
}

Facts describe_variable(const Variable& v) {
  const std::string value = values_text(v);
  const std::string library = v.library.title.empty()
                                  ? std::string(v.library.name)
                                  : fmt::format("{} ({})", v.library.title, v.library.name);
  std::string known(to_string(v.confidence));
  known += fmt::format(" on {}", v.library.read_on);
  if (!v.library.release.empty()) known += fmt::format(", up to {}", v.library.release);
  const std::pair<const char*, std::string_view> all[] = {
      {"what", v.what},
      {"library", library},
      {"accepts", value},
      {"form", v.syntax},
      {"default", v.standards.empty() ? v.standard : v.standards},
      {"since", v.since},
      {"removed", v.removed},
      {"newer name", v.successor},
      {v.direction == Direction::output ? "set by" : "read by", v.reader},
      {"needs", v.needs},
      {"note", v.note},
      {"known", known}};
  Facts facts;
  for (const auto& [label, text] : all)
    if (!text.empty()) facts.emplace_back(label, text);
  add_cautions(v.name, facts);
  return facts;
}

}  // namespace

Diagnostic check(std::string_view name, std::string_view value, const Versions& versions) {
  if (const std::optional<Misspelling> known = find_misspelling(name))
    return misspelt(*known, name, value);
  std::optional<Variable> v = find(name);
  if (!v) v = find_by_family(name);
  if (!v) return unknown(name, value, versions);
  if (!v->removed.empty()) return old_name(*v);
  Diagnostic bad = check_value(*v, name, value);
  return bad.id.empty() && !v->successor.empty() ? old_name(*v) : bad;
}

std::vector<std::pair<std::string, std::string>> describe(std::string_view name) {
  Facts facts;
  if (const std::optional<Misspelling> known = find_misspelling(name)) {
    facts.emplace_back("misspelt", misspelt(*known, name, "").message);
    if (!known->meant.empty()) facts.emplace_back("meant", known->meant);
    return facts;
  }
  if (const std::optional<Variable> v = find(name)) return describe_variable(*v);
  if (const std::optional<Variable> v = find_by_family(name)) {
    facts = describe_variable(*v);
    facts.emplace(facts.begin(), "stands for", v->name);
    return facts;
  }
  if (const std::optional<Family> family = find_family(name)) {
    const std::string near = near_name(name, *family);
    if (family->unknown != Family::Unknown::open)
      facts.emplace_back(
          "unknown",
          not_known(name, *family) + (near.empty() ? "" : fmt::format("; did you mean {}?", near)));
    facts.emplace_back("family", fmt::format("{} ({})", family->pattern, family->library));
    if (!family->rule.empty()) facts.emplace_back("rule", family->rule);
  }
  return facts;
}

}  // namespace hpclaunch::knowledge
