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

// "--gres=gpu|..." of the data: the name, and the beginning of the value or of one of its items.
bool is(const GivenOption& option, std::string_view pattern) {
  for (const std::string_view one : split(pattern, '|')) {
    const std::size_t equals = one.find('=');
    if (one.substr(0, equals) != option.name) continue;
    if (equals == one.npos) return true;
    const auto items = split(option.value, ',');
    if (std::ranges::any_of(
            items, [&](std::string_view item) { return item.starts_with(one.substr(equals + 1)); }))
      return true;
  }
  return false;
}

// A version that is not known is the current one.
bool holds_in(Row row, std::string_view version) {
  const std::string_view since = word_of(row, "since"), until = word_of(row, "until");
  if (version.empty()) return until.empty();
  return (since.empty() || compare_versions(version, since).value_or(0) >= 0) &&
         (until.empty() || compare_versions(version, until).value_or(1) < 0);
}

std::vector<Row> rows_of(std::string_view list, std::string_view system, std::string_view where,
                         std::string_view version) {
  std::vector<Row> rows = known_programs(list);
  std::erase_if(rows, [&](Row row) {
    return word_of(row, "system") != system || !lists(row, "where", where) ||
           !holds_in(row, version);
  });
  return rows;
}

std::size_t find_one(Row row, std::string_view key, const std::vector<GivenOption>& options,
                     std::size_t begin, std::size_t end) {
  for (const std::string_view pattern : words_of(row, key))
    for (std::size_t i = begin; i < end; ++i)
      if (is(options[i], pattern)) return i;
  return BrokenRelation::kNone;
}

}  // namespace

std::vector<BrokenRelation> broken_relations(
    std::string_view system, std::string_view where, std::string_view version,
    const std::vector<GivenOption>& options, std::size_t steps,
    const std::function<bool(std::string_view)>& has_variable) {
  constexpr std::size_t kNone = BrokenRelation::kNone;
  std::vector<BrokenRelation> broken;
  const bool mixed = where == "mixed";
  const std::size_t end = options.size();
  for (const Row row : rows_of("exclusions", system, where, version)) {
    const auto add = [&](std::size_t of, std::size_t of_end, std::size_t with,
                         std::size_t with_end) {
      const std::size_t first = find_one(row, "of", options, of, of_end);
      const std::size_t second = find_one(row, "with", options, with, with_end);
      if (first == kNone || second == kNone) return false;
      broken.push_back({word_of(row, "id"),
                        first,
                        second,
                        {},
                        word_of(row, "effect") == "ignored",
                        word_of(row, "since")});
      return true;
    };
    if (!mixed)
      add(0, end, 0, end);
    else if (!add(0, steps, steps, end))
      add(steps, end, 0, steps);
  }
  if (mixed) return broken;
  for (const Row row : rows_of("needs", system, where, version)) {
    const std::size_t first = find_one(row, "of", options, 0, end);
    if (first == kNone || find_one(row, "with", options, 0, end) != kNone) continue;
    std::vector<std::string> needed;
    for (const std::string_view one : words_of(row, "with"))
      needed.emplace_back(one.substr(0, one.find('|')));
    if (has_variable && std::ranges::any_of(needed, has_variable)) continue;
    broken.push_back(
        {word_of(row, "id"), first, kNone, std::move(needed), false, word_of(row, "since")});
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
  for (const BrokenRelation& one : broken_relations(system, "step", version, options)) {
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
