#include "probe/vendor/amd.h"

#include <algorithm>
#include <iterator>
#include <string_view>

namespace hpclaunch::probe::vendor {

int xgmi_lanes(const XgmiPath& path) {
  constexpr std::uint64_t kOneHop = 15;
  constexpr std::uint64_t kMost = 16;  ///< more than any GPU has towards another
  if (path.weight > kOneHop) return 0;
  if (path.max_bandwidth > 0 && path.min_bandwidth > 0) {
    return static_cast<int>(
        std::clamp<std::uint64_t>(path.max_bandwidth / path.min_bandwidth, 1, kMost));
  }
  return path.weight > 0 || path.hops == 1 ? 1 : 0;
}

std::string partition_name(const std::string& reported) {
  constexpr std::string_view kModes[] = {"SPX", "DPX", "TPX", "QPX", "CPX"};
  const bool known = std::find(std::begin(kModes), std::end(kModes), reported) != std::end(kModes);
  return known ? reported : "";
}

std::string amd_model_name(const std::string& reported) {
  return reported.rfind("0x", 0) == 0 || reported == "N/A" ? "" : reported;
}

std::string amd_pci(std::uint64_t domain, std::uint64_t bdf, const std::string& partition) {
  const bool parts = !partition.empty() && partition != "SPX";
  return pci_text(domain, bdf >> 8 & 0xFF, bdf >> 3 & 0x1F, parts ? 0 : bdf & 7);
}

}  // namespace hpclaunch::probe::vendor
