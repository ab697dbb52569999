#pragma once
// Batch scripts.
#include <cstddef>
#include <string>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/prepared.h"
#include "hpclaunch/request.h"

namespace hpclaunch {
struct Scheduler;
}

namespace hpclaunch::job {

/// What `script` and `submit` take beside a Request; "": not typed.
struct BatchRequest {
  std::string scheduler;  ///< "pbs", "slurm", ...
  std::string time;       ///< as parse_time_limit takes it
  JobOptions job;
  std::vector<std::string> run_words;  ///< options of `hpclaunch run` in the script
  std::vector<std::string> typed;      ///< the whole command line, for a comment
};

struct BatchScript {
  std::string text;
  std::size_t body = 0;  ///< where its lines after the directives begin in `text`
  const Scheduler* scheduler = nullptr;
  std::string name;           ///< of the job
  std::string output, error;  ///< as the batch system was told; "" for its own choice
  std::vector<Diagnostic> diagnostics;
};

/// The script for the site of the profile, else for the batch system that this machine has. `start`: it is about to be
/// submitted. Errors: `usage` when no batch system is known or no queue takes the job; those of the plan.
Result<BatchScript> batch_script(const Request& request, const BatchRequest& wanted,
                                 const EnvSnapshot& env, Purpose purpose);

}  // namespace hpclaunch::job
