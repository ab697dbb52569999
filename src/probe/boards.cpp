#include "probe/boards.h"

#include <algorithm>
#include <iterator>

namespace hpclaunch::probe {
namespace {

/// Buses of domain 0 that hang on the link of one group of cores.
struct Wire {
  unsigned first_bus, last_bus;
  int cpu;  ///< one of that group
};

/// One EPYC 7A53 and four MI250X: each half of a GPU is wired to one group of eight cores, which ACPI
/// cannot say. Source: hwloc 2.9, hwloc/pci-common.c, HWLOC_PCI_LOCALITY_QUIRK_CRAY_EX235A.
constexpr std::string_view kEx235a = "HPE CRAY EX235A";
constexpr Wire kEx235aWires[] = {
    {0xd0, 0xd1, 0},  {0xd4, 0xd6, 8},  {0xc8, 0xc9, 16}, {0xcc, 0xce, 24},
    {0xd8, 0xd9, 32}, {0xdc, 0xde, 40}, {0xc0, 0xc1, 48}, {0xc4, 0xc6, 56},
};

}  // namespace

CpuSet near_on_board(std::string_view board, const PciAddress& address, const Topology& topology) {
  if (board != kEx235a || address.domain != 0) return {};
  const auto wire = std::find_if(
      std::begin(kEx235aWires), std::end(kEx235aWires),
      [&](const Wire& w) { return address.bus >= w.first_bus && address.bus <= w.last_bus; });
  if (wire == std::end(kEx235aWires)) return {};
  for (const Cache& cache : topology.caches)
    if (cache.pus.has(wire->cpu)) return cache.pus;
  return {};
}

}  // namespace hpclaunch::probe
