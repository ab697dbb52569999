// --free: devices that other launches of the job use.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "plan/devices/units.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

Status leave_taken(const PlanInput& input, Units& units) {
  const auto taken = [&](const Unit& unit) {
    return std::ranges::any_of(input.taken, [&](const std::pair<int, int>& one) {
      const bool part = one.second < 0 || unit.subdevice < 0 || one.second == unit.subdevice;
      return one.first == unit.device && part;
    });
  };
  const std::size_t before = units.list.size();
  std::erase_if(units.list, taken);
  const std::size_t left = units.list.size();
  if (left == before) return Done{};
  if (left == 0)
    return request_error(
        fmt::format("--free: no device of the node is free: {}", input.taken_by),
        "wait for its end, or omit --free to share the devices, or use --devices-per-rank 0");
  if (units.given.empty()) units.given = "--free";
  units.shortage = {static_cast<int>(before),
                    fmt::format("{} of {} {} free beside {}", left, counted(before, "device"),
                                left == 1 ? "is" : "are", input.taken_by),
                    "wait for its end", ""};
  return Done{};
}

}  // namespace hpclaunch
