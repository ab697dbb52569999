// The identity of a rank: every name in which a program looks for its rank, the number of ranks and its place on
// the node, all with one truth. docs/reference/identity.md says which program reads which name, in which order.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hpclaunch/text.h"
#include "plan/environment/environment.h"

namespace hpclaunch {

namespace {

struct Row {
  Identity what;
  std::string_view names;
  const char* why;
};

constexpr Row kOwn[] = {
    {Identity::rank, "RANK", "global rank; torch.distributed env:// reads it"},
    {Identity::rank, "ROLE_RANK", "global rank (torchrun)"},
    {Identity::node, "GROUP_RANK", "node number (torchrun)"},
    {Identity::node, "NODE_RANK", "node number (Lightning)"},
    {Identity::node, "CROSS_RANK", "node number (DeepSpeed)"},
    {Identity::local_rank, "HPCLAUNCH_LOCAL_RANK", "local rank, in every GPU view"},
    {Identity::node, "HPCLAUNCH_NODE", "node number"},
    {Identity::local_size, "LOCAL_WORLD_SIZE", "ranks on this node"},
    {Identity::local_size, "LOCAL_SIZE", "ranks on this node (DeepSpeed)"},
    {Identity::local_size, "HPCLAUNCH_LOCAL_SIZE", "ranks on this node"},
    {Identity::ranks, "WORLD_SIZE", "ranks in the job"},
    {Identity::ranks, "ROLE_WORLD_SIZE", "ranks in the job (torchrun)"},
    {Identity::nodes, "GROUP_WORLD_SIZE", "nodes in the job (torchrun)"},
    {Identity::nodes, "CROSS_SIZE", "nodes in the job (DeepSpeed)"},
};

// torchrun's constants. Lightning and idr_torch take the identity from the names above when they find
// TORCHELASTIC_RUN_ID, and from the batch system or MPI when they do not.
constexpr std::pair<const char*, const char*> kTorchrun[] = {
    {"ROLE_NAME", "default"},
    {"TORCHELASTIC_USE_AGENT_STORE", "False"},
};

std::string counts(const Placement& placement) {
  std::vector<std::string> runs;
  for (const NodeRun& run : placement.layout) {
    const auto ranks = placement.of(run).ranks.size();
    runs.push_back(run.nodes == 1 ? fmt::format("{}", ranks)
                                  : fmt::format("{}(x{})", ranks, run.nodes));
  }
  return fmt::format("{}", fmt::join(runs, ","));
}

Value value_of(Identity what, const Hosts& hosts, const Placement& placement) {
  switch (what) {
    case Identity::rank:
      return RankFact::rank;
    case Identity::local_rank:
      return RankFact::local_rank;
    case Identity::node:
      return RankFact::node;
    case Identity::local_size:
      if (placement.classes.size() > 1) return RankFact::local_size;
      return std::to_string(placement.max_local_size());
    case Identity::ranks:
      return std::to_string(placement.world_size());
    case Identity::nodes:
      return std::to_string(hosts.count());
    case Identity::counts:
      return counts(placement);
    case Identity::hosts:
      break;
  }
  return fmt::format("{}", fmt::join(hosts.names, ","));
}

// Where hpclaunch is started on each node, others may have no name here: "(node 0)".
bool are_named(const Hosts& hosts) {
  return !hosts.names.front().starts_with('(') && !hosts.names.back().starts_with('(');
}

// Set by the shim, not in the launcher's environment, where the batch system's own tools read them.
Value at_rank(Value value, const Placement& placement) {
  const auto* text = std::get_if<std::string>(&value);
  return text == nullptr ? value
                         : Value(per_rank(placement, [&](const RankPlan&) { return *text; }));
}

// An agent gives its workers their ranks; those of another launch would be taken for theirs.
void add_agent_identity(const PlanInput& input, const Hosts& hosts, const Placement& placement,
                        EnvSettings& settings) {
  const auto remove = [&](const std::string& name) {
    if (input.env.has(name))
      settings.add(name, Layer::computed, Unset{}, "--agent: the program sets it for its workers");
  };
  for (const Row& row : kOwn)
    if (row.names.starts_with("HPCLAUNCH_"))
      settings.add(std::string(row.names), Layer::computed, value_of(row.what, hosts, placement),
                   row.why);
    else
      remove(std::string(row.names));
  for (const auto& [name, value] : kTorchrun) remove(name);
  for (const char* name : {"LOCAL_RANK", "TORCHELASTIC_MAX_RESTARTS", "TORCHELASTIC_RESTART_COUNT",
                           "TORCHELASTIC_RUN_ID"})
    remove(name);
  settings.add("NODE_RANK", Layer::computed, RankFact::node, "--agent: number of the node");
  settings.add("NNODES", Layer::computed, std::to_string(hosts.count()),
               "--agent: nodes in the job");
}

}  // namespace

void add_program_env(const PlanInput& input, const Slots& slots, const Hosts& hosts,
                     const Placement& placement, EnvSettings& settings) {
  if (input.program_env.empty() && !input.request->agent) return;
  const auto known = [&](const char* name, const std::string& planned) {
    const std::string* text = settings.so_far(name);
    return text == nullptr ? planned : *text;
  };
  constexpr int kLastPort = 65535, kAfter = 3;  // Megatron takes the two behind MASTER_PORT
  const std::string port = known("MASTER_PORT", std::to_string(input.rendezvous.port));
  const long number = parse_natural(port).value_or(0);
  const long other = number + kAfter <= kLastPort ? number + kAfter : number - kAfter;
  const std::string interface = known("GLOO_SOCKET_IFNAME", "");
  const bool fabric = !interface.empty() && interface != "lo";
  constexpr const char* kAddress = "HPCLAUNCH_NODE_ADDRESS";
  if (input.request->agent && fabric)
    settings.add(kAddress, Layer::computed, RankFact::address,
                 fmt::format("--agent: the node's address on {}", interface));
  const int devices = slots.seen_by_agent();
  const std::pair<std::string_view, std::string> facts[] = {
      {"{nodes}", std::to_string(hosts.count())},
      {"{ranks}", std::to_string(placement.world_size())},
      {"{hosts}", are_named(hosts) ? fmt::format("{}", fmt::join(hosts.names, ","))
                                   : known("MASTER_ADDR", input.rendezvous.address)},
      {"{address}", known("MASTER_ADDR", input.rendezvous.address)},
      {"{port}", port},
      {"{port+3}", std::to_string(other)},
      {"{id}", input.job.id},
      {"{devices}", devices == 0 ? "" : std::to_string(devices)}};
  constexpr std::pair<std::string_view, RankFact> kOfRank[] = {
      {"{node}", RankFact::node},
      {"{rank}", RankFact::rank},
      {"{local_rank}", RankFact::local_rank},
      {"{node_address}", RankFact::address}};
  for (const auto& [assignment, why] : input.program_env) {
    const std::string name = assignment.substr(0, assignment.find('='));
    std::string value = assignment.substr(name.size() + 1);
    const auto* const own =
        std::ranges::find(kOfRank, value, [](const auto& one) { return one.first; });
    if (own != std::end(kOfRank)) {
      if (own->second != RankFact::address || fabric)
        settings.add(name, Layer::computed, own->second, why);
      continue;
    }
    for (const auto& [fact, text] : facts)
      if (const std::size_t at = value.find(fact); at != std::string::npos)
        value = text.empty() ? "" : value.replace(at, fact.size(), text);
    // The batch system's names are for the ranks alone: srun and others take them for options.
    if (!value.empty())
      settings.add(name, Layer::computed,
                   name.starts_with("SLURM_") ? at_rank(std::move(value), placement)
                                              : Value(std::move(value)),
                   why);
  }
}

void add_identity(const PlanInput& input, const Hosts& hosts, const Placement& placement,
                  EnvSettings& settings) {
  if (input.request->agent) return add_agent_identity(input, hosts, placement, settings);
  for (const Row& row : kOwn)
    settings.add(std::string(row.names), Layer::computed, value_of(row.what, hosts, placement),
                 row.why);
  for (const auto& [name, value] : kTorchrun)
    settings.add(name, Layer::computed, std::string(value), "as torchrun sets it");
  const std::string restart = std::to_string(input.restart);
  settings.add("TORCHELASTIC_MAX_RESTARTS", Layer::computed,
               std::to_string(input.request->max_restarts.value_or(0)),
               "--max-restarts, as torchrun sets it");
  settings.add("TORCHELASTIC_RESTART_COUNT", Layer::computed, restart,
               "attempts before, as torchrun sets it");
  if (input.request->max_restarts.value_or(0) > 0)
    settings.add("HPCLAUNCH_RESTART", Layer::computed, restart, "attempts before");
  settings.add(
      "TORCHELASTIC_RUN_ID", Layer::computed, input.job.id,
      "Lightning and idr_torch then read RANK and LOCAL_RANK, not the batch system's names");
  constexpr std::size_t kMostOfHosts = 4096;  // a longer list has no room in HPCLAUNCH_PLAN
  for (const IdentityVariables& variables : input.launcher.batch_identity)
    for (const std::string_view name : split(variables.names, ' ')) {
      Value value = value_of(variables.what, hosts, placement);
      const auto* text = std::get_if<std::string>(&value);
      if (text != nullptr && text->size() > kMostOfHosts) continue;
      Decision decision =
          decided(Layer::computed, at_rank(std::move(value), placement),
                  fmt::format("the batch system's tasks are not the ranks that {} starts",
                              input.launcher.built_in ? "hpclaunch" : input.launcher.name));
      decision.where = kBatchSystem;
      settings.add(std::string(name), std::move(decision));
    }
}

void add_aliases(const PlanInput& input, const Hosts& hosts, const Placement& placement,
                 EnvSettings& settings) {
  if (input.request->agent) return;  // which is no rank
  for (const IdentityVariables& variables : input.launcher.aliases)
    for (const std::string_view name : split(variables.names, ' '))
      settings.add(std::string(name), Layer::computed, value_of(variables.what, hosts, placement),
                   fmt::format("as other launchers set it; {} sets none", input.launcher.name));
}

}  // namespace hpclaunch
