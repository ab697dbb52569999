#pragma once
// A look at the nodes before the job.
#include <vector>

#include "cli/session.h"
#include "job/prepare.h"

namespace hpclaunch::cli {

/// Starts one report per node and judges what they say; a diagnostic for each difference, none when all is
/// well. Takes as long as the launcher's start, and `limit_seconds` at most.
/// Errors: as collect_reports; `system` when no node reported or a signal came.
Result<std::vector<Diagnostic>> preflight(const Prepared& prepared, const Session& session,
                                          double limit_seconds);

/// What can be said of MASTER_ADDR here, before a start on several nodes.
void check_address(const Plan& plan, std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch::cli
