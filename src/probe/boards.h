#pragma once
#include <string_view>

#include "hpclaunch/topology.h"
#include "probe/pci.h"

namespace hpclaunch::probe {

/// CPUs next to a PCI address on a board whose firmware does not tell, or tells less: those that share a
/// last-level cache with the one it is wired to. Empty for every other board and address.
/// `board` is the firmware's name of it (/sys/class/dmi/id/board_name, hwloc's DMIBoardName).
CpuSet near_on_board(std::string_view board, const PciAddress& address, const Topology& topology);

}  // namespace hpclaunch::probe
