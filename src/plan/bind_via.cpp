#include "plan/bind_via.h"

#include <fmt/format.h>

#include "plan/devices/part.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

// What there is to choose from, and why.
struct Ways {
  bool launcher_can = false;     // one list of CPUs for each rank, the same on all nodes
  bool by_devices = false;       // the launcher's own flags bind CPUs with devices
  bool counted_through = false;  // CPUs that only the ranks see, by their place among those granted
  bool parts = false;            // and where that is not sound either
  bool amounts = false;          // how many CPUs each node gives is known
};

Ways find_ways(const PlanInput& input, const Units& units, const Plan& plan) {
  Ways ways;
  ways.launcher_can = input.launcher.binds_sets && plan.classes.size() == 1;
  ways.by_devices = units.view == "launcher";
  ways.counted_through = can_count_through(input, plan.nodes());
  // Other nodes of a job on parts of nodes have granted other cores than this one.
  ways.parts = nameless_cores(input, plan.nodes()) && !ways.counted_through;
  ways.amounts = knows_amounts(input, plan.nodes());
  return ways;
}

Status check_typed(const PlanInput& input, const Ways& ways) {
  const std::optional<BindVia> typed = input.request.bind_via;
  if (typed == BindVia::launcher && !ways.launcher_can)
    return Error{ErrorKind::unsupported,
                 fmt::format("launcher {} takes no list of CPUs per rank{}", input.launcher.name,
                             input.launcher.binds_sets ? " that differs between nodes" : ""),
                 "leave --bind-via out, or use --bind-via shim", kCommandLine};
  if (typed == BindVia::launcher && ways.amounts)
    return Error{
        ErrorKind::unsupported,
        fmt::format("the job has a part of each node, and which CPUs that are is not known "
                    "here ({}): launcher {} cannot be given lists",
                    input.granted_why, input.launcher.name),
        "leave --bind-via out, or use --bind-via shim", kCommandLine};
  if (typed == BindVia::shim && ways.parts && ways.amounts)
    return Error{ErrorKind::unsupported,
                 fmt::format("the job has a part of each node: {}", why_not_counted(input)),
                 "leave --bind-via out: the batch system keeps ranks inside", kCommandLine};
  return Done{};
}

struct Chosen {
  BindVia via;
  std::string why;
};

Chosen choose(const PlanInput& input, const Ways& ways) {
  if (ways.parts)
    return {BindVia::none,
            fmt::format("the job has a part of each node, and {}: the batch system keeps ranks "
                        "inside",
                        ways.amounts ? why_not_counted(input) : "other cores on each")};
  if (ways.counted_through)
    return {BindVia::shim,
            "the job has a part of each node, which only the ranks there can see; the shim binds"};
  if (ways.by_devices)
    return {BindVia::launcher, "the launcher binds cores together with devices; the shim compares"};
  if (!ways.launcher_can)
    return {BindVia::shim, "the launcher cannot give each rank its CPU list here; the shim binds"};
  if (!input.launcher.shim_binds_why.empty()) return {BindVia::shim, input.launcher.shim_binds_why};
  return {BindVia::launcher, "this launcher takes explicit CPU lists; the shim compares"};
}

}  // namespace

Status decide_via(const PlanInput& input, const Units& units, Plan& plan) {
  const Ways ways = find_ways(input, units, plan);
  if (Status possible = check_typed(input, ways); !possible) return possible;
  Chosen chosen = choose(input, ways);
  const std::optional<BindVia> typed = input.request.bind_via;
  if (typed) chosen = {*typed, "--bind-via"};
  plan.bind_via = chosen.via;
  plan.choices.push_back(choice("bind-via", typed ? Layer::command_line : Layer::builtin,
                                std::string(to_string(chosen.via)), typed ? kCommandLine : kRule,
                                std::move(chosen.why)));
  return Done{};
}

}  // namespace hpclaunch
