// From facts to a plan: devices, counts, layout, environment, wire.
#include "hpclaunch/make_plan.h"

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/profile.h"
#include "plan/cores/cores.h"
#include "plan/devices/visibility.h"
#include "plan/environment/environment.h"
#include "plan/steps.h"

namespace hpclaunch {

namespace {

void copy_input(const PlanInput& input, int nodes, Plan& plan) {
  const bool all = nodes == static_cast<int>(input.hosts.size());
  plan.hosts = all ? input.hosts : input.hosts.first(static_cast<std::size_t>(nodes));
  plan.available_nodes = static_cast<int>(input.hosts.size());
  plan.whole_allocation = input.job.whole_allocation && all;
  plan.invented_hosts = input.job.invented_hosts;
  plan.first_is_here = input.first_is_here;
  if (all) plan.hosts_file = input.hosts_file;
  plan.launcher = input.launcher.name;
  plan.verify = input.request.verify;
  plan.termination = input.launcher.termination;
  plan.output = input.request.output;
  plan.launcher_args = input.request.launcher_args;
  plan.command = input.request.command;
  plan.image = input.request.container.image;
  plan.directory = input.directory;
}

bool shares_cpus(const NodeClass& node) {
  CpuSet used;
  int parts_end = -1;
  return std::any_of(node.ranks.begin(), node.ranks.end(), [&](const RankPlan& rank) {
    const bool shared =
        used.intersects(rank.cpus) || (rank.part_first >= 0 && rank.part_first <= parts_end);
    used |= rank.cpus;
    parts_end = std::max(parts_end, rank.part_last);
    return shared;
  });
}

// In the order of Plan::choices.
Status add_choices(const PlanInput& input, std::optional<Setting> stack, const Counts& counts,
                   const Units& units, const LaidOut& laid, Plan& plan) {
  const auto add = [&](std::optional<Setting> setting) {
    if (setting) plan.choices.push_back(std::move(*setting));
  };
  add(choice("profile", Layer::computed, input.profile != nullptr ? input.profile->name : "none",
             input.profile_why));
  add(std::move(stack));
  plan.choices.insert(plan.choices.end(), units.choices.begin(), units.choices.end());
  plan.choices.insert(plan.choices.end(), counts.choices.begin(), counts.choices.end());
  if (Status bound = decide_binding(input, units, laid, plan); !bound) return bound;
  add(device_choice(units, !input.node.links.empty() && laid.front().rules.empty(), plan));
  add(nic_choice(input, plan));
  add(placement_choice(input, plan));
  add(mps_choice(input, units, plan));
  add(choice("launcher", Layer::computed, input.launcher.name, input.launcher_why));
  if (Status supervised = decide_supervise(input, plan); !supervised) return supervised;
  constexpr std::size_t kMostBytes = 2000;
  add(choice("hosts", Layer::environment, host_ranges(plan.hosts, kMostBytes), input.hosts_why));
  note_step(input, plan);
  return Done{};
}

Result<Plan> plan_one_vendor(const PlanInput& input) {
  if (const Status names = check_names(input.request); !names) return names.error();

  Result<Units> units = find_units(input);
  if (!units) return units.error();
  const Result<Counts> counts = decide_counts(input, *units);
  if (!counts) return counts.error();
  decide_view(input, counts->most(), *units);

  Facts facts = early_facts(input, *units, *counts);
  Result<std::optional<Setting>> stack = decide_stack(input, facts);
  if (!stack) return stack.error();
  facts.job["even"] = counts->even() ? "yes" : "no";
  if (*stack) facts.job["stack"] = std::get<std::string>((*stack)->value());

  Plan plan;
  copy_input(input, counts->nodes(), plan);
  const Result<LaidOut> laid = lay_out(input, counts->ranks_on, *units, facts, plan);
  if (!laid) return laid.error();
  if (!units->list.empty()) plan.gpu_view = units->view;
  plan.shared_cpus = std::any_of(plan.classes.begin(), plan.classes.end(), shares_cpus);
  add_placed_facts(input, plan, facts);
  if (const Status chosen = add_choices(input, std::move(*stack), *counts, *units, *laid, plan);
      !chosen)
    return chosen.error();
  if (plan.bind_via == BindVia::none)
    for (NodeClass& one : plan.classes)
      for (RankPlan& rank : one.ranks) rank.cpus = CpuSet{};

  if (const Status env = decide_environment(input, facts, *units, plan); !env) return env.error();
  report_placement(input, facts, *units, plan);
  if (const Status wire = add_wire(input, plan); !wire) return wire.error();
  return plan;
}

// --threads-per-core: the node with the first hardware threads of each core only.
PlanInput with_threads(PlanInput input, int threads) {
  int most = 1;
  for (const Core& core : input.node.cores) most = std::max(most, core.pus.count());
  for (int& granted : input.granted)
    granted = std::max(1, granted / most * std::min(threads, most));
  input.node = first_threads(std::move(input.node), threads);
  return input;
}

}  // namespace

Result<Plan> make_plan(const PlanInput& whole) {
  const std::optional<int>& threads = whole.request.threads_per_core;
  const PlanInput input = threads ? with_threads(whole, *threads) : whole;
  const std::optional<OneVendor> kept = keep_one_vendor(input);
  if (!kept) return plan_one_vendor(input);
  Result<Plan> plan = plan_one_vendor(kept->input);
  if (!plan) return plan;
  restore_indices(*kept, *plan);
  plan->reports.insert(plan->reports.begin(), kept->report);
  return plan;
}

}  // namespace hpclaunch
