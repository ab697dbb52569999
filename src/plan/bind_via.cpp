// Who binds the ranks: the launcher, the shim, or none.
#include <fmt/format.h>

#include <algorithm>

#include "plan/devices/node_ranks.h"
#include "plan/environment/environment.h"
#include "plan/layout.h"

namespace hpclaunch {

namespace {

std::string part_text(const RankPlan& rank) {
  return rank.part_first == rank.part_last
             ? fmt::format("granted {}", rank.part_first)
             : fmt::format("granted {}-{}", rank.part_first, rank.part_last);
}

std::string binding_why(const PlanInput& input, const Plan& plan, const LaidOut& laid) {
  if (plan.classes.front().ranks.front().part_first >= 0)
    return fmt::format(
        "each rank gets a share of its own of what is granted on its node ({}); which "
        "CPUs that are, it counts through there, in ascending order from 0",
        input.granted_why);
  const bool near = std::any_of(laid.rules.begin(), laid.rules.end(),
                                [](const Binding* rule) { return rule == nullptr; });
  std::string why = "each rank gets whole cores of its own, hardware threads together";
  if (near && !input.node.devices.empty()) why += ", as near to its device as is known";
  if (input.request.cores_per_rank)
    why += fmt::format(", --cpus-per-rank {}", *input.request.cores_per_rank);
  if (input.model != nullptr && !input.model->reserved.empty())
    why += fmt::format("; CPUs {} are kept for the system: {}", input.model->reserved.to_list(),
                       input.model->reserved_why);
  for (const std::string& remark : laid.remarks) why += "; " + remark;
  return why;
}

Setting binding_choice(const PlanInput& input, const Plan& plan, const LaidOut& laid) {
  Setting setting{"cpu-bind", {}};
  if (plan.bind_via == BindVia::none && !input.request.bind_via &&
      knows_amounts(input, plan.nodes())) {
    setting.history.push_back(decided(Layer::computed, Unset{},
                                      fmt::format("the job has a part of each node ({}), and {}",
                                                  input.granted_why, why_not_counted(input))));
    return setting;
  }
  for (auto lost = laid.overridden.rbegin(); lost != laid.overridden.rend(); ++lost) {
    PerRank lists{{{}}};
    for (const RankPlan& rank : lost->ranks) lists.items[0].push_back(rank.cpus.to_list());
    setting.history.push_back(decided_by_rule(Layer::profile_default, std::move(lists),
                                              lost->rule->id, lost->rule->origin, lost->condition));
  }
  PerRank cpus = per_rank(plan, [](const RankPlan& rank) {
    return rank.part_first < 0 ? rank.cpus.to_list() : part_text(rank);
  });
  if (const Binding* rule = laid.rules.front()) {
    setting.history.push_back(decided_by_rule(Layer::profile_default, std::move(cpus), rule->id,
                                              rule->origin, laid.condition));
    for (const std::string& remark : laid.remarks) setting.history.back().why += "; " + remark;
  } else {
    setting.history.push_back(
        decided(Layer::computed, std::move(cpus), binding_why(input, plan, laid)));
  }
  if (plan.bind_via == BindVia::none) {
    const bool typed = input.request.bind_via.has_value();
    setting.history.push_back(decided(typed ? Layer::command_line : Layer::computed, Unset{},
                                      typed ? "--bind-via none" : "as bind-via says"));
  }
  return setting;
}

struct Choice {
  BindVia via;
  std::string why;
};

Result<Choice> choose(const PlanInput& input, const Units& units, const Plan& plan) {
  const LauncherTraits& launcher = input.launcher;
  const bool launcher_can = launcher.binds_sets && plan.classes.size() == 1;
  const bool counted_through = can_count_through(input, plan.nodes());
  // Other nodes of a job on parts of nodes have granted other cores than this one.
  const bool parts = nameless_cores(input, plan.nodes()) && !counted_through;
  const bool amounts = knows_amounts(input, plan.nodes());

  const std::optional<BindVia> typed = input.request.bind_via;
  if (typed == BindVia::launcher && !launcher_can)
    return request_error(fmt::format("launcher {} takes no list of CPUs per rank{}", launcher.name,
                                     launcher.binds_sets ? " that differs between nodes" : ""),
                         "leave --bind-via out, or use --bind-via shim", ErrorKind::unsupported);
  if (typed == BindVia::launcher && amounts)
    return request_error(
        fmt::format("the job has a part of each node, and which CPUs that are is not known "
                    "here ({}): launcher {} cannot be given lists",
                    input.granted_why, launcher.name),
        "leave --bind-via out, or use --bind-via shim", ErrorKind::unsupported);
  if (typed == BindVia::shim && parts && amounts)
    return request_error(fmt::format("the job has a part of each node: {}", why_not_counted(input)),
                         "leave --bind-via out: the batch system keeps ranks inside",
                         ErrorKind::unsupported);
  if (typed) return Choice{*typed, "--bind-via"};

  if (parts)
    return Choice{BindVia::none,
                  fmt::format("the job has a part of each node, and {}: the batch system keeps "
                              "ranks inside",
                              amounts ? why_not_counted(input) : "other cores on each")};
  if (counted_through)
    return Choice{
        BindVia::shim,
        "the job has a part of each node, which only the ranks there can see; the shim binds"};
  if (units.view == "launcher")
    return Choice{BindVia::launcher,
                  "the launcher binds cores together with devices; the shim compares"};
  if (!launcher_can)
    return Choice{BindVia::shim,
                  "the launcher cannot give each rank its CPU list here; the shim binds"};
  if (!launcher.shim_binds_why.empty()) return Choice{BindVia::shim, launcher.shim_binds_why};
  return Choice{BindVia::launcher, "this launcher takes explicit CPU lists; the shim compares"};
}

}  // namespace

Status decide_binding(const PlanInput& input, const Units& units, const LaidOut& laid, Plan& plan) {
  Result<Choice> chosen = choose(input, units, plan);
  if (!chosen) return chosen.error();
  plan.bind_via = chosen->via;
  plan.choices.push_back(binding_choice(input, plan, laid));
  plan.choices.push_back(choice("bind-via",
                                input.request.bind_via ? Layer::command_line : Layer::builtin,
                                std::string(to_string(chosen->via)), std::move(chosen->why)));
  return Done{};
}

}  // namespace hpclaunch
