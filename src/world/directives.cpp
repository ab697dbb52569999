#include "world/directives.h"

#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <optional>
#include <set>

#include "hpclaunch/launcher.h"
#include "hpclaunch/programs.h"
#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

const Scheduler& known_options(std::string_view system) {
  static constexpr Scheduler kNone;
  const Scheduler* known = find_row<Scheduler>(system);
  return known == nullptr ? kNone : *known;
}

// The options of a directive, letters by their whole name. One that is keyed is an option for each key: "-l select" and
// "-l walltime" of "-lselect=2,walltime=10", "-R span" and "-R rusage" of "-R "span[ptile=4] rusage[mem=4]"".
std::vector<GivenOption> options_in(const Scheduler& known, const std::string& directive) {
  std::vector<std::string> words;
  for (const std::string_view word : split(directive, ' '))
    if (!word.empty()) words.emplace_back(word);
  const OptionLine line = read_options(grammars_of(known.grammar), words);
  if (line.options.empty()) return {{directive, ""}};
  std::vector<GivenOption> all;
  for (GivenOption one : line.options) {
    if (one.option.name().starts_with("--")) one.name = one.option.name();
    if (!has_word(known.keyed, one.name)) {
      all.push_back(std::move(one));
      continue;
    }
    std::string text = one.value;
    if (one.end == line.rest)
      for (std::size_t i = line.rest; i < words.size(); ++i) text += ',' + words[i];
    std::erase(text, '"');
    for (const std::string_view item : split(text, ',')) {
      const std::size_t end = std::min(item.find_first_of("=["), item.size());
      all.push_back({fmt::format("{} {}", one.name, item.substr(0, end)),
                     std::string(item.substr(std::min(end + 1, item.size())))});
    }
  }
  return all;
}

std::optional<BrokenRelation> broken_directive(std::string_view system,
                                               const std::vector<std::string>& directives,
                                               bool complete) {
  std::vector<GivenOption> options;
  std::vector<std::size_t> places;  // their directives
  for (std::size_t i = 0; i < directives.size(); ++i) {
    std::ranges::move(options_in(known_options(system), directives[i]),
                      std::back_inserter(options));
    places.resize(options.size(), i);
  }
  for (BrokenRelation& one : Relations(system, "job").broken(options)) {
    if (one.ignored || (!complete && one.second == BrokenRelation::kNone)) continue;
    one.first = places[one.first];
    if (one.second != BrokenRelation::kNone) one.second = places[one.second];
    if (one.first != one.second) return std::move(one);
  }
  return std::nullopt;
}

// What an option asks for: the first name of those that ask for the same, else its own.
std::string subject(const Scheduler& known, const GivenOption& given) {
  for (const Words names : known.same)
    for (const std::string_view name : names) {
      const std::size_t equals = std::min(name.find('='), name.size());
      if (name.substr(0, equals) == given.name &&
          given.value.starts_with(name.substr(std::min(equals + 1, name.size()))))
        return std::string(names.front());
    }
  return given.name;
}

}  // namespace

bool is_replaced(std::string_view system, const std::string& directive,
                 const std::vector<std::string>& typed) {
  const Scheduler& known = known_options(system);
  std::set<std::string> asked;
  for (const std::string& one : typed)
    for (const GivenOption& given : options_in(known, one)) asked.insert(subject(known, given));
  return std::ranges::all_of(options_in(known, directive), [&](const GivenOption& given) {
    return asked.contains(subject(known, given));
  });
}

bool gives_way(std::string_view system, const std::string& directive,
               const std::vector<std::string>& typed) {
  return is_replaced(system, directive, typed) ||
         std::ranges::any_of(typed, [&](const std::string& one) {
           return broken_directive(system, {directive, one}, false).has_value();
         });
}

Status check_directives(const Scheduler& system, const std::vector<std::string>& directives) {
  for (const std::string& one : directives)
    if (one != render::printable(one))
      return Error{
          ErrorKind::invalid,
          fmt::format("the directive \"{}\" has a control character", render::printable(one)),
          "change the rule of the profile"};
  const auto broken = broken_directive(system.name, directives, true);
  if (!broken) return Done{};
  const std::string& first = directives[broken->first];
  if (broken->second == BrokenRelation::kNone)
    return Error{ErrorKind::usage,
                 fmt::format("{} needs {}", first, joined(broken->needed, " or ")),
                 fmt::format("--batch={}=VALUE, or omit {}", broken->needed.front(), first)};
  return Error{ErrorKind::usage,
               fmt::format("{} refuses {} together with {}", system.program(), first,
                           directives[broken->second]),
               "omit one of them"};
}

// A part is what --cpus-per-rank or --gpus names. Ranks of the fullest node count.
std::vector<std::string> node_directives(const Scheduler& system, const Request& request,
                                         JobOptions& options, Diagnostics& diagnostics) {
  const Directives& known = system.directives;
  const int nodes = options.nodes;
  const std::string_view spread = nodes > 1 ? known.spread : std::string_view();
  const int typed =
      request.ranks_per_node.value_or((request.ranks.value_or(0) + nodes - 1) / nodes);
  const int ranks = typed > 0 ? typed : options.devices;
  const bool part = ranks > 0 && (request.cores_per_rank || options.devices > 0);
  std::vector<std::string> made;
  if (known.whole.empty() || part) {
    if (!spread.empty()) made.emplace_back(spread);
  } else {
    made.emplace_back(known.whole);
  }
  std::erase_if(made,
                [&](const std::string& one) { return gives_way(system.name, one, options.batch); });
  if (!part || known.cpus.empty()) return made;
  options.cpus = ranks * request.cores_per_rank.value_or(1);
  options.ranks = ranks;
  if (!request.cores_per_rank)
    diagnostics.push_back({"cpus-default", Severity::note,
                           fmt::format("the job gets {} of each node, one for each rank",
                                       counted(options.cpus, "CPU")),
                           "--cpus-per-rank N"});
  return made;
}

Status name_in_directory(const Scheduler& system, const char* option, const World& world,
                         std::string& file) {
  if (file.empty() || (!file.ends_with('/') && !world.is_directory(world.absolute(file))))
    return Done{};
  const std::string_view name = system.directives.in_folder;
  if (name.empty() && system.output_in.empty())
    return Error{
        ErrorKind::usage,
        fmt::format("{} {}: a directory, and {} takes a file", option, shown(file), system.title),
        fmt::format("{} {}{}out.txt", option, shown(file), file.ends_with('/') ? "" : "/")};
  if (!file.ends_with('/')) file += '/';
  if (!name.empty())
    file += fmt::format("{}.{}", name, std::string_view(option) == "--error" ? "err" : "out");
  return Done{};
}

}  // namespace hpclaunch::job
