// --free: devices that other launches of the job use.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "plan/devices/slots.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

Status leave_taken(const PlanInput& input, Slots& slots) {
  const auto taken = [&](const Slot& slot) {
    return std::ranges::any_of(input.taken, [&](const std::pair<int, int>& one) {
      const bool part = one.second < 0 || slot.part < 0 || one.second == slot.part;
      return one.first == slot.id() && part;
    });
  };
  const std::size_t before = slots.list.size();
  std::erase_if(slots.list, [&](const SlotGroup& group) { return taken(group.first()); });
  std::erase_if(slots.seen, taken);
  const std::size_t left = slots.list.size();
  if (left == before) return Done{};
  if (left == 0)
    return request_error(
        fmt::format("--free: no device of the node is free: {}", input.taken_by),
        "wait for its end, or omit --free to share the devices, or use --devices-per-rank 0");
  if (slots.given.empty()) slots.given = "--free";
  slots.shortage = {static_cast<int>(before),
                    fmt::format("{} of {} {} free beside {}", left, counted(before, "device"),
                                left == 1 ? "is" : "are", input.taken_by),
                    "wait for its end", ""};
  return Done{};
}

}  // namespace hpclaunch
