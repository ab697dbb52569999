#pragma once
#include <functional>
#include <string>

#include "hpclaunch/result.h"

namespace hpclaunch::probe {

/// Runs `function` in a forked child and returns what it returned, error or text (any bytes).
///
/// The child has no HWLOC_* variable and none that filters devices (kCleared in child.cpp), its
/// stdout and stderr come here and not to the user, it writes no core file, and it is killed when this
/// process ends. Nothing of the caller is changed, and the child is always reaped on return. Not for a caller with threads: the child may allocate memory.
///
/// Errors: the function's own; `system` when it crashed (signal named), exited by itself, threw, ran past the
/// limit (counted from its start; at least a second of listening) and was killed, or could not be started.
/// The hint quotes the last line of its output. `meanwhile` is what the caller does itself before it begins
/// to listen; it runs in any case, and may run another child. `late` becomes true past the limit.
Result<std::string> run_in_child(
    const std::function<Result<std::string>()>& function, double limit_seconds,
    const std::function<void()>& meanwhile = [] {}, bool* late = nullptr);

}  // namespace hpclaunch::probe
