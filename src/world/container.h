#pragma once
// --container: which engine enters which image, and with what.
#include "world/means.h"

namespace hpclaunch::job {

/// Errors: `usage` for options that need --container, or that exclude it.
Status check_container(const Request& request);

/// The engine, and the image, a path made absolute; without --container no engine. Errors: `program_not_found` for an
/// engine or an image that is not here; `unsupported` for an engine that cannot run ranks or does not take this image;
/// `usage`.
Result<ChosenContainer> find_container(const Request& request, const World& world, const Site& site,
                                       const ChosenLauncher& launcher, Purpose purpose);

struct CompleteContainer {
  ContainerUse use;
  std::optional<Setting> choice;  ///< for the plan
};

/// With what follows from the plan: devices, binds, variables by name.
Result<CompleteContainer> complete_container(const ChosenContainer& chosen, const Request& request,
                                             const World& world, const Site& site,
                                             const Means& means, const Plan& plan);

}  // namespace hpclaunch::job
