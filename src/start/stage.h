#pragma once
// --stage: what was chosen is done; stage.sh is what runs on a node.
#include <functional>

#include "hpclaunch/start.h"

namespace hpclaunch::job {

extern const char* const kStageSteps;  ///< stage.sh

/// Stages, runs `job`, and removes what was staged, also where staging or `job` fails. The status is 128+n after signal
/// n. Errors: `system` with node and step.
Result<sys::Ending> staged(const Prepared& prepared, const StageLines& lines,
                           const std::function<Result<sys::Ending>()>& job);

}  // namespace hpclaunch::job
