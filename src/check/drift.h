#pragma once
// The parts of find_drift().
#include <cstdint>
#include <vector>

#include "hpclaunch/check.h"

namespace hpclaunch::check {

void add(std::vector<Diagnostic>& out, std::string kind, std::string message);

/// True within an eighth of what was planned, and where one is unknown (0).
bool near_size(std::uint64_t planned, std::uint64_t found);

/// `common`: CPUs of both. `part`: devices that are missing were not granted. Links are compared, too.
void drift_of_devices(const Topology& planned, const Topology& found, const CpuSet& common,
                      bool part, std::vector<Diagnostic>& out);

void drift_of_nics(const Topology& planned, const Topology& found, std::vector<Diagnostic>& out);

}  // namespace hpclaunch::check
