#pragma once
// Names that the kernel's files and hwloc's objects of AMD devices have in common. Pure.
#include <string>

namespace hpclaunch::probe {

/// The partition mode that divides an AMD device into so many: "TPX" for 3; "" for one.
std::string partition_name(int parts);

/// "GPU-" and 16 hexadecimal digits, as ROCm's tools print a serial number of 64 bits, from that number
/// with or without "GPU-". "" for all zeros and all ones, which mean none. Other text is unchanged.
std::string amd_uuid(const std::string& reported);

}  // namespace hpclaunch::probe
