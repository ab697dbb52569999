#pragma once
// The environment that --module, --conda and --venv ask for: what the user would have exported by activating it.
#include <string>

#include "hpclaunch/prepared.h"

namespace hpclaunch::job {

extern const char* const kActivate;  ///< activate.bash

/// `--module none` was typed: no module is loaded, those of the profile's stack neither.
bool loads_none(const Request& request);

/// Errors: `usage` for a name that is not one, and for other modules beside `none`.
Status check_activation(const Request& request, const World& world);

/// The virtual environment to activate: that of --venv; where none is typed or active and the program is a Python
/// program, the one that hpclaunch is installed in. "": none.
std::string own_venv(const Request& request, const World& world, Diagnostics& diagnostics);

/// What bash has after the activation. Before a start and in a made-up world a failure is the error; else a warning
/// "environment-not-here". Modules count as loaded where there are none. Errors: those of check_activation; `not_found`
/// with the tool's own words.
Result<EnvSnapshot> activate(const Request& request, const World& world, Purpose purpose,
                             Diagnostics& diagnostics);

/// The same as lines of a POSIX shell; "" for none.
std::string activation_lines(const Request& request, const World& world);

}  // namespace hpclaunch::job
