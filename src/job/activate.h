#pragma once
// The environment that --module, --conda and --venv ask for: what the user would have exported by activating it.
#include <string>

#include "job/steps.h"

namespace hpclaunch::job {

extern const char* const kActivate;  ///< activate.bash

/// `--module none` was typed: no module is loaded, those of the profile's stack neither.
bool loads_none(const Request& request);

/// Errors: `usage` for a name that is not one, and for other modules beside `none`.
Status check_activation(const Request& request);

/// Sets Request::venv where hpclaunch is installed in a virtual environment that is not active, no other one is, and the
/// program is a Python program.
void use_own_venv(Request& request, const EnvSnapshot& env, Diagnostics& diagnostics);

/// Replaces `env` by what bash has after the activation. Before a start a failure is the error; else a warning
/// "environment-not-here", and modules count as loaded where this machine has none. Errors: those of check_activation;
/// `not_found` with the tool's own words.
Status activate(const Request& request, Purpose purpose, EnvSnapshot& env,
                Diagnostics& diagnostics);

/// The same as lines of a POSIX shell; "" for none.
std::string activation_lines(const Request& request);

}  // namespace hpclaunch::job
