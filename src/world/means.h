#pragma once
// From what a plan is made.
#include <memory>
#include <string>

#include "hpclaunch/make_plan.h"
#include "world/launchers.h"

namespace hpclaunch::job {

struct Meeting {
  Rendezvous point;
  int port_lock = -1;  ///< see sys::PortClaim
};

/// Errors: as sys::claim_port. A given port that is taken becomes a diagnostic.
Result<Meeting> choose_rendezvous(const Request& request, const World& world, const Site& site,
                                  Diagnostics& diagnostics);

/// --container, before the plan is known.
struct ChosenContainer {
  ContainerUse use;  ///< without an engine: none
  std::string why;   ///< why this engine
};

/// From what the plan was made.
struct Means {
  std::shared_ptr<const World> world;
  Site site;
  PlanInput input;
  MpiLibrary mpi;
  ChosenLauncher launcher;
  ChosenContainer container;
  std::string shim;
  int port_lock = -1;
};

/// The plan, its diagnostics, and its launch line.
struct Made {
  Plan plan;
  ContainerUse container;
  Argv argv;
  Diagnostics diagnostics;
};

/// Errors: as make_plan, and of container and launch line.
Result<Made> complete(const Means& means);

}  // namespace hpclaunch::job
