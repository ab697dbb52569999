// From facts to a plan: devices, counts, layout, environment, wire.
#include "hpclaunch/make_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <iterator>
#include <numeric>

#include "hpclaunch/hosts.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/wire.h"
#include "plan/cores/cores.h"
#include "plan/devices/visibility.h"
#include "plan/environment/environment.h"
#include "plan/steps.h"

namespace hpclaunch {

namespace {

Hosts hosts_of(const PlanInput& input, int nodes) {
  const int available = static_cast<int>(input.hosts.size());
  const bool all = nodes == available;
  std::vector<int> places = input.places;
  if (places.empty() && input.job.whole_allocation && !all) {
    places.resize(static_cast<std::size_t>(nodes));
    std::iota(places.begin(), places.end(), 0);
  }
  if (!places.empty()) places.resize(static_cast<std::size_t>(nodes));
  return {all ? input.hosts : input.hosts.first(static_cast<std::size_t>(nodes)),
          all ? input.hosts_file : "",
          input.job.whole_allocation && all,
          input.job.invented_hosts,
          input.job.later,
          input.first_is_here,
          std::move(places),
          available,
          input.own,
          input.own_why};
}

template <class Item>
void append(std::vector<Item> more, std::vector<Item>& all) {
  std::ranges::move(more, std::back_inserter(all));
}

Result<Made<Placement>> place(const PlanInput& input, const Counts& counts, Slots& slots,
                              Facts& facts) {
  Result<LaidOut> laid = lay_out(input, counts, slots, facts);
  if (!laid) return laid.error();
  Result<Made<BindVia>> bound = decide_binding(input, slots, counts.nodes.value, *laid);
  if (!bound) return bound.error();
  append(describe(input, slots, *laid), bound->said.choices);
  Made<Placement> made{std::move(laid->placement),
                       {std::move(bound->said.choices), std::move(laid->reports), {}, {}}};
  made.part.bind_via = bound->part;
  if (std::optional<Diagnostic> quota = keep_to_quota(input, made.part))
    made.said.reports.push_back(*std::move(quota));
  if (bound->part == BindVia::none)
    for (NodeClass& one : made.part.classes)
      for (RankPlan& rank : one.ranks) rank.cpus = CpuSet{};
  return made;
}

// The shim's copy of the plan; a report names the checks that it has no room for.
Status add_wire(const PlanInput& input, Plan& plan) {
  std::vector<std::string> left_out;
  Result<std::string> wire = encode_wire(
      plan, {input.launcher.rank_var, input.launcher.local_rank_var, !input.launcher.built_in},
      &left_out);
  if (!wire) return wire.error();
  plan.environment.wire = std::move(*wire);
  if (!left_out.empty())
    plan.explanation.reports.push_back(
        {"ranks-check-less", Severity::note,
         fmt::format("ranks do not check {}: HPCLAUNCH_PLAN would be too long",
                     fmt::join(left_out, " and ")),
         "hpclaunch verify"});
  return Done{};
}

Result<Plan> plan_one_vendor(const PlanInput& input) {
  if (const Status names = check_names(*input.request); !names) return names.error();
  Result<Slots> slots = find_slots(input);
  if (!slots) return slots.error();
  const Result<Counts> counts = decide_counts(input, *slots);
  if (!counts) return counts.error();
  decide_view(input, counts->most(), *slots);

  Facts facts = early_facts(input, *slots, *counts);
  Result<std::optional<Setting>> stack = decide_stack(input, facts);
  if (!stack) return stack.error();
  facts.job["even"] = counts->even() ? "yes" : "no";
  if (*stack) facts.job["stack"] = std::get<std::string>((*stack)->value());

  Plan plan;
  plan.hosts = hosts_of(input, counts->nodes.value);
  Result<Made<Placement>> placed = place(input, *counts, *slots, facts);
  if (!placed) return placed.error();
  plan.placement = std::move(placed->part);

  auto& [choices, reports, idle, outside] = plan.explanation;
  choices = {choice("profile", Layer::computed,
                    input.profile != nullptr ? input.profile->name : "none", input.profile_why)};
  if (*stack) choices.push_back(**std::move(stack));
  append(slots->choices, choices);  // the view may be the one that place() has chosen
  append(counts->choices(), choices);
  append(std::move(placed->said.choices), choices);
  reports = std::move(placed->said.reports);
  add_placed_facts(input, plan.nodes(), plan.placement, facts);

  const std::optional<Setting> mps = mps_choice(input, *slots, plan.placement, reports);
  if (mps) choices.push_back(*mps);
  choices.push_back(choice("launcher", Layer::computed, input.launcher.name, input.launcher_why));
  Result<Made<Supervision>> supervised =
      decide_supervision(input, mps && mps->value() == Value("on"));
  if (!supervised) return supervised.error();
  plan.supervision = std::move(supervised->part);
  append(std::move(supervised->said.choices), choices);
  append(std::move(supervised->said.reports), reports);
  constexpr std::size_t kMostBytes = 2000;
  if (input.own >= 0)
    choices.push_back(choice("node", Layer::environment,
                             fmt::format("{} of {}", input.own, plan.nodes()), input.own_why));
  choices.push_back(choice("hosts", Layer::environment, host_ranges(plan.hosts.names, kMostBytes),
                           input.hosts_why));
  const std::optional<Setting> step = step_choice(input);
  if (step) choices.push_back(*step);

  Result<Settled> settled =
      decide_environment(input, facts, *slots, plan.hosts, plan.placement, plan.supervision);
  if (!settled) return settled.error();
  plan.environment = std::move(settled->environment);
  plan.launch = {
      input.launcher.name, std::move(settled->args), input.launcher_args, std::move(settled->batch),
      input.image,         input.directory,          step.has_value(),    input.command};
  append(std::move(settled->said.choices), choices);
  append(std::move(settled->said.reports), reports);
  idle = std::move(settled->said.idle);
  outside = std::move(settled->said.outside);
  append(report_placement(input, facts, *slots, plan), reports);
  if (const Status wire = add_wire(input, plan); !wire) return wire.error();
  return plan;
}

// --threads-per-core: the node with the first hardware threads of each core only.
PlanInput with_threads(PlanInput input, int threads) {
  int most = 1;
  for (const Core& core : input.node.cores) most = std::max(most, core.pus.count());
  for (int& granted : input.granted)
    granted = (granted + most - 1) / most * std::min(threads, most);
  input.node = first_threads(std::move(input.node), threads);
  input.whole_node &= input.node.all_pus();
  return input;
}

}  // namespace

Result<Plan> make_plan(const PlanInput& whole) {
  const std::optional<int>& threads = whole.request->threads_per_core;
  std::optional<PlanInput> changed;
  if (threads) changed = with_threads(whole, *threads);
  if (!whole.grants.empty()) changed = with_grant(changed ? *std::move(changed) : whole, 0);
  const PlanInput& input = changed ? *changed : whole;
  const std::optional<OneVendor> kept = keep_one_vendor(input);
  if (!kept) return plan_one_vendor(input);
  Result<Plan> plan = plan_one_vendor(kept->input);
  if (!plan) return plan;
  restore_indices(*kept, plan->placement);
  auto& reports = plan->explanation.reports;
  reports.insert(reports.begin(), kept->report);
  return plan;
}

}  // namespace hpclaunch
