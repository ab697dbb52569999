#include "hpclaunch/make_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>

#include "hpclaunch/text.h"
#include "hpclaunch/wire.h"
#include "plan/environment.h"
#include "plan/layout.h"

namespace hpclaunch {

namespace {

const SourceRef kCommandLine{"<command line>"};
const SourceRef kRule{"hpclaunch"};

Setting choice(std::string name, Layer layer, std::string value, SourceRef where, std::string why) {
  return Setting{std::move(name),
                 {Decision{layer, std::move(value), std::move(where), std::move(why)}}};
}

// One class per number of ranks on a node; neighbouring nodes of one class form a run.
Status lay_out(const PlanInput& input, const std::vector<int>& ranks_on, Plan& plan,
               std::vector<std::string>& remarks) {
  std::map<int, int> class_of;
  for (const int ranks : ranks_on) {
    const auto [at, fresh] = class_of.emplace(ranks, static_cast<int>(plan.classes.size()));
    if (fresh) {
      PlaceRequest want;
      want.ranks = ranks;
      want.cores_per_rank = input.options.cores_per_rank.value_or(0);
      want.oversubscribe = input.options.oversubscribe;
      Result<Placed> placed = place(input.node, want);
      if (!placed) return placed.error();
      plan.classes.push_back(NodeClass{std::move(placed->ranks)});
      for (std::string& remark : placed->remarks)
        if (std::find(remarks.begin(), remarks.end(), remark) == remarks.end())
          remarks.push_back(std::move(remark));
    }
    if (!plan.layout.empty() && plan.layout.back().node_class == at->second)
      ++plan.layout.back().nodes;
    else
      plan.layout.push_back(NodeRun{at->second, 1});
  }
  return Done{};
}

Result<Setting> decide_binding(const PlanInput& input, Plan& plan,
                               const std::vector<std::string>& remarks) {
  const std::optional<BindVia> typed = input.options.bind_via;
  const bool launcher_can = input.launcher.binds_sets && plan.classes.size() == 1;
  if (typed == BindVia::launcher && !launcher_can)
    return Error{ErrorKind::unsupported,
                 fmt::format("launcher {} takes no list of CPUs per rank{}", input.launcher.name,
                             input.launcher.binds_sets ? " that differs between nodes" : ""),
                 "leave --bind-via out, or use --bind-via shim", kCommandLine};
  plan.bind_via = typed.value_or(launcher_can ? BindVia::launcher : BindVia::shim);
  std::string why = "each rank gets whole cores of its own, hardware threads together";
  if (input.options.cores_per_rank)
    why += fmt::format(", --cpus-per-rank {}", *input.options.cores_per_rank);
  for (const std::string& remark : remarks) why += "; " + remark;
  Setting setting{"cpu-bind", {}};
  PerRank cpus;
  for (const NodeClass& one : plan.classes) {
    cpus.items.emplace_back();
    for (const RankPlan& rank : one.ranks) cpus.items.back().push_back(rank.cpus.to_list());
  }
  setting.history.push_back(Decision{Layer::computed, std::move(cpus), kRule, std::move(why)});
  if (plan.bind_via == BindVia::none)
    setting.history.push_back(
        Decision{Layer::command_line, Unset{}, kCommandLine, "--bind-via none"});
  return setting;
}

void forget_binding(Plan& plan) {
  for (NodeClass& one : plan.classes)
    for (RankPlan& rank : one.ranks) rank.cpus = CpuSet{};
}

Status check_names(const PlacementOptions& options) {
  const auto bad = [](const std::string& name, const char* option) {
    return Error{ErrorKind::usage, fmt::format("{}: \"{}\" is no variable name", option, name),
                 "a name has no \"=\" and is not empty; write --set NAME=VALUE", kCommandLine};
  };
  const auto good = [](const std::string& name) {
    return !name.empty() && name.find('=') == std::string::npos &&
           name.find('\0') == std::string::npos;
  };
  for (const auto& [name, value] : options.set)
    if (!good(name)) return bad(name, "--set");
  for (const std::string& name : options.unset)
    if (!good(name)) return bad(name, "--unset");
  return Done{};
}

}  // namespace

Result<Plan> make_plan(const PlanInput& input) {
  if (const Status names = check_names(input.options); !names) return names.error();
  Result<Counts> counts = decide_counts(input);
  if (!counts) return counts.error();
  const std::size_t nodes = counts->ranks_on.size();
  if (nodes > 1 && !input.launcher.multi_node)
    return Error{ErrorKind::unsupported,
                 fmt::format("launcher {} starts ranks on this machine only, the plan has {}",
                             input.launcher.name, counted(static_cast<long>(nodes), "node")),
                 "use --nodes 1, or another launcher with --launcher NAME"};

  Plan plan;
  plan.hosts.assign(input.hosts.begin(), input.hosts.begin() + static_cast<std::ptrdiff_t>(nodes));
  std::vector<std::string> remarks;
  if (const Status laid = lay_out(input, counts->ranks_on, plan, remarks); !laid)
    return laid.error();
  Result<Setting> binding = decide_binding(input, plan, remarks);
  if (!binding) return binding.error();

  plan.choices = std::move(counts->choices);
  plan.choices.push_back(std::move(*binding));
  plan.choices.push_back(
      choice("bind-via", input.options.bind_via ? Layer::command_line : Layer::builtin,
             std::string(to_string(plan.bind_via)), input.options.bind_via ? kCommandLine : kRule,
             input.options.bind_via ? "--bind-via"
             : plan.bind_via == BindVia::launcher
                 ? "this launcher takes explicit CPU lists; the shim compares"
                 : "the launcher cannot give each rank its CPU list here; the shim binds"));
  plan.choices.push_back(
      choice("launcher", Layer::computed, input.launcher.name, kRule, input.launcher_why));
  plan.choices.push_back(choice("hosts", Layer::environment,
                                fmt::format("{}", fmt::join(plan.hosts, " ")),
                                SourceRef{"<environment>"}, input.hosts_why));
  if (plan.bind_via == BindVia::none) forget_binding(plan);

  plan.launcher = input.launcher.name;
  plan.verify = input.verify;
  plan.output = input.output;
  plan.launcher_args = input.launcher_args;
  plan.command = input.command;
  plan.env = fold_environment(input, plan);
  Result<std::string> wire =
      encode_wire(plan, {input.launcher.rank_var, input.launcher.local_rank_var});
  if (!wire) return wire.error();
  plan.wire = std::move(*wire);
  return plan;
}

}  // namespace hpclaunch
