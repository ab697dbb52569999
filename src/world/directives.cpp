#include "world/directives.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "hpclaunch/launcher.h"
#include "hpclaunch/programs.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

// "--mem=0", "-l select=2", "-lselect=2", "-q debug"; a resource has a name of two words: "-l select".
GivenOption option_of(const Grammars& grammars, const std::string& directive) {
  std::vector<std::string> words;
  for (const std::string_view word : split(directive, ' '))
    if (!word.empty()) words.emplace_back(word);
  const OptionLine line = read_options(grammars, words);
  if (line.options.empty()) return {directive, ""};
  GivenOption one = line.options.front();
  if (one.name != "-l") return one;
  const std::size_t equals = std::min(one.value.find('='), one.value.size());
  return {"-l " + one.value.substr(0, equals),
          one.value.substr(std::min(equals + 1, one.value.size()))};
}

std::optional<BrokenRelation> broken_directive(std::string_view system,
                                               const std::vector<std::string>& directives,
                                               bool complete) {
  std::vector<GivenOption> options;
  const DirectiveOptions* known = find_row<DirectiveOptions>(system);
  const Grammars grammars = grammars_of(known == nullptr ? "" : known->grammar);
  for (const std::string& one : directives) options.push_back(option_of(grammars, one));
  for (BrokenRelation& one : Relations(system, "job").broken(options))
    if (!one.ignored && (complete || one.second != BrokenRelation::kNone)) return std::move(one);
  return std::nullopt;
}

}  // namespace

bool is_replaced(std::string_view system, const std::string& directive,
                 const std::vector<std::string>& typed) {
  return std::ranges::any_of(typed, [&](const std::string& one) {
    return broken_directive(system, {directive, one}, false).has_value();
  });
}

Status check_directives(const Scheduler& system, const std::vector<std::string>& directives) {
  const auto broken = broken_directive(system.name, directives, true);
  if (!broken) return Done{};
  const std::string& first = directives[broken->first];
  if (broken->second == BrokenRelation::kNone)
    return Error{ErrorKind::usage,
                 fmt::format("{} needs {}", first, joined(broken->needed, " or ")),
                 fmt::format("--batch={}=VALUE, or omit {}", broken->needed.front(), first)};
  return Error{ErrorKind::usage,
               fmt::format("{} refuses {} together with {}",
                           system.submit.substr(0, system.submit.find(' ')), first,
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
  std::erase_if(made, [&](const std::string& one) {
    return std::ranges::any_of(
        options.batch, [&](const std::string& other) { return is_same_resource(one, other); });
  });
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
