#pragma once
// What writing a node model and comparing it with the node share.
#include <cstdint>
#include <string>
#include <vector>

#include "hpclaunch/topology.h"

namespace hpclaunch::authoring {

inline constexpr std::uint64_t kMiB = 1024 * 1024;

/// nullptr: there is none of this number.
const NumaNode* find_numa(const Topology& node, int os_index);

/// Whether these are the same cores, or parts of the same ones, by position. False where the model has
/// another number of cores.
bool same_cores(const Topology& node, const CpuSet& pus, const Topology& model,
                const CpuSet& modelled);

/// What became of the node's parts in the model.
struct Compared {
  std::vector<std::string> lost;  ///< for people
  bool numbered = false;          ///< the same cores in the same order
};

/// Packages and NUMA nodes that the node does not name cannot be lost. Not yet of devices and interfaces.
Compared compare(const Topology& real, const Topology& model);

void compare_devices(const Topology& real, const Topology& model, std::vector<std::string>& lost);

/// `real` has those interfaces that the model was given.
void compare_nics(const Topology& real, const Topology& model, std::vector<std::string>& lost);

}  // namespace hpclaunch::authoring
