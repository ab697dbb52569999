// A report in full: what the rank left out is as planned.
#include <algorithm>

#include "compare.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

// The shim writes bytes beyond ASCII as U+0080 to U+00FF.
std::string bytes_of(const std::string& text) {
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const auto lead = static_cast<unsigned char>(text[i]);
    const bool pair = (lead == 0xC2 || lead == 0xC3) && i + 1 < text.size();
    out += pair ? static_cast<char>((lead & 3) << 6 | (text[++i] & 0x3F)) : text[i];
  }
  return out;
}

std::map<std::string, std::string> values_of(const Plan& plan, const Observed& seen,
                                             const RankPlace& place, const RankReport& report) {
  std::map<std::string, std::string> values;
  for (const auto& [name, value] : seen.env.values())
    if (is_placement_variable(name)) values[name] = value;
  for (const Setting& setting : plan.environment.settings) {
    const Value& value = setting.value();
    if (!is_placement_variable(setting.name)) continue;
    if (seen.one_per_node && std::holds_alternative<PerRank>(value)) continue;
    if (std::holds_alternative<Unset>(value))
      values.erase(setting.name);
    else
      values[setting.name] = value_on(value, place);
  }
  for (const auto& [name, mark] : report.variables)
    if (mark == kNoFingerprint) values.erase(name);
  for (const auto& [name, value] : report.values) values[name] = bytes_of(value);
  return values;
}

}  // namespace

RankReport complete(const Plan& plan, const Observed& seen, const RankPlace& place,
                    const RankReport& brief) {
  RankReport report = brief;
  if (report.launcher_local_rank < 0)
    report.launcher_local_rank =
        seen.counts_locals && report.launcher_local_rank == -1 ? place.local : -1;
  if (report.limits.empty()) {
    report.cpuset = seen.usual.cpuset;
    report.memory_policy = seen.usual.memory_policy;
    report.memory_allowed = seen.usual.memory_allowed;
    report.devices = seen.usual.devices;
    report.limits = seen.usual.limits;
  }
  std::ranges::sort(report.refused);
  const RankPlan& planned = plan.placement.classes[place.node_class].ranks[place.local];
  const bool bound =
      !seen.one_per_node && plan.placement.bind_via != BindVia::none && !planned.cpus.empty();
  const std::string cpus = bound ? planned.cpus.to_list() : report.cpuset;
  if (report.cpus.empty()) report.cpus = cpus;
  if (report.imported && report.cpus_before.empty()) report.cpus_before = cpus;
  report.values = values_of(plan, seen, place, report);
  return report;
}

}  // namespace hpclaunch
