// Ranks on lists of CPUs that were typed or exported.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"
#include "plan/devices/node_ranks.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

constexpr const char* kVariable = "CPU_BIND";  // what launch lines in sites' guides take

// Why the CPUs cannot be these ranks'; nullopt: they can.
std::optional<std::string> fault_of(const PlanInput& input, const std::vector<CpuSet>& lists,
                                    int most) {
  if (static_cast<int>(lists.size()) != most)
    return fmt::format("it has the CPUs of {}, and a node has {}", counted(lists.size(), "rank"),
                       most);
  CpuSet taken;
  for (const CpuSet& cpus : lists) {
    const CpuSet unusable = cpus - input.node.allowed;
    if (input.model != nullptr && unusable.intersects(input.model->reserved))
      return fmt::format("{} {} reserved for the system: {}",
                         cpus_text(unusable & input.model->reserved),
                         (unusable & input.model->reserved).count() == 1 ? "is" : "are",
                         input.model->reserved_why);
    if (!unusable.empty())
      return fmt::format("{} cannot be used on this node ({} can)", cpus_text(unusable),
                         cpus_text(input.node.allowed));
    if (const CpuSet twice = taken & cpus; !twice.empty() && !input.request->oversubscribe)
      return fmt::format("{} would be two ranks'", cpus_text(twice));
    taken |= cpus;
  }
  return std::nullopt;
}

// The core that is nearest to the rank's among those that no rank has.
int nearest_idle(const Topology& node, const CpuSet& idle, const CpuSet& rank) {
  for (int far = kSameNuma; far < kElsewhere; ++far)
    if (const CpuSet near = around(node, rank, far) & idle; !near.empty()) return near.first();
  return idle.first();
}

// Cores of helper threads, as the rule in use has them: the rank's own, or none of a rank's.
void give_roles(const Topology& node, const std::vector<RankPlan>& by_rule,
                std::vector<RankPlan>& ranks) {
  CpuSet idle = node.allowed;
  for (const RankPlan& rank : ranks) idle -= rank.cpus;
  for (std::size_t r = 0; r < ranks.size() && r < by_rule.size(); ++r)
    for (const auto& [name, cpu] : by_rule[r].roles) {
      const bool own = by_rule[r].cpus.has(cpu) || idle.empty();
      const int core = own ? ranks[r].cpus.last() : nearest_idle(node, idle, ranks[r].cpus);
      ranks[r].roles[name] = core;
      for (const Core& one : node.cores)
        if (!own && one.pus.has(core)) idle -= one.pus;
    }
}

// What keeps ranks from any list; nullopt: nothing does.
std::optional<std::string> obstacle(const PlanInput& input) {
  if (input.request->cores_per_rank) return "--cpus-per-rank decides";
  if (input.request->bind_via == BindVia::none) return "--bind-via none leaves ranks unbound";
  return std::nullopt;
}

}  // namespace

std::string own_list(const PlanInput& input) {
  const std::string& typed = input.request->cpu_bind;
  return std::string(trim(typed.empty() ? input.env.get(kVariable) : typed));
}

Result<bool> refuse_list(const PlanInput& input, const std::string& why, Severity severity,
                         const std::string& fix, std::vector<Diagnostic>& reports) {
  const std::string text = own_list(input);
  if (text.empty()) return false;
  if (!input.request->cpu_bind.empty())
    return request_error(fmt::format("--cpu-bind {}: {}", shown(text), why), fix);
  reports.push_back(
      {"list-ignored", severity, fmt::format("ignoring {}=\"{}\": {}", kVariable, shown(text), why),
       fmt::format("unset {}, or export CPUs for as many ranks as a node has", kVariable)});
  return false;
}

Result<bool> bind_by_list(const PlanInput& input, const Slots& slots, int ranks, int most,
                          NodeRanks& result) {
  const std::string text = own_list(input);
  if (text.empty() || most == 0) return false;
  if (const auto why = obstacle(input))
    return refuse_list(input, *why, Severity::note, "omit one of the two", result.reports);
  const Result<std::vector<CpuSet>> lists = parse_cpu_lists(text);
  const auto fault = lists ? fault_of(input, *lists, most) : lists.error().message;
  const bool other_count = lists && static_cast<int>(lists->size()) != most;
  if (fault)
    return refuse_list(
        input, *fault, other_count ? Severity::note : Severity::warning,
        other_count ? fmt::format("--ppn {}, or CPUs for {}", lists->size(), counted(most, "rank"))
                    : "omit --cpu-bind: hpclaunch plan shows the cores it chooses",
        result.reports);
  const std::vector<RankPlan> by_rule = std::move(result.ranks);
  result.ranks.clear();
  for (int r = 0; r < ranks; ++r) {
    RankPlan& rank = result.ranks.emplace_back();
    rank.cpus = (*lists)[static_cast<std::size_t>(r)];
    describe_cpus(input.node, rank);
  }
  give_roles(input.node, by_rule, result.ranks);
  result.assigned = match_bound(input.node, slots, result.ranks);
  result.list = input.request->cpu_bind.empty() ? kVariable : "--cpu-bind";
  return true;
}

}  // namespace hpclaunch
