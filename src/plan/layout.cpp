#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/text.h"
#include "plan/devices/node_ranks.h"
#include "plan/devices/visibility.h"
#include "plan/steps.h"

namespace hpclaunch {

namespace {

Result<LaidOut> lay_out_once(const PlanInput& input, const std::vector<int>& ranks_on,
                             const Units& units, const Facts& facts, Plan& plan) {
  LaidOut laid;
  plan.classes.clear();
  plan.layout.clear();
  const int nodes = static_cast<int>(ranks_on.size());
  const bool by_amount = knows_amounts(input, nodes);
  const bool count_through = input.request.bind_via.value_or(BindVia::shim) == BindVia::shim &&
                             can_count_through(input, nodes);
  std::map<std::pair<int, int>, int> class_of;
  for (std::size_t n = 0; n < ranks_on.size(); ++n) {
    const int granted = input.part_of_node && n < input.granted.size() ? input.granted[n] : 0;
    const auto [at, fresh] =
        class_of.emplace(std::pair(ranks_on[n], granted), static_cast<int>(plan.classes.size()));
    if (fresh) {
      Result<NodeRanks> placed =
          by_amount ? share_part(input, units, input.hosts[n], granted, ranks_on[n], count_through)
                    : place_ranks(input, facts, units, ranks_on[n]);
      if (!placed) return placed.error();
      plan.classes.push_back(NodeClass{placed->ranks, granted});
      laid.push_back(std::move(*placed));
    }
    if (!plan.layout.empty() && plan.layout.back().node_class == at->second)
      ++plan.layout.back().nodes;
    else
      plan.layout.push_back(NodeRun{at->second, 1});
  }
  return laid;
}

}  // namespace

Result<LaidOut> lay_out(const PlanInput& input, const std::vector<int>& ranks_on, Units& units,
                        Facts& facts, Plan& plan) {
  Result<LaidOut> laid = lay_out_once(input, ranks_on, units, facts, plan);
  if (laid && follow_driver_order(input, plan.classes, units)) {
    facts.job["gpu_view"] = units.view;
    laid = lay_out_once(input, ranks_on, units, facts, plan);
  }
  if (!laid) return laid;
  const NodeRanks& most = *std::ranges::max_element(*laid, {}, &NodeRanks::far);
  if (most.far > 0)
    plan.reports.push_back({"far-from-device", Severity::note,
                            fmt::format("{} of {} on a node are not on the cores nearest to their "
                                        "device",
                                        most.far, counted(most.ranks.size(), "rank")),
                            "hpclaunch plan --picture shows them"});
  for (const NodeRanks& one : *laid)
    plan.reports.insert(plan.reports.end(), one.reports.begin(), one.reports.end());
  return laid;
}

}  // namespace hpclaunch
