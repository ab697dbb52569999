#include <fmt/format.h>

#include <array>

#include "hpclaunch/text.h"
#include "plan/environment/environment.h"

namespace hpclaunch {

namespace {

// Cores of each rank as a value: one number when all ranks have the same.
Value cores_value(const Plan& plan) {
  PerRank per_rank;
  const int first = plan.classes.front().ranks.front().cores;
  bool same = true;
  for (const NodeClass& one : plan.classes) {
    per_rank.items.emplace_back();
    for (const RankPlan& rank : one.ranks) {
      per_rank.items.back().push_back(std::to_string(rank.cores));
      same = same && rank.cores == first;
    }
  }
  if (same) return std::to_string(first);
  return per_rank;
}

// Thread counts follow the cores of the rank. The libraries that read a name of their own follow
// OMP_NUM_THREADS where the user has set that, since their own name would beat it.
// Source for NumExpr: it raises when NUMEXPR_NUM_THREADS exceeds NUMEXPR_MAX_THREADS (64 by default),
// so both are set. numexpr/utils.py, read 2026-08.
void add_threads(Fold& fold, const PlanInput& input, const Plan& plan) {
  constexpr std::array kOthers = {"BLIS_NUM_THREADS", "MKL_NUM_THREADS", "NUMEXPR_MAX_THREADS",
                                  "NUMEXPR_NUM_THREADS", "OPENBLAS_NUM_THREADS"};
  constexpr const char* kLeader = "OMP_NUM_THREADS";
  Value leader = cores_value(plan);
  fold.add(kLeader, Layer::builtin, leader, kRule,
           plan.bind_via == BindVia::none ? "one thread per core of an even share of the node"
                                          : "one thread per core that the rank is bound to");

  std::optional<std::string> typed = input.env.get(kLeader);
  for (const auto& [name, value] : input.options.set)
    if (name == kLeader) typed = value;
  std::string why = "one thread per core, as OMP_NUM_THREADS";
  // A list is one number per nesting level; the outermost is what a library's own threads compare to.
  const std::string_view outer = split(*typed, ',').front();
  if (parse_natural(trim(outer)).value_or(0) > 0) {
    leader = std::string(trim(outer));
    why = "follows the OMP_NUM_THREADS that was given";
  }
  for (const char* name : kOthers) fold.add(name, Layer::builtin, leader, kRule, why);
}

void add_identity(Fold& fold, const Plan& plan) {
  struct Fact {
    const char* name;
    RankFact fact;
    const char* why;
  };
  constexpr std::array kFacts = {
      Fact{"RANK", RankFact::rank, "global rank; torch.distributed env:// reads it"},
      Fact{"GROUP_RANK", RankFact::node, "place of the node; torchrun's name for it"},
      Fact{"NODE_RANK", RankFact::node, "place of the node; Lightning's name for it"},
      Fact{"CROSS_RANK", RankFact::node, "place of the node; DeepSpeed's name for it"},
      Fact{"HPCLAUNCH_LOCAL_RANK", RankFact::local_rank,
           "place on the node, in every GPU view"},
      Fact{"HPCLAUNCH_NODE", RankFact::node, "place of the node in the job"},
  };
  for (const Fact& fact : kFacts) fold.add(fact.name, Layer::computed, fact.fact, kRule, fact.why);

  Value local_size = RankFact::local_size;
  if (plan.classes.size() == 1) local_size = std::to_string(plan.max_local_size());
  fold.add("LOCAL_WORLD_SIZE", Layer::computed, local_size, kRule, "ranks on this node");
  fold.add("LOCAL_SIZE", Layer::computed, local_size, kRule,
           "ranks on this node; DeepSpeed's name for it");
  fold.add("HPCLAUNCH_LOCAL_SIZE", Layer::computed, local_size, kRule, "ranks on this node");

  const std::string nodes = std::to_string(plan.nodes());
  fold.add("WORLD_SIZE", Layer::computed, std::to_string(plan.world_size()), kRule,
           "ranks in the job");
  fold.add("GROUP_WORLD_SIZE", Layer::computed, nodes, kRule,
           "nodes in the job; torchrun's name for it");
  fold.add("CROSS_SIZE", Layer::computed, nodes, kRule,
           "nodes in the job; DeepSpeed's name for it");
}

// What was exported or typed wins here: a script that names its meeting place means it.
void add_rendezvous(Fold& fold, const PlanInput& input) {
  const Rendezvous& meet = input.rendezvous;
  if (!meet.address.empty())
    fold.add("MASTER_ADDR", Layer::builtin, meet.address, kRule, meet.address_why);
  // Gloo looks the host name up to find its interface, and some machines' names lead nowhere.
  if (meet.address == "127.0.0.1")
    fold.add(
        "GLOO_SOCKET_IFNAME", Layer::builtin, std::string("lo"), kRule,
        "all ranks are on this machine; loopback works however the host name resolves");
  if (meet.port != 0)
    fold.add("MASTER_PORT", Layer::builtin, std::to_string(meet.port), kRule, meet.port_why);
  fold.keep_export("MASTER_ADDR");
  fold.keep_export("MASTER_PORT");
  if (!input.options.master_addr.empty())
    fold.add("MASTER_ADDR", Layer::command_line, input.options.master_addr, kCommandLine,
             "--master-addr");
  if (input.options.master_port)
    fold.add("MASTER_PORT", Layer::command_line, std::to_string(*input.options.master_port),
             kCommandLine, "--master-port");
}

// What the launcher itself reads: conflicting that would change its command line go, and what its command
// line cannot say is set.
void add_launcher(Fold& fold, const PlanInput& input, const Plan& placed) {
  const auto remove = [&](const std::string& name,
                          const LauncherTraits::ConflictingVariable& variable) {
    fold.add(name, Layer::computed, Unset{}, variable.of_batch ? kBatchSystem : kRule,
             variable.why);
  };
  for (const LauncherTraits::ConflictingVariable& variable : input.launcher.conflicting) {
    if (variable.shapes_step && placed.gpu_view == "launcher") continue;
    if (!variable.prefix) {
      if (input.env.has(variable.name)) remove(variable.name, variable);
      continue;
    }
    const auto& exported = input.env.values();
    for (auto at = exported.lower_bound(variable.name);
         at != exported.end() && at->first.starts_with(variable.name); ++at)
      remove(at->first, variable);
  }
  for (const LauncherTraits::Preset& preset : input.launcher.presets)
    if (!preset.as_root || input.as_root)
      fold.add(preset.name, preset.as_root ? Layer::builtin : Layer::computed, preset.value, kRule,
               preset.why);
}

}  // namespace

void add_own_settings(const PlanInput& input, const Plan& placed, Fold& fold) {
  add_threads(fold, input, placed);
  add_identity(fold, placed);
  add_rendezvous(fold, input);
  add_interfaces(input, placed, fold);
  fold.add("PYTHONUNBUFFERED", Layer::builtin, std::string("1"), kRule,
           "ranks write into a pipe, where Python would hold lines back");
  add_launcher(fold, input, placed);
  for (const auto& [name, value] : input.options.set)
    fold.add(name, Layer::command_line, value, kCommandLine, "--set");
  for (const std::string& name : input.options.unset)
    fold.add(name, Layer::command_line, Unset{}, kCommandLine, "--unset");
}

}  // namespace hpclaunch
