// Options that exclude or need one another, and variables that are inherited from a job: rows of profiles/programs/requests.json.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/text.h"
#include "launcher/line.h"

namespace hpclaunch {

namespace {

using Row = std::string_view;

bool lists(Row row, std::string_view key, std::string_view word) {
  const auto words = words_of(row, key);
  return std::ranges::find(words, word) != words.end();
}

std::string_view word_of(Row row, std::string_view key) {
  const auto words = words_of(row, key);
  return words.empty() ? "" : words.front();
}

// A version that is not known is the current one.
bool holds_in(Row row, std::string_view version) {
  const std::string_view since = word_of(row, "since"), until = word_of(row, "until");
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

// "--gres=gpu|..." of the data: names of one option, with the beginning of the value.
Relations::Relations(std::string_view system, std::string_view where, std::string_view version)
    : mixed_(where == "mixed") {
  for (const std::string_view list : {"exclusions", "needs"})
    for (const std::string_view text : known_programs(list)) {
      if (word_of(text, "system") != system || !lists(text, "where", where) ||
          !holds_in(text, version))
        continue;
      Row row{word_of(text, "id"),
              word_of(text, "since"),
              word_of(text, "effect") == "ignored",
              list == "needs",
              {},
              {},
              {}};
      const auto add = [&](std::string_view key, std::vector<Pattern>& patterns) {
        for (const std::string_view names : words_of(text, key)) {
          if (row.needs && key == "with") row.needed.emplace_back(names.substr(0, names.find('|')));
          for (const std::string_view one : split(names, '|')) {
            const std::size_t equals = std::min(one.find('='), one.size());
            patterns.push_back(
                {one.substr(0, equals), one.substr(std::min(equals + 1, one.size()))});
          }
        }
      };
      add("of", row.of);
      add("with", row.with);
      rows_.push_back(std::move(row));
    }
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
  for (const Row row : known_programs("submission")) {
    if (word_of(row, "system") != system) continue;
    for (const auto& [name, value] : env.values())
      for (std::string_view pattern : words_of(row, "removes")) {
        pattern.remove_suffix(1);  // '*'
        if (name.starts_with(pattern) && !lists(row, "keeps", name)) changes[name] = std::nullopt;
      }
  }
  return env.with(changes);
}

namespace launcher {

void add_inherited(LauncherTraits& traits) {
  for (const Row row : known_programs("inherited")) {
    if (word_of(row, "launcher") != traits.name) continue;
    for (const std::string_view name : words_of(row, "names")) {
      Conflicting one{std::string(name), std::string(word_of(row, "why")),
                      !word_of(row, "of_batch").empty(), !word_of(row, "shapes_step").empty()};
      for (const std::string_view other : words_of(row, "beside")) one.beside.emplace_back(other);
      for (const std::string_view other : words_of(row, "without")) one.without.emplace_back(other);
      traits.conflicting.push_back(std::move(one));
    }
  }
}

void Line::refuse_exclusions(std::string_view system, std::string_view version) {
  std::vector<GivenOption> options;
  for (const auto* words : {&argv_, &given_})
    for (std::size_t i = 0; i < words->size(); ++i) {
      const std::string& word = (*words)[i];
      if (word.size() < 2 || !word.starts_with('-')) continue;
      const SplitFlag flag = split_flag(word, words_);
      const bool next = !flag.joined && i + 1 < words->size() && !(*words)[i + 1].starts_with('-');
      options.push_back({flag.name, next ? (*words)[i + 1] : flag.joined.value_or("")});
    }
  for (const BrokenRelation& one : Relations(system, "step", version).broken(options)) {
    if (one.ignored || one.second == BrokenRelation::kNone) continue;
    const std::string& first = options[one.first].name;
    const std::string& second = options[one.second].name;
    const auto typed = [&](const std::string& name) {
      return std::ranges::any_of(
          given_, [&](const std::string& word) { return split_flag(word, words_).name == name; });
    };
    require(Error{ErrorKind::unsupported,
                  fmt::format("{} refuses {} together with {}", argv_.front(), first, second),
                  fmt::format("omit --launcher-arg {}", typed(first) ? first : second)});
  }
}

}  // namespace launcher

}  // namespace hpclaunch
