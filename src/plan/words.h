#pragma once
// What each rank of a node gets, in words.
#include <optional>
#include <string>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/plan.h"
#include "plan/devices/units.h"

namespace hpclaunch {

/// "cxi1", "hsn0": its usual name; its PCI address where it has no name.
std::string nic_name(const Nic& nic);

/// The choice "placement": for each local rank "GPU 2 on NUMA node 1, NIC cxi1, CPUs 17-23 (7 cores);
/// CPU 16 is kept for the system". Neighbouring ranks that differ in nothing but their cores have one text.
Setting placement_choice(const PlanInput& input, const Plan& plan);

/// The choice "devices"; nullopt without any. `linked`: neighbours are chosen by their links.
std::optional<Setting> device_choice(const Units& units, bool linked, const Plan& plan);

/// The choice "nics"; nullopt where no rank has one.
std::optional<Setting> nic_choice(const PlanInput& input, const Plan& plan);

}  // namespace hpclaunch
