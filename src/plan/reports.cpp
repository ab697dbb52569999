#include "plan/reports.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

// Cores that a service uses only while it runs may be bound, but not in silence.
void report_services(const PlanInput& input, Plan& plan) {
  if (input.model == nullptr || plan.bind_via == BindVia::none) return;
  CpuSet used;
  for (const NodeClass& one : plan.classes)
    for (const RankPlan& rank : one.ranks) used |= rank.cpus;
  for (const ServiceCores& service : input.model->services) {
    const CpuSet both = used & service.pus;
    if (both.empty()) continue;
    plan.reports.push_back(
        {"service-cores", "note",
         fmt::format("ranks are bound to CPU{} {}, which {} uses while it runs ({})",
                     both.count() == 1 ? "" : "s", both.to_list(), service.name, service.why),
         fmt::format("move {} to other cores, or use fewer cores with --cpus-per-rank",
                     service.name)});
  }
}

// Flags for devices are the profile's business; without any, every rank would get the first device.
void report_view(const Units& units, Plan& plan) {
  if (units.view != "launcher") return;
  const auto& args = plan.profile_args;
  if (std::any_of(args.begin(), args.end(),
                  [](const std::string& arg) { return arg.find("gpu") != std::string::npos; }))
    return;
  plan.reports.push_back(
      {"launcher-view", "error",
       fmt::format("nothing is known of flags by which {} gives each rank its device",
                   plan.launcher),
       "--gpu-view own, or all"});
}

void report_size(const PlanInput& input, Plan& plan) {
  const int most = input.model == nullptr ? 0 : input.model->count;
  if (most > 0 && plan.nodes() > most)
    plan.reports.push_back({"more-nodes-than-site", "warning",
                            fmt::format("{} planned, and {} has {} of this kind",
                                        counted(plan.nodes(), "node"), input.profile->name, most),
                            fmt::format("--nodes {} or fewer", most)});
}

}  // namespace

void report_placement(const PlanInput& input, const Units& units, Plan& plan) {
  report_services(input, plan);
  report_view(units, plan);
  report_size(input, plan);
}

}  // namespace hpclaunch
