// Which rank of its node a process is, by the variables of whoever has started it.
#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "hpclaunch/hosts.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/start.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

constexpr const char* kTypePlace = "hpclaunch bind --local-rank R --local-size N -- PROGRAM";

// A value with the name of its variable.
struct Told {
  std::string name, value;
  std::optional<int> number() const {
    const auto found = parse_natural(value, 100'000'000);
    return found ? std::optional(static_cast<int>(*found)) : std::nullopt;
  }
};

// Of several names the last one that is set: a step's come behind the job's.
Told told(const std::vector<IdentityVariables>& rows, Identity what, const EnvSnapshot& env) {
  for (const IdentityVariables& row : rows) {
    if (row.what != what) continue;
    std::vector<std::string_view> names = split(row.names, ' ');
    std::ranges::reverse(names);
    for (const std::string_view name : names)
      if (const std::string* value = env.find(name)) return {std::string(name), *value};
  }
  return {};
}

const std::vector<IdentityVariables>& rows_of(const Launcher& one) {
  return one.place.empty() ? one.identity : one.place;
}

// PyTorch's own, as torchrun and many scripts set them, and DeepSpeed's launcher, whose three behind them are Horovod's.
const std::vector<IdentityVariables> kPyTorch = {
    {Identity::rank, "RANK"},
    {Identity::ranks, "WORLD_SIZE"},
    {Identity::local_rank, "LOCAL_RANK"},
    {Identity::local_size, "LOCAL_SIZE LOCAL_WORLD_SIZE"},
    {Identity::node, "CROSS_RANK NODE_RANK GROUP_RANK"},
    {Identity::nodes, "CROSS_SIZE NNODES GROUP_WORLD_SIZE"}};

// Those of batch systems come behind others: an mpiexec runs inside of a job, whose variables it hands on.
int order_of(const Launcher& one) {
  if (one.traits.built_in) return 3;
  if (!one.traits.step_var.empty()) return 2;
  return std::ranges::any_of(rows<Scheduler>(),
                             [&](const Scheduler& system) { return system.launcher == one.name; })
             ? 1
             : 0;
}

// In a batch script a system may have the variables too, outside of any step.
bool tells(const Launcher& one, const EnvSnapshot& env) {
  constexpr long kReserved = 0xfffffff0;
  if (!one.traits.step_var.empty() && !parse_natural(env.get(one.traits.step_var), kReserved - 1))
    return false;
  return !told(rows_of(one), Identity::local_rank, env).name.empty();
}

Error no_place(const std::string& message) { return {ErrorKind::usage, message, kTypePlace}; }

Result<BindPlace> place_of(const std::vector<IdentityVariables>& rows, const EnvSnapshot& env) {
  const Told local = told(rows, Identity::local_rank, env);
  BindPlace place;
  place.by = local.name;
  if (!local.number())
    return no_place(
        fmt::format("{}=\"{}\" is not a place on a node: one number from 0 up was expected",
                    local.name, shown(local.value)));
  place.local = *local.number();
  place.rank = told(rows, Identity::rank, env).number();
  place.ranks = told(rows, Identity::ranks, env).number();
  place.node = told(rows, Identity::node, env).number();
  const std::optional<int> nodes = told(rows, Identity::nodes, env).number();
  std::optional<int> size = told(rows, Identity::local_size, env).number();
  const Told counts = told(rows, Identity::counts, env);
  const auto each = expand_tasks_per_node(counts.value);
  if (each && place.node && *place.node < std::ssize(*each))
    size = (*each)[static_cast<std::size_t>(*place.node)];
  if (!size && place.ranks && nodes && *nodes > 0 && *place.ranks % *nodes == 0)
    size = *place.ranks / *nodes;
  if (!size && place.rank && place.node && *place.node > 0)
    size = (*place.rank - place.local) / *place.node;
  place.size = size.value_or(0);
  place.nodes = nodes.value_or(0);
  place.nodes_told = place.nodes > 0;
  return place;
}

// One rank alone on its node is a shell that a launcher has started, inside of which there may be another one.
const Launcher* innermost(const EnvSnapshot& env) {
  const Launcher* found = nullptr;
  std::pair<bool, int> least;
  for (const Launcher& one : launchers()) {
    if (!tells(one, env)) continue;
    const Result<BindPlace> place = place_of(rows_of(one), env);
    const std::pair<bool, int> order = {place && place->size == 1, order_of(one)};
    if (found != nullptr && !(order < least)) continue;
    found = &one;
    least = order;
  }
  return found;
}

// What follows from the rest. Ranks are taken to be in blocks, as all launchers do by default.
Result<BindPlace> completed(BindPlace place) {
  if (place.size < 1)
    return no_place(
        fmt::format("{}={}, and nothing says how many ranks this node has", place.by, place.local));
  if (place.local >= place.size)
    return no_place(fmt::format("{} is {}, and the node has {}: 0 to {} were expected", place.by,
                                place.local, counted(place.size, "rank"), place.size - 1));
  if (place.rank && place.ranks && place.size > *place.ranks) {
    const int all = place.size * *place.ranks, rank = place.size * *place.rank + place.local;
    return Error{ErrorKind::usage,
                 fmt::format("{} on this node, and {} in all by WORLD_SIZE or the launcher",
                             counted(place.size, "rank"), *place.ranks),
                 fmt::format("unset RANK WORLD_SIZE; where WORLD_SIZE={} counts pods, RANK={} "
                             "WORLD_SIZE={} hpclaunch bind ...",
                             *place.ranks, rank, all)};
  }
  if (!place.rank || !place.ranks || *place.rank >= *place.ranks) place.rank = place.ranks = {};
  if (place.nodes < 1)
    place.nodes = place.ranks ? std::max(1, (*place.ranks + place.size - 1) / place.size) : 1;
  if (place.nodes == 1 && !place.ranks) {
    place.rank = place.local;
    place.ranks = place.size;
  }
  if (place.nodes == 1) place.node = 0;
  if (!place.node && place.rank && *place.ranks == place.size * place.nodes &&
      *place.rank % place.size == place.local)
    place.node = *place.rank / place.size;
  return place;
}

std::string looked_for() {
  std::string names = "LOCAL_RANK";
  for (const Launcher& one : launchers())
    for (const IdentityVariables& row : rows_of(one))
      if (row.what == Identity::local_rank)
        for (const std::string_view name : split(row.names, ' '))
          names += fmt::format(", {}", name);
  return names;
}

}  // namespace

Result<BindPlace> bind_place(const BindRequest& request, const EnvSnapshot& env) {
  const Launcher* const launcher = innermost(env);
  const auto found =
      launcher != nullptr ? place_of(rows_of(*launcher), env) : Result<BindPlace>(no_place(""));
  BindPlace place;
  if (request.local_rank) {
    place.local = *request.local_rank;
    place.by = "--local-rank";
    if (!request.local_size)
      return no_place("--local-rank without --local-size: how many ranks has this node?");
    place.size = *request.local_size;
    if (found && found->local == place.local && found->size == place.size) {
      place = *found;
    } else if (const auto pod = pod_place(this_world(env))) {
      std::tie(place.node, place.nodes) = *pod;
      place.nodes_told = place.pods = true;
      place.rank = *place.node * place.size + place.local;
      place.ranks = place.nodes * place.size;
    } else if (env.has("RANK") && env.has("WORLD_SIZE")) {
      place.rank = told(kPyTorch, Identity::rank, env).number();
      place.ranks = told(kPyTorch, Identity::ranks, env).number();
    }
    place.launcher = found && found->local == place.local ? launcher->name : kLocalLauncher;
    return completed(std::move(place));
  }
  if (env.has("LOCAL_RANK")) {
    Result<BindPlace> own = place_of(kPyTorch, env);
    const bool same = own && found && own->local == found->local;
    // With another number of ranks they are of a launcher below, as torchrun; else somebody has exported one for all.
    if (!found || found->size < 2 || same || env.has("TORCHELASTIC_RUN_ID") ||
        (own && own->size > 0 && own->size != found->size)) {
      if (!own) return own.error();
      if (same && own->size < 1) own->size = found->size;
      if (same && !own->rank) own = *found;
      if (request.local_size) own->size = *request.local_size;
      own->launcher = same ? launcher->name : kLocalLauncher;
      return completed(*std::move(own));
    }
  }
  if (launcher == nullptr)
    return no_place(
        fmt::format("nothing says which rank of this node this process is: none of {} "
                    "is set",
                    looked_for()));
  if (!found) return found.error();
  place = *found;
  if (request.local_size) place.size = *request.local_size;
  place.launcher = launcher->name;
  return completed(std::move(place));
}

}  // namespace hpclaunch::job
