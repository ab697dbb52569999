#pragma once
// Batch scripts: submitted and followed.
#include <string>

#include "hpclaunch/batch.h"

namespace hpclaunch::job {

struct Session;

/// Hands it to the batch system; the job id. Errors: as sys::find_program; `system` with the batch system's message.
Result<std::string> submit(const BatchScript& script, const EnvSnapshot& env);

/// The text of a script that is to be followed: where its batch system may forget the job, it prints its exit status.
std::string followed(const BatchScript& script);

/// Prints states of the job to session.err and its output to session.out until it ends or the user interrupts; its exit
/// status, or 128+n. Errors: `system` when that is unknown, or the job cannot start.
Result<int> follow(const BatchScript& script, const std::string& id, Session& session);

}  // namespace hpclaunch::job
