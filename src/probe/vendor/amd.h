#pragma once
#include <cstdint>
#include <string>

namespace hpclaunch::probe::vendor {

/// What AMD's libraries say of the way between two devices that XGMI connects. 0: not said.
struct XgmiPath {
  std::uint64_t hops = 0;
  std::uint64_t weight = 0;           ///< 15 for each hop; 13 inside a package of MI300
  std::uint64_t least_bandwidth = 0;  ///< of one link
  std::uint64_t most_bandwidth =
      0;  ///< of all links side by side; 0 where there are others between
};

/// Links side by side; 0 when the way leads through other devices. `hops` cannot tell: the libraries
/// say 1 for every pair that XGMI reaches. Source: amdgpu, kfd_crat.c (weights; bandwidth of direct
/// neighbours only).
int xgmi_lanes(const XgmiPath& path);

/// A compute partition as the kernel names it ("SPX"); "" for anything else.
std::string partition_name(const std::string& told);

/// A name that means something: AMD's libraries hand out device ids ("0x74a1") where they know none.
std::string model_name(const std::string& told);

}  // namespace hpclaunch::probe::vendor
