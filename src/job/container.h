#pragma once
// --container: which engine enters which image, and with what.
#include "job/steps.h"

namespace hpclaunch::job {

/// Errors: `usage` for options that need --container, or that exclude it.
Status check_container(const Request& request);

/// Chooses the engine and looks for the image. Without --container nothing.
/// Errors: `program_not_found` for an engine or an image that is not here; `unsupported` for an engine that cannot run
/// ranks or does not take this image; `usage`.
Status find_container(const Request& request, const EnvSnapshot& env, const Site& site,
                      const ChosenLauncher& launcher, Purpose purpose, Prepared& prepared);

/// Adds what follows from the plan: devices, binds, variables by name; and the plan's choice.
Status complete_container(const Request& request, const EnvSnapshot& env, const Site& site,
                          Prepared& prepared);

/// Makes what the image, a directory, lacks for the binds. Errors: `system`.
Status make_bind_targets(ContainerUse& use);

/// `plan` with the engine before its program; `first` is what the launcher starts.
struct Entered {
  Plan plan;
  std::string first;
};
Entered enter(const Prepared& prepared, Plan plan);

/// The launch line of `plan`, in the container where there is one. Errors: as the launcher's render.
Result<Argv> launch_line(const Prepared& prepared, Plan plan);

/// Starts one container here, whose shim reports whether it finds the program. Errors: `program_not_found`,
/// `not_executable`; `system` with the engine's message.
Status try_container(const Prepared& prepared);

}  // namespace hpclaunch::job
