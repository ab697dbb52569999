#include "hpclaunch/make_plan.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <map>
#include <numeric>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "hpclaunch/wire.h"
#include "plan/environment.h"
#include "plan/layout.h"
#include "plan/node_ranks.h"
#include "plan/reports.h"
#include "plan/rules.h"
#include "plan/visibility.h"

namespace hpclaunch {

namespace {

Decision decided(Layer layer, Value value, SourceRef where, std::string why) {
  Decision decision;
  decision.layer = layer;
  decision.value = std::move(value);
  decision.where = std::move(where);
  decision.why = std::move(why);
  return decision;
}

Setting choice(std::string name, Layer layer, std::string value, SourceRef where, std::string why) {
  return Setting{std::move(name),
                 {decided(layer, std::move(value), std::move(where), std::move(why))}};
}

struct LaidOut {
  std::vector<const Binding*> rules;  // one per class; nullptr where none was used
  std::string condition;              // of the first class
  std::vector<OverruledBinding> overruled;
  std::vector<std::string> remarks;
};

// One class per number of ranks on a node; neighbouring nodes of one class form a run.
Result<LaidOut> lay_out(const PlanInput& input, const Facts& facts, const Units& units,
                        const std::vector<int>& ranks_on, Plan& plan) {
  LaidOut laid;
  std::map<int, int> class_of;
  for (const int ranks : ranks_on) {
    const auto [at, fresh] = class_of.emplace(ranks, static_cast<int>(plan.classes.size()));
    if (fresh) {
      Result<NodeRanks> placed = place_ranks(input, facts, units, ranks);
      if (!placed) return placed.error();
      plan.classes.push_back(NodeClass{std::move(placed->ranks)});
      if (laid.rules.empty()) {
        laid.condition = std::move(placed->condition);
        laid.overruled = std::move(placed->overruled);
      }
      laid.rules.push_back(placed->rule);
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

std::string binding_why(const PlanInput& input, const LaidOut& laid) {
  const bool near = std::any_of(laid.rules.begin(), laid.rules.end(),
                                [](const Binding* rule) { return rule == nullptr; });
  std::string why = "each rank gets whole cores of its own, hardware threads together";
  if (near && !input.node.devices.empty()) why += ", as near to its device as is known";
  if (input.options.cores_per_rank)
    why += fmt::format(", --cpus-per-rank {}", *input.options.cores_per_rank);
  if (input.model != nullptr && !input.model->reserved.empty())
    why += fmt::format("; CPUs {} are kept for the system: {}", input.model->reserved.to_list(),
                       input.model->reserved_why);
  for (const std::string& remark : laid.remarks) why += "; " + remark;
  return why;
}

Status decide_via(const PlanInput& input, const Units& units, Plan& plan) {
  const std::optional<BindVia> typed = input.options.bind_via;
  const bool launcher_can = input.launcher.binds_sets && plan.classes.size() == 1;
  if (typed == BindVia::launcher && !launcher_can)
    return Error{ErrorKind::unsupported,
                 fmt::format("launcher {} takes no list of CPUs per rank{}", input.launcher.name,
                             input.launcher.binds_sets ? " that differs between nodes" : ""),
                 "leave --bind-via out, or use --bind-via shim", kCommandLine};
  const bool by_devices = units.view == "launcher";  // its own flags bind CPUs with devices
  // Other nodes of a job on parts of nodes have granted other cores than this one.
  const bool parts = nameless_cores(input, plan.nodes());
  plan.bind_via = typed.value_or(parts                        ? BindVia::none
                                 : launcher_can || by_devices ? BindVia::launcher
                                                              : BindVia::shim);
  plan.choices.push_back(
      choice("bind-via", typed ? Layer::command_line : Layer::builtin,
             std::string(to_string(plan.bind_via)), typed ? kCommandLine : kRule,
             typed   ? "--bind-via"
             : parts ? "the job has a part of each node, and other cores on each: the batch system "
                       "keeps ranks inside"
             : by_devices ? "the launcher binds cores together with devices; the shim compares"
             : plan.bind_via == BindVia::launcher
                 ? "this launcher takes explicit CPU lists; the shim compares"
                 : "the launcher cannot give each rank its CPU list here; the shim binds"));
  return Done{};
}

void cite(const Binding& rule, const std::string& condition, Decision& decision) {
  decision.where = rule.origin.where;
  decision.rule = rule.id;
  decision.profile = rule.origin.profile;
  decision.why = rule.origin.why;
  decision.source = rule.origin.source;
  decision.checked = rule.origin.checked;
  decision.condition = condition;
  decision.printed = rule.origin.printed;
  decision.printed_why = rule.origin.printed_why;
  decision.disputed = rule.origin.disputed;
}

Setting binding_choice(const PlanInput& input, const Plan& plan, const LaidOut& laid) {
  Setting setting{"cpu-bind", {}};
  Decision bound = decided(Layer::computed,
                           per_rank(plan, [](const RankPlan& rank) { return rank.cpus.to_list(); }),
                           kRule, binding_why(input, laid));
  for (auto lost = laid.overruled.rbegin(); lost != laid.overruled.rend(); ++lost) {
    PerRank lists{{{}}};
    for (const RankPlan& rank : lost->ranks) lists.items[0].push_back(rank.cpus.to_list());
    setting.history.push_back(
        decided(Layer::profile_default, std::move(lists), lost->rule->origin.where, ""));
    cite(*lost->rule, lost->condition, setting.history.back());
  }
  if (const Binding* rule = laid.rules.front()) {
    bound.layer = Layer::profile_default;
    cite(*rule, laid.condition, bound);
    for (const std::string& remark : laid.remarks) bound.why += "; " + remark;
  }
  setting.history.push_back(std::move(bound));
  if (plan.bind_via == BindVia::none) {
    const bool typed = input.options.bind_via.has_value();
    setting.history.push_back(decided(typed ? Layer::command_line : Layer::computed, Unset{},
                                      typed ? kCommandLine : kRule,
                                      typed ? "--bind-via none" : "as bind-via says"));
  }
  return setting;
}

void add_device_choice(const Units& units, Plan& plan) {
  if (units.list.empty()) return;
  plan.gpu_view = units.view;
  plan.choices.push_back(Setting{
      "devices",
      {decided(
          Layer::computed,
          per_rank(plan,
                   [](const RankPlan& rank) {
                     return rank.unit < 0 ? std::string() : std::to_string(rank.unit);
                   }),
          kRule,
          fmt::format("{} on the node, dealt in blocks in the order of the cores they are near to",
                      counted(units.count(), "device")))}});
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

Status check_launcher(const PlanInput& input, std::size_t nodes) {
  if (nodes <= 1 || input.launcher.multi_node) return Done{};
  return Error{ErrorKind::unsupported,
               fmt::format("launcher {} starts ranks on this machine only, the plan has {}",
                           input.launcher.name, counted(static_cast<long>(nodes), "node")),
               "use --nodes 1, or another launcher with --launcher NAME"};
}

void copy_input(const PlanInput& input, std::size_t nodes, Plan& plan) {
  plan.hosts.assign(input.hosts.begin(), input.hosts.begin() + static_cast<std::ptrdiff_t>(nodes));
  plan.whole_allocation = input.job.whole_allocation && nodes == input.hosts.size();
  if (nodes == input.hosts.size()) plan.hosts_file = input.hosts_file;
  plan.launcher = input.launcher.name;
  plan.verify = input.verify;
  plan.output = input.output;
  plan.launcher_args = input.launcher_args;
  plan.command = input.command;
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
  const bool divide = plan.even() && fewest == most && fewest * plan.max_local_size() == usable;
  facts.job["min_cores"] = std::to_string(fewest);
  facts.job["cores_divide"] = divide ? "yes" : "no";
}

Status fold_all(const PlanInput& input, const Facts& facts, const Units& units, Plan& plan) {
  Fold fold(input.env);
  add_own_opinions(input, plan, fold);
  apply_rules(input, facts, units, plan, fold);
  if (Status done = add_visibility(input, units, plan, fold); !done) return done;
  apply_late_rules(input, facts, units, plan, fold);
  plan.env = fold.finish();
  return Done{};
}

}  // namespace

Result<Plan> make_plan(const PlanInput& input) {
  if (const Status names = check_names(input.options); !names) return names.error();
  Result<Units> units = find_units(input);
  if (!units) return units.error();
  Result<Counts> counts = decide_counts(input, *units);
  if (!counts) return counts.error();
  const std::size_t nodes = counts->ranks_on.size();
  if (const Status launcher = check_launcher(input, nodes); !launcher) return launcher.error();

  Plan plan;
  copy_input(input, nodes, plan);
  const int most = *std::max_element(counts->ranks_on.begin(), counts->ranks_on.end());
  const int ranks = std::accumulate(counts->ranks_on.begin(), counts->ranks_on.end(), 0);
  decide_view(input, most, *units);
  Facts facts = early_facts(input, *units, static_cast<int>(nodes), ranks, most);
  Result<std::optional<Setting>> stack = decide_stack(input, facts);
  if (!stack) return stack.error();
  const bool even = counts->ranks_on.front() == counts->ranks_on.back() &&
                    ranks == most * static_cast<int>(nodes);
  facts.job["even"] = even ? "yes" : "no";
  if (*stack) facts.job["stack"] = std::get<std::string>((*stack)->value());
  Result<LaidOut> laid = lay_out(input, facts, *units, counts->ranks_on, plan);
  if (!laid) return laid.error();
  set_placed_facts(input, plan, facts);

  plan.choices.push_back(choice("profile", Layer::computed,
                                input.profile != nullptr ? input.profile->name : "none", kRule,
                                input.profile_why));
  if (*stack) plan.choices.push_back(std::move(**stack));
  for (Setting& setting : units->choices) plan.choices.push_back(std::move(setting));
  for (Setting& setting : counts->choices) plan.choices.push_back(std::move(setting));
  const std::size_t binding_at = plan.choices.size();
  if (const Status via = decide_via(input, *units, plan); !via) return via.error();
  plan.choices.insert(plan.choices.begin() + static_cast<std::ptrdiff_t>(binding_at),
                      binding_choice(input, plan, *laid));
  add_device_choice(*units, plan);
  plan.choices.push_back(
      choice("launcher", Layer::computed, input.launcher.name, kRule, input.launcher_why));
  plan.choices.push_back(choice("hosts", Layer::environment,
                                fmt::format("{}", fmt::join(plan.hosts, " ")), kEnvironment,
                                input.hosts_why));
  if (plan.bind_via == BindVia::none)
    for (NodeClass& one : plan.classes)
      for (RankPlan& rank : one.ranks) rank.cpus = CpuSet{};

  if (const Status folded = fold_all(input, facts, *units, plan); !folded) return folded.error();
  report_placement(input, *units, plan);
  Result<std::string> wire =
      encode_wire(plan, {input.launcher.rank_var, input.launcher.local_rank_var});
  if (!wire) return wire.error();
  plan.wire = std::move(*wire);
  return plan;
}

}  // namespace hpclaunch
