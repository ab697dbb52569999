#include "probe/vendor/amd.h"

#include <algorithm>
#include <string_view>

namespace hpclaunch::probe::vendor {

int xgmi_lanes(const XgmiPath& path) {
  constexpr std::uint64_t kOneHop = 15;
  constexpr std::uint64_t kMost = 16;  ///< more than any GPU has towards another
  if (path.weight > kOneHop) return 0;
  if (path.most_bandwidth > 0 && path.least_bandwidth > 0) {
    return static_cast<int>(
        std::clamp<std::uint64_t>(path.most_bandwidth / path.least_bandwidth, 1, kMost));
  }
  return path.weight > 0 || path.hops == 1 ? 1 : 0;
}

std::string partition_name(const std::string& told) {
  constexpr std::string_view kModes[] = {"SPX", "DPX", "TPX", "QPX", "CPX"};
  const bool known = std::find(std::begin(kModes), std::end(kModes), told) != std::end(kModes);
  return known ? told : "";
}

std::string model_name(const std::string& told) {
  const bool number = told.compare(0, 2, "0x") == 0;
  return number || told == "N/A" ? "" : told;
}

}  // namespace hpclaunch::probe::vendor
