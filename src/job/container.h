#pragma once
// --container: which engine enters which image, and with what.
#include "job/steps.h"

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

/// After what the image, a directory, lacks for the binds has been made. Errors: `system`.
Result<ContainerUse> with_bind_targets(ContainerUse use);

/// `plan` with the engine before its program; `first` is what the launcher starts.
struct Entered {
  Plan plan;
  std::string first;
};
Entered enter(const ContainerUse& container, const std::string& shim, Plan plan);

/// The launch line of `plan`, in the container where there is one. Errors: as the launcher's render.
Result<Argv> launch_line(const ContainerUse& container, const ChosenLauncher& launcher,
                         const std::string& shim, Plan plan);

/// Starts one container here, whose shim reports whether it finds the program. Errors: `program_not_found`,
/// `not_executable`; `system` with the engine's message.
Status try_container(const Prepared& prepared);

}  // namespace hpclaunch::job
