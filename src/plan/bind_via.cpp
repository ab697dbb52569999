// Who binds the ranks: the launcher, the shim, or none.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/node_ranks.h"
#include "plan/environment/environment.h"
#include "plan/steps.h"

namespace hpclaunch {

namespace {

std::string part_text(const RankPlan& rank) {
  return rank.part_first == rank.part_last
             ? fmt::format("granted {}", rank.part_first)
             : fmt::format("granted {}-{}", rank.part_first, rank.part_last);
}

// "; 1 core left idle (CPUs 3); ..." of all classes, each once.
std::string remarks_of(const LaidOut& laid) {
  std::vector<std::string> remarks{""};
  for (const NodeRanks& one : laid.nodes)
    for (const std::string& remark : one.remarks)
      if (std::ranges::count(remarks, remark) == 0) remarks.push_back(remark);
  return fmt::format("{}", fmt::join(remarks, "; "));
}

bool has_parts(const LaidOut& laid) {
  return std::ranges::any_of(laid.placement.classes, [](const NodeClass& one) {
    return one.ranks.front().part_first >= 0;
  });
}

std::string counted_why(const PlanInput& input, const LaidOut& laid) {
  const bool cpus = laid.placement.counted.empty();
  return fmt::format(
      "each rank gets its share of the granted {} of its node ({}), counted there from 0 in {} "
      "order",
      cpus ? "CPUs" : "cores", input.granted_why, cpus ? "ascending" : "the machine's");
}

std::string binding_why(const PlanInput& input, const LaidOut& laid) {
  const auto named = std::ranges::find_if(laid.placement.classes, [](const NodeClass& one) {
    return one.ranks.front().part_first < 0 || !one.ranks.front().cpus.empty();
  });
  if (named == laid.placement.classes.end()) return counted_why(input, laid);
  const CpuSet& cpus = named->ranks.front().cpus;
  const bool all =
      cpus.contains(pus_of(input.node, cores_of(input.node, cpus)) & input.node.allowed);
  std::string why =
      fmt::format("each rank gets {}", all ? "whole cores with all their hardware threads"
                                           : "the first hardware thread of each of its cores");
  if (std::ranges::any_of(laid.nodes, &std::vector<FittingRule>::empty, &NodeRanks::rules) &&
      !input.node.devices.empty())
    why += ", as near to its device as is known";
  if (input.request->cores_per_rank)
    why += fmt::format(", --cpus-per-rank {}", *input.request->cores_per_rank);
  if (input.model != nullptr && !input.model->reserved.empty())
    why += fmt::format("; CPUs {} are reserved for the system: {}", input.model->reserved.to_list(),
                       input.model->reserved_why);
  if (has_parts(laid)) why += "; where other CPUs are granted, " + counted_why(input, laid);
  return why + remarks_of(laid);
}

Setting binding_choice(const PlanInput& input, BindVia via, int nodes, const LaidOut& laid) {
  if (via == BindVia::none && !input.request->bind_via && knows_amounts(input, nodes) &&
      limiting_quota(input) == 0)
    return choice("cpu-bind", Layer::computed, Unset{},
                  fmt::format("the job has part of each node ({}): {}", input.granted_why,
                              why_not_counted(input)));
  Setting setting{"cpu-bind", {}};
  const NodeRanks& first = laid.nodes.front();
  for (auto one = first.rules.rbegin(); one != first.rules.rend(); ++one) {
    PerRank lists{{{}}};
    for (const RankPlan& rank : one->ranks) lists.items[0].push_back(rank.cpus.to_list());
    setting.history.push_back(decided_by_rule(Layer::profile_default, std::move(lists),
                                              one->rule->id, one->rule->origin, one->condition));
  }
  PerRank cpus = per_rank(laid.placement, [](const RankPlan& rank) {
    return rank.part_first < 0 || !rank.cpus.empty() ? rank.cpus.to_list() : part_text(rank);
  });
  if (!first.list.empty()) {
    const bool typed = !input.request->cpu_bind.empty();
    setting.history.push_back(
        decided(typed ? Layer::command_line : Layer::environment, std::move(cpus),
                fmt::format("{} names the CPUs of each rank{}", first.list, remarks_of(laid))));
  } else if (first.rules.empty() || has_parts(laid)) {
    setting.history.push_back(decided(Layer::computed, std::move(cpus), binding_why(input, laid)));
  } else {
    setting.history.back().value = std::move(cpus);
    setting.history.back().why += remarks_of(laid);
  }
  if (via == BindVia::none) {
    const bool typed = input.request->bind_via.has_value();
    setting.history.push_back(decided(typed ? Layer::command_line : Layer::computed, Unset{},
                                      typed ? "--bind-via none" : "see bind-via"));
  }
  return setting;
}

struct Choice {
  BindVia via;
  std::string why;
};

Result<Choice> choose(const PlanInput& input, const Slots& slots, int nodes, bool alike) {
  const LauncherTraits& launcher = input.launcher;
  const bool launcher_can = launcher.binds_sets && alike;
  const bool counted_through = can_count_through(input, nodes);
  // Other nodes of a job on parts of nodes have granted other cores than this one.
  const bool parts = nameless_cores(input, nodes) && !counted_through && !input.granted_assumed;
  const bool amounts = knows_amounts(input, nodes) && !input.granted_assumed;
  const auto cannot = [](std::string message,
                         const char* fix = "omit --bind-via, or use --bind-via shim") {
    return request_error(std::move(message), fix, ErrorKind::unsupported);
  };
  const std::optional<BindVia> typed = input.request->bind_via;
  if (typed == BindVia::launcher && !launcher_can)
    return cannot(fmt::format("launcher {} takes no CPU list per rank{}", launcher.name,
                              launcher.binds_sets ? " that differs between nodes" : ""));
  if (typed == BindVia::launcher && amounts)
    return cannot(
        fmt::format("--bind-via launcher: the job has part of each node ({}), and the "
                    "granted CPUs are not known here",
                    input.granted_why));
  if (typed == BindVia::shim && parts && amounts)
    return cannot(fmt::format("--bind-via shim: the job has part of each node, and {}",
                              why_not_counted(input)),
                  "omit --bind-via: the batch system restricts ranks to the granted CPUs");
  if (typed) return Choice{*typed, "--bind-via"};
  if (limiting_quota(input) > 0 && input.request->cpu_bind.empty())
    return Choice{
        BindVia::none,
        fmt::format("{} granted, and not which CPUs ({}): others use all of them too",
                    input.cpu_quota_by.empty()
                        ? fmt::format("the time of {} is", counted(input.cpu_quota, "CPU"))
                        : fmt::format("{} by number are", input.cpu_quota),
                    input.cpu_quota_why)};
  if (parts)
    return Choice{BindVia::none, fmt::format("the job has part of each node, and {}; the batch "
                                             "system restricts ranks to the granted CPUs",
                                             amounts ? why_not_counted(input)
                                                     : "other cores are granted on other nodes")};
  if (counted_through)
    return Choice{BindVia::shim,
                  "only ranks can see which part of a node is granted; the shim binds"};
  if (slots.view == "launcher")
    return Choice{BindVia::launcher, "the launcher binds cores with devices; the shim verifies"};
  if (!launcher_can)
    return Choice{BindVia::shim, "the launcher takes no CPU list per rank here; the shim binds"};
  if (!launcher.shim_binds_why.empty()) return Choice{BindVia::shim, launcher.shim_binds_why};
  return Choice{BindVia::launcher, "the launcher takes CPU lists; the shim verifies"};
}

}  // namespace

int limiting_quota(const PlanInput& input) {
  return input.cpu_quota < input.node.allowed.count() ? input.cpu_quota : 0;
}

std::optional<Diagnostic> keep_to_quota(const PlanInput& input, Placement& placement) {
  const int quota = limiting_quota(input);
  if (quota == 0) return std::nullopt;
  for (NodeClass& node : placement.classes) {
    const auto ranks = static_cast<int>(node.ranks.size());
    for (int r = 0; r < ranks && !input.request->cores_per_rank; ++r) {
      int& cores = node.ranks[static_cast<std::size_t>(r)].cores;
      cores = std::clamp(quota / ranks + (r < quota % ranks ? 1 : 0), 1, cores);
    }
  }
  int threads = 0;
  for (const RankPlan& rank : placement.classes.front().ranks) threads += rank.cores;
  const bool group = input.cpu_quota_by.empty();
  const std::string grant =
      group ? fmt::format("the control group grants the time of {} and allows {}",
                          counted(quota, "CPU"), input.node.allowed.count())
            : fmt::format("{} grants {} of {} on each node, and which ones is not known",
                          input.cpu_quota_by, quota, counted(input.node.allowed.count(), "CPU"));
  return Diagnostic{
      "cpu-quota", !group || threads > quota ? Severity::warning : Severity::note,
      fmt::format("{} ({}): {} on each node{}", grant, input.cpu_quota_why,
                  counted(threads, "thread"),
                  placement.bind_via == BindVia::none ? ", ranks are not bound" : ""),
      (group ? std::string("request more CPUs for the container or the pod")
             : fmt::format("{} gives whole nodes", input.cpu_quota_fix)) +
          (threads > quota ? fmt::format(", or --ranks-per-node {}", quota) : std::string())};
}

Result<Made<BindVia>> decide_binding(const PlanInput& input, const Slots& slots, int nodes,
                                     const LaidOut& laid) {
  Result<Choice> chosen = choose(input, slots, nodes, laid.nodes.size() == 1);
  if (!chosen) return chosen.error();
  const Layer layer = input.request->bind_via ? Layer::command_line : Layer::builtin;
  return Made<BindVia>{
      chosen->via,
      {{binding_choice(input, chosen->via, nodes, laid),
        choice("bind-via", layer, std::string(to_string(chosen->via)), chosen->why)}}};
}

}  // namespace hpclaunch
