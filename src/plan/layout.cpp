#include "plan/layout.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/text.h"
#include "plan/devices/node_ranks.h"
#include "plan/devices/visibility.h"

namespace hpclaunch {

namespace {

void add_class(NodeRanks placed, int granted, Plan& plan, LaidOut& laid) {
  if (placed.far > laid.far) {
    laid.far = placed.far;
    laid.far_of = static_cast<int>(placed.ranks.size());
  }
  plan.classes.push_back(NodeClass{std::move(placed.ranks), granted});
  if (laid.rules.empty()) {
    laid.condition = std::move(placed.condition);
    laid.overridden = std::move(placed.overridden);
  }
  laid.rules.push_back(placed.rule);
  laid.reports.insert(laid.reports.end(), placed.reports.begin(), placed.reports.end());
  for (std::string& remark : placed.remarks)
    if (std::find(laid.remarks.begin(), laid.remarks.end(), remark) == laid.remarks.end())
      laid.remarks.push_back(std::move(remark));
}

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
      add_class(std::move(*placed), granted, plan, laid);
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
  if (laid->far > 0)
    plan.reports.push_back({"far-from-device", Severity::note,
                            fmt::format("{} of {} on a node have cores that are not near their "
                                        "device",
                                        laid->far, counted(laid->far_of, "rank")),
                            "hpclaunch plan --picture shows which"});
  plan.reports.insert(plan.reports.end(), laid->reports.begin(), laid->reports.end());
  return laid;
}

}  // namespace hpclaunch
