#pragma once
// What AMD SMI, ROCm SMI and the kernel's KFD share: addresses, names, XGMI links.
#include <cstdint>
#include <string>
#include <utility>
#include <vector>

#include "probe/vendor/report.h"

namespace hpclaunch::probe::vendor {

/// An XGMI connection of two devices as AMD's libraries describe it. 0: unknown.
struct XgmiPath {
  std::uint64_t hops = 0;
  std::uint64_t weight = 0;         ///< 15 for each hop; 13 inside a package of MI300
  std::uint64_t min_bandwidth = 0;  ///< of one link
  std::uint64_t max_bandwidth = 0;  ///< of all parallel links; 0 where other devices are between
};

/// Parallel links; 0 when the path leads through other devices. `hops` cannot decide it: the libraries
/// report 1 for every pair. Source: amdgpu, kfd_crat.c (weights; bandwidth of direct neighbours only).
int xgmi_lanes(const XgmiPath& path);

/// A compute partition as the kernel names it ("SPX"); "" for anything else.
std::string partition_name(const std::string& reported);

/// The reported name; "" for a device id ("0x74a1"), which AMD's libraries give for unknown models.
std::string amd_model_name(const std::string& reported);

/// The PCI address of a device from bits 0 to 15 of `bdf`. Its function may be the number of a partition;
/// the card is function 0.
std::string amd_pci(std::uint64_t domain, std::uint64_t bdf, const std::string& partition);

/// Adds a device with what both libraries report in one way; `take` asks for its name and UUID, which differ.
/// `bits`: those of the address below the domain. False: it has no address.
template <class Asker, class Calls, class Handle, class Take>
bool read_amd_device(const Asker& ask, const Calls& calls, Handle handle, int bits,
                     VendorReport& report, Take take) {
  constexpr unsigned kVram = 0;  // amdsmi_memory_type_t, rsmi_memory_type_t
  std::uint64_t bdf = 0;
  if (!ask(report, calls.bdf, handle, &bdf)) return false;
  ReportedDevice one;
  char text[256] = {};
  if (ask(report, calls.partition, handle, text, std::uint32_t{sizeof text - 1}))
    one.partition = partition_name(clean(text, sizeof text));
  one.pci = amd_pci(bdf >> bits, bdf, one.partition);
  if (one.pci.empty()) {
    add_fault(report, calls.bdf.name, "no PCI address");
    return false;
  }
  take(one);
  ask(report, calls.memory, handle, kVram, &one.memory_bytes);
  report.devices.push_back(std::move(one));
  return true;
}

/// Adds the XGMI links of all pairs. The bandwidth is asked of neighbours only: it is refused for others.
template <class Asker, class Calls, class Handle>
void read_xgmi_links(const Asker& ask, const Calls& calls, const std::vector<Handle>& devices,
                     VendorReport& report) {
  constexpr unsigned kXgmi = 2;  // amdsmi_link_type_t, RSMI_IO_LINK_TYPE
  for (std::size_t from = 0; from < devices.size(); ++from) {
    for (std::size_t to = from + 1; to < devices.size(); ++to) {
      const Handle a = devices[from];
      const Handle b = devices[to];
      XgmiPath path;
      unsigned type = 0;
      if (!ask(report, calls.link_type, a, b, &path.hops, &type) || type != kXgmi) continue;
      ask(report, calls.link_weight, a, b, &path.weight);
      if (xgmi_lanes(path) == 0) continue;
      ask(report, calls.bandwidth, a, b, &path.min_bandwidth, &path.max_bandwidth);
      if (const int lanes = xgmi_lanes(path); lanes > 0) report.links.push_back({from, to, lanes});
    }
  }
}

}  // namespace hpclaunch::probe::vendor
