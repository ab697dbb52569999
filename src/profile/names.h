#pragma once
// The words that a profile may use where a choice is closed. profiles/schema.json lists the same.
#include <array>
#include <string_view>

#include "hpclaunch/launcher_traits.h"

namespace hpclaunch::profile {

inline constexpr std::array<std::string_view, 6> kSchedulers = {"pbs", "slurm",  "flux",
                                                                "lsf", "cobalt", "sge"};
inline constexpr std::array<std::string_view, 3> kGpuViews = {"own", "all", "launcher"};
inline constexpr std::array<std::string_view, 2> kFills = {"spread", "compact"};
inline constexpr std::array<std::string_view, 3> kVendors = {"nvidia", "amd", "intel"};
/// Of a network interface (docs/reference/topology.md).
inline constexpr std::array<std::string_view, 6> kNicKinds = {
    "slingshot", "infiniband", "roce", "efa", "omni-path", "ethernet"};
inline constexpr std::array<std::string_view, 2> kUnits = {"device", "subdevice"};
inline constexpr std::array<std::string_view, 2> kUses = {"model", "live"};
inline constexpr std::array<std::string_view, 2> kSiblings = {"after-all-cores", "adjacent"};
inline constexpr std::array<std::string_view, 4> kGroups = {"node", "package", "numa", "l3"};
inline constexpr std::array<std::string_view, 2> kRoleOrigins = {"base", "group"};
inline constexpr std::array<std::string_view, 3> kSeverities = {"note", "warning", "error"};
inline constexpr std::array<std::string_view, 2> kEach = {"rank", "unit"};

inline constexpr int kMaxOffset = 4095;  ///< of a core, anywhere in a profile

}  // namespace hpclaunch::profile
