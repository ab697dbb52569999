#include "hpclaunch/make_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "hpclaunch/wire.h"
#include "plan/bind_via.h"
#include "plan/devices/node_ranks.h"
#include "plan/devices/part.h"
#include "plan/devices/vendors.h"
#include "plan/devices/visibility.h"
#include "plan/environment/environment.h"
#include "plan/layout.h"
#include "plan/reports.h"
#include "plan/words.h"

namespace hpclaunch {

namespace {

struct LaidOut {
  std::vector<const Binding*> rules;  // one per class; nullptr where none was used
  std::string condition;              // of the first class
  std::vector<OverruledBinding> overruled;
  std::vector<std::string> remarks;
  std::vector<Diagnostic> reports;
  int far = 0;  // most ranks of a node that are not near their device
  int far_of = 0;
};

// One class per number of ranks on a node and size of its grant; neighbouring nodes of one class form a
// run.
Result<LaidOut> lay_out(const PlanInput& input, const Facts& facts, const Units& units,
                        const std::vector<int>& ranks_on, Plan& plan) {
  LaidOut laid;
  plan.classes.clear();
  plan.layout.clear();
  const int nodes = static_cast<int>(ranks_on.size());
  const bool by_amount = knows_amounts(input, nodes);
  const bool count_through = input.request.bind_via.value_or(BindVia::shim) == BindVia::shim &&
                             can_count_through(input, nodes);
  std::map<std::pair<int, int>, int> class_of;
  for (std::size_t n = 0; n < ranks_on.size(); ++n) {
    const int ranks = ranks_on[n];
    const int granted = input.part_of_node && n < input.granted.size() ? input.granted[n] : 0;
    const auto [at, fresh] =
        class_of.emplace(std::pair(ranks, granted), static_cast<int>(plan.classes.size()));
    if (fresh) {
      Result<NodeRanks> placed =
          by_amount ? share_part(input, units, input.hosts[n], granted, ranks, count_through)
                    : place_ranks(input, facts, units, ranks);
      if (!placed) return placed.error();
      if (placed->far > laid.far) {
        laid.far = placed->far;
        laid.far_of = ranks;
      }
      plan.classes.push_back(NodeClass{std::move(placed->ranks), granted});
      if (laid.rules.empty()) {
        laid.condition = std::move(placed->condition);
        laid.overruled = std::move(placed->overruled);
      }
      laid.rules.push_back(placed->rule);
      laid.reports.insert(laid.reports.end(), placed->reports.begin(), placed->reports.end());
      for (std::string& remark : placed->remarks)
        if (std::find(laid.remarks.begin(), laid.remarks.end(), remark) == laid.remarks.end())
          laid.remarks.push_back(std::move(remark));
    }
    if (!plan.layout.empty() && plan.layout.back().node_class == at->second)
      ++plan.layout.back().nodes;
    else
      plan.layout.push_back(NodeRun{at->second, 1});
  }
  return laid;
}

template <class Item>
PerRank per_rank(const Plan& plan, Item item) {
  PerRank values;
  for (const NodeClass& one : plan.classes) {
    values.items.emplace_back();
    for (const RankPlan& rank : one.ranks) values.items.back().push_back(item(rank));
  }
  return values;
}

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
    setting.history.push_back(decided(Layer::computed, Unset{}, kRule,
                                      fmt::format("the job has a part of each node ({}), and {}",
                                                  input.granted_why, why_not_counted(input))));
    return setting;
  }
  Decision bound =
      decided(Layer::computed,
              per_rank(plan,
                       [](const RankPlan& rank) {
                         return rank.part_first < 0 ? rank.cpus.to_list() : part_text(rank);
                       }),
              kRule, binding_why(input, plan, laid));
  for (auto lost = laid.overruled.rbegin(); lost != laid.overruled.rend(); ++lost) {
    PerRank lists{{{}}};
    for (const RankPlan& rank : lost->ranks) lists.items[0].push_back(rank.cpus.to_list());
    setting.history.push_back(
        decided(Layer::profile_default, std::move(lists), lost->rule->origin.where, ""));
    cite(lost->rule->id, lost->rule->origin, lost->condition, setting.history.back());
  }
  if (const Binding* rule = laid.rules.front()) {
    bound.layer = Layer::profile_default;
    cite(rule->id, rule->origin, laid.condition, bound);
    for (const std::string& remark : laid.remarks) bound.why += "; " + remark;
  }
  setting.history.push_back(std::move(bound));
  if (plan.bind_via == BindVia::none) {
    const bool typed = input.request.bind_via.has_value();
    setting.history.push_back(decided(typed ? Layer::command_line : Layer::computed, Unset{},
                                      typed ? kCommandLine : kRule,
                                      typed ? "--bind-via none" : "as bind-via says"));
  }
  return setting;
}

void add_device_choice(const Units& units, bool linked, Plan& plan) {
  if (units.list.empty()) return;
  plan.gpu_view = units.view;
  plan.choices.push_back(Setting{
      "devices",
      {decided(Layer::computed,
               per_rank(plan,
                        [](const RankPlan& rank) {
                          std::string text = rank.unit < 0 ? "" : std::to_string(rank.unit);
                          for (const UnitRef& more : rank.more_units)
                            text += fmt::format(",{}", more.unit);
                          return text;
                        }),
               kRule,
               fmt::format("{} on the node, {}, each by ranks that are nearest to it",
                           counted(units.total, "device"),
                           units.filled > 0 ? "filled in order" : "used evenly") +
                   (units.per_rank > 1
                        ? fmt::format("; --devices-per-rank {}, near one another", units.per_rank)
                        : "") +
                   (linked ? "; linked ones side by side" : ""))}});
}

void copy_input(const PlanInput& input, int nodes, Plan& plan) {
  const bool all = nodes == static_cast<int>(input.hosts.size());
  plan.hosts.assign(input.hosts.begin(), input.hosts.begin() + nodes);
  plan.whole_allocation = input.job.whole_allocation && all;
  if (all) plan.hosts_file = input.hosts_file;
  plan.launcher = input.launcher.name;
  plan.verify = input.request.verify;
  plan.termination = input.launcher.termination;
  plan.output = input.request.output;
  plan.launcher_args = input.request.launcher_args;
  plan.command = input.request.command;
}

void set_placed_facts(const PlanInput& input, const Plan& plan, Facts& facts) {
  int fewest = 0;
  int most = 0;
  for (const NodeClass& one : plan.classes)
    for (const RankPlan& rank : one.ranks) {
      fewest = fewest == 0 ? rank.cores : std::min(fewest, rank.cores);
      most = std::max(most, rank.cores);
    }
  int usable = 0;
  for (const Core& core : input.node.cores)
    usable += core.pus.intersects(input.node.allowed) ? 1 : 0;
  if (knows_amounts(input, plan.nodes()))
    usable = granted_cores(input.node, plan.classes.front().granted);
  const bool divide = plan.even() && fewest == most && fewest * plan.max_local_size() == usable;
  facts.job["min_cores"] = std::to_string(fewest);
  facts.job["cores_divide"] = divide ? "yes" : "no";
}

// The launcher sets its own variables again for each rank, and may.
bool is_conflicting(const PlanInput& input, const std::string& name) {
  const auto& all = input.launcher.conflicting;
  return std::any_of(all.begin(), all.end(), [&](const auto& one) {
    return one.prefix ? name.starts_with(one.name) : one.name == name;
  });
}

// A shell that is itself in a step holds the resources that a step of ours would wait for.
// Source: slurm src/common/slurm_protocol_defs.h: numbers from 0xfffffff0 are no ordinary steps.
void note_step(const PlanInput& input, Plan& plan) {
  constexpr long kReserved = 0xfffffff0;
  if (input.launcher.step_var.empty()) return;
  const std::string step = input.env.get(input.launcher.step_var);
  const std::optional<long> number = parse_natural(step, kReserved - 1);
  if (!number) return;
  plan.inside_step = true;
  plan.choices.push_back(
      choice("inside-step", Layer::environment, step, kEnvironment,
             fmt::format("{} is set: this shell is a step of the job and holds its nodes, so the "
                         "ranks' step has to share them",
                         input.launcher.step_var)));
}

Status decide_environment(const PlanInput& input, const Facts& facts, const Units& units,
                          Plan& plan) {
  EnvSettings settings(input.env);
  add_own_settings(input, plan, settings);
  apply_rules(input, facts, units, plan, settings);
  if (Status done = add_visibility(input, units, plan, settings); !done) return done;
  apply_late_rules(input, facts, units, plan, settings);
  plan.env = settings.finish();
  for (const Setting& setting : plan.env)
    if (std::holds_alternative<Unset>(setting.value()) && !is_conflicting(input, setting.name))
      plan.removed.push_back(setting.name);
  for (const LauncherTraits::Preset& preset : input.launcher.presets)
    plan.launcher_only.push_back(preset.name);
  return Done{};
}

// Once more where the driver's order of devices asks for another view: rules may ask which one it is.
Result<LaidOut> lay_out_in_view(const PlanInput& input, const std::vector<int>& ranks_on,
                                Units& units, Facts& facts, Plan& plan) {
  Result<LaidOut> laid = lay_out(input, facts, units, ranks_on, plan);
  if (laid && follow_driver_order(input, plan.classes, units)) {
    facts.job["gpu_view"] = units.view;
    laid = lay_out(input, facts, units, ranks_on, plan);
  }
  if (laid && laid->far > 0)
    plan.reports.push_back({"far-from-device", Severity::note,
                            fmt::format("{} of {} on a node have cores that are not near their "
                                        "device",
                                        laid->far, counted(laid->far_of, "rank")),
                            "hpclaunch plan --picture shows which"});
  if (laid) plan.reports.insert(plan.reports.end(), laid->reports.begin(), laid->reports.end());
  return laid;
}

// What was chosen, in the order of Plan::choices; who binds is chosen here.
Status add_choices(const PlanInput& input, std::optional<Setting> stack, const Counts& counts,
                   const Units& units, const LaidOut& laid, Plan& plan) {
  plan.choices.push_back(choice("profile", Layer::computed,
                                input.profile != nullptr ? input.profile->name : "none", kRule,
                                input.profile_why));
  if (stack) plan.choices.push_back(std::move(*stack));
  plan.choices.insert(plan.choices.end(), units.choices.begin(), units.choices.end());
  plan.choices.insert(plan.choices.end(), counts.choices.begin(), counts.choices.end());
  const std::size_t binding_at = plan.choices.size();
  if (const Status via = decide_via(input, units, plan); !via) return via.error();
  plan.choices.insert(plan.choices.begin() + static_cast<std::ptrdiff_t>(binding_at),
                      binding_choice(input, plan, laid));
  add_device_choice(units, !input.node.links.empty() && laid.rules.front() == nullptr, plan);
  if (std::optional<Setting> nics = nic_choice(input, plan))
    plan.choices.push_back(std::move(*nics));
  plan.choices.push_back(placement_choice(input, plan));
  plan.choices.push_back(
      choice("launcher", Layer::computed, input.launcher.name, kRule, input.launcher_why));
  if (Status supervised = decide_supervise(input, plan); !supervised) return supervised;
  plan.choices.push_back(choice("hosts", Layer::environment,
                                fmt::format("{}", fmt::join(plan.hosts, " ")), kEnvironment,
                                input.hosts_why));
  note_step(input, plan);
  return Done{};
}

Status add_wire(const PlanInput& input, Plan& plan) {
  std::vector<std::string> left_out;
  Result<std::string> wire =
      encode_wire(plan, {input.launcher.rank_var, input.launcher.local_rank_var}, &left_out);
  if (!wire) return wire.error();
  plan.wire = std::move(*wire);
  if (!left_out.empty())
    plan.reports.push_back(
        {"ranks-check-less", Severity::note,
         fmt::format("the ranks do not check {}: HPCLAUNCH_PLAN has no room for it",
                     fmt::join(left_out, " and ")),
         "hpclaunch verify compares everything"});
  return Done{};
}

Result<Plan> plan_one_vendor(const PlanInput& input) {
  if (const Status names = check_names(input.request); !names) return names.error();
  Result<Units> units = find_units(input);
  if (!units) return units.error();
  if (const Status shared = check_shared(input.request, *units); !shared) return shared.error();
  Result<Counts> counts = decide_counts(input, *units);
  if (!counts) return counts.error();
  const int nodes = static_cast<int>(counts->ranks_on.size());
  const int most = *std::max_element(counts->ranks_on.begin(), counts->ranks_on.end());
  const int ranks = std::accumulate(counts->ranks_on.begin(), counts->ranks_on.end(), 0);
  if (const Status launcher = check_launcher(input, nodes); !launcher) return launcher.error();
  if (const Status groups = check_groups(*units, most); !groups) return groups.error();
  decide_view(input, most, *units);

  Facts facts = early_facts(input, *units, nodes, ranks, most);
  Result<std::optional<Setting>> stack = decide_stack(input, facts);
  if (!stack) return stack.error();
  facts.job["even"] =
      counts->ranks_on.front() == counts->ranks_on.back() && ranks == most * nodes ? "yes" : "no";
  if (*stack) facts.job["stack"] = std::get<std::string>((*stack)->value());

  Plan plan;
  copy_input(input, nodes, plan);
  const Result<LaidOut> laid = lay_out_in_view(input, counts->ranks_on, *units, facts, plan);
  if (!laid) return laid.error();
  set_placed_facts(input, plan, facts);
  if (const Status chosen = add_choices(input, std::move(*stack), *counts, *units, *laid, plan);
      !chosen)
    return chosen.error();
  if (plan.bind_via == BindVia::none)
    for (NodeClass& one : plan.classes)
      for (RankPlan& rank : one.ranks) rank.cpus = CpuSet{};

  if (const Status folded = decide_environment(input, facts, *units, plan); !folded)
    return folded.error();
  plan.forward = names_to_forward(input, plan);
  report_placement(input, *units, plan);
  if (const Status wire = add_wire(input, plan); !wire) return wire.error();
  return plan;
}

}  // namespace

Result<Plan> make_plan(const PlanInput& input) {
  const std::optional<OneVendor> kept = keep_one_vendor(input);
  if (!kept) return plan_one_vendor(input);
  Result<Plan> plan = plan_one_vendor(kept->input);
  if (!plan) return plan;
  restore_indices(*kept, *plan);
  plan->reports.insert(plan->reports.begin(), kept->report);
  return plan;
}

}  // namespace hpclaunch
