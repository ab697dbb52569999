#include "plan/devices/lists.h"

#include <algorithm>

#include "hpclaunch/text.h"
#include "plan/devices/masks.h"
#include "plan/devices/units.h"

namespace hpclaunch {

std::optional<Listed> parse_list(const EnvSnapshot& env, const char* name) {
  const std::string text(trim(env.get(name)));
  const Result<CpuSet> set = CpuSet::parse(text);
  if (text.empty() || !set || set->empty()) return std::nullopt;
  return Listed{name, text, set->to_vector()};
}

std::optional<Indices> mask_numbers(const PlanInput& input, const DeviceVendor& vendor,
                                    std::string& name) {
  std::vector<std::string_view> names(vendor.masks.begin(), vendor.masks.end());
  names.push_back(vendor.opencl_mask);
  for (const std::string_view one : names) {
    if (one.empty() || !input.env.has(one)) continue;
    name = one;
    Indices numbers;
    const std::string value = input.env.get(one);
    for (const std::string_view piece : split(value, ',')) {
      const std::string_view entry = trim(piece);
      // Of X.Y of Level Zero X is the device.
      const auto number = vendor.syntax == MaskSyntax::cuda ? cuda_number(entry)
                          : vendor.syntax == MaskSyntax::level_zero
                              ? parse_natural(entry.substr(0, entry.find('.')))
                              : parse_natural(entry);
      if (!number && vendor.syntax == MaskSyntax::cuda && !numbers.empty())
        return numbers;  // the list ends here
      if (!number) return std::nullopt;
      numbers.push_back(static_cast<int>(*number));
    }
    return numbers;
  }
  return std::nullopt;
}

std::optional<Listed> cards_of_mask(const PlanInput& input) {
  std::string name;
  const std::optional<Indices> numbers = mask_numbers(input, device_vendor("intel"), name);
  const bool parts = input.env.get("ZE_AFFINITY_MASK").find('.') != std::string::npos;
  if (!numbers || parts || counts_whole(input.env)) return std::nullopt;
  for (const char* variable : kSlurmGpuLists) {
    std::optional<Listed> list = parse_list(input.env, variable);
    if (!list) continue;
    bool anew = numbers->size() == list->devices.size();
    for (std::size_t i = 0; i < list->devices.size(); ++i) {
      if (find_device(input.node, list->devices[i]) == nullptr) return std::nullopt;
      anew = anew && (*numbers)[i] == static_cast<int>(i);
    }
    if (!anew && *numbers != list->devices) return std::nullopt;
    return list;
  }
  return std::nullopt;
}

Indices entries_of(const PlanInput& input, const DeviceVendor& vendor, const Listed& list) {
  const bool parts = input.env.get("ZE_AFFINITY_MASK").find('.') != std::string::npos;
  if (vendor.syntax != MaskSyntax::level_zero || parts || counts_whole(input.env) ||
      cards_of_mask(input))
    return list.devices;
  Indices tiles;
  int next = 0;
  for (const Device& device : input.node.devices)
    for (int tile = 0; tile < std::max(1, device.subdevices); ++tile, ++next)
      if (std::find(list.devices.begin(), list.devices.end(), device.index) != list.devices.end())
        tiles.push_back(next);
  return tiles;
}

}  // namespace hpclaunch
