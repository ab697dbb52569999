// Options that exclude or need one another, and variables that are inherited from a job: rows of profiles/programs/requests.json.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/programs.h"
#include "hpclaunch/text.h"
#include "launcher/line.h"

namespace hpclaunch {

namespace {

// A version that is not known is the current one.
bool holds_in(std::string_view since, std::string_view until, std::string_view version) {
  if (version.empty()) return until.empty();
  return (since.empty() || compare_versions(version, since).value_or(0) >= 0) &&
         (until.empty() || compare_versions(version, until).value_or(1) < 0);
}

}  // namespace

bool Relations::Pattern::is(const GivenOption& given) const {
  if (option != given.name) return false;
  for (std::string_view rest = given.value;;) {
    if (rest.starts_with(value)) return true;
    const std::size_t comma = rest.find(',');
    if (comma == rest.npos) return false;
    rest.remove_prefix(comma + 1);
  }
}

Relations::Relations(std::string_view system, std::string_view where, std::string_view version)
    : mixed_(where == "mixed") {
  const auto add = [&](const auto& data, bool needs, bool ignored) {
    if (data.system != system || !has_word(data.where, where) ||
        !holds_in(data.since, data.until, version))
      return;
    Row row{data.id, data.since, ignored, needs, {}, {}, {}};
    const auto read = [](std::span<const Words> options, std::vector<Pattern>& patterns) {
      for (const Words names : options)
        for (const std::string_view one : names) {
          const std::size_t equals = std::min(one.find('='), one.size());
          patterns.push_back({one.substr(0, equals), one.substr(std::min(equals + 1, one.size()))});
        }
    };
    read(data.of, row.of);
    read(data.with, row.with);
    if (needs)
      for (const Words names : data.with) row.needed.emplace_back(names.front());
    rows_.push_back(std::move(row));
  };
  for (const Exclusion& one : rows<Exclusion>())
    add(one, false, one.effect == Exclusion::Effect::ignored);
  for (const Need& one : rows<Need>()) add(one, true, false);
}

bool Relations::concerns(const GivenOption& option) const {
  const auto is = [&](const Pattern& pattern) { return pattern.is(option); };
  return std::ranges::any_of(rows_, [&](const Row& row) {
    return std::ranges::any_of(row.of, is) || std::ranges::any_of(row.with, is);
  });
}

std::vector<BrokenRelation> Relations::broken(
    const std::vector<GivenOption>& options, std::size_t steps,
    const std::function<bool(std::string_view)>& has_variable) const {
  constexpr std::size_t kNone = BrokenRelation::kNone;
  const std::size_t end = options.size();
  const auto find = [&](const std::vector<Pattern>& patterns, std::size_t from, std::size_t to) {
    for (const Pattern& pattern : patterns)
      for (std::size_t i = from; i < to; ++i)
        if (pattern.is(options[i])) return i;
    return kNone;
  };
  std::vector<BrokenRelation> broken;
  for (const Row& row : rows_) {
    std::size_t first = find(row.of, 0, mixed_ ? steps : end);
    std::size_t second = find(row.with, mixed_ ? steps : 0, end);
    if (mixed_ && (first == kNone || second == kNone)) {
      first = find(row.of, steps, end);
      second = find(row.with, 0, steps);
    }
    if (first == kNone || (second == kNone) != row.needs) continue;
    if (row.needs && has_variable && std::ranges::any_of(row.needed, has_variable)) continue;
    broken.push_back({row.id, first, second, row.needed, row.ignored, row.since});
  }
  return broken;
}

EnvSnapshot submission_environment(std::string_view system, const EnvSnapshot& env) {
  std::map<std::string, std::optional<std::string>> changes;
  for (const Submission& row : rows<Submission>()) {
    if (row.system != system) continue;
    for (const auto& [name, value] : env.values())
      for (std::string_view pattern : row.removes) {
        pattern.remove_suffix(1);  // '*'
        if (name.starts_with(pattern) && !has_word(row.keeps, name)) changes[name] = std::nullopt;
      }
  }
  return env.with(changes);
}

namespace launcher {

void add_inherited(LauncherTraits& traits) {
  for (const Inherited& row : rows<Inherited>()) {
    if (row.launcher != traits.name) continue;
    for (const std::string_view name : row.names) {
      Conflicting one{std::string(name), std::string(row.why), row.of_batch, row.shapes_step};
      one.beside.assign(row.beside.begin(), row.beside.end());
      one.without.assign(row.without.begin(), row.without.end());
      traits.conflicting.push_back(std::move(one));
    }
  }
}

void Line::refuse_exclusions(std::string_view system, std::string_view version) {
  std::vector<GivenOption> options = read_options(grammars_, argv_, 1, Strays::skip).options;
  options.insert(options.end(), options_.begin(), options_.end());
  for (const BrokenRelation& one : Relations(system, "step", version).broken(options)) {
    if (one.ignored || one.second == BrokenRelation::kNone) continue;
    const std::string& first = options[one.first].name;
    const std::string& second = options[one.second].name;
    const bool typed = std::ranges::count(options_, first, &GivenOption::name) > 0;
    require(Error{ErrorKind::unsupported,
                  fmt::format("{} refuses {} together with {}", argv_.front(), first, second),
                  fmt::format("omit --launcher-arg {}", typed ? first : second)});
  }
}

}  // namespace launcher

}  // namespace hpclaunch
