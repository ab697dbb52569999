#pragma once
#include <sys/types.h>

#include <string>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::sys::supervised {

struct Child {
  pid_t pid = 0;
  int errors = -1;  ///< what it writes on stderr; close-on-exec, non-blocking
};

/// Starts `argv` (argv[0] absolute) with an empty signal mask, our stdin and stdout, and a pipe as stderr.
/// It gets `when_we_die` when this process dies. `own_group`: a process group of its own. Returns once the
/// exec has worked.
/// Errors: `program_not_found`, `not_executable`, `system`.
Result<Child> start(const std::vector<std::string>& argv, const std::vector<std::string>& env,
                    int when_we_die, bool own_group);

}  // namespace hpclaunch::sys::supervised
