#pragma once
// Launches that share a job: which nodes, cores and devices --free leaves out, and what two launches both use.
#include <string>
#include <vector>

#include "hpclaunch/launch.h"
#include "hpclaunch/launches.h"
#include "world/node.h"
#include "world/site.h"

namespace hpclaunch::job {

/// "slurm 4711"; "none 0" outside of any job.
std::string job_of(const JobFacts& facts);

/// The launches of this job, as `world` knows them.
std::vector<RunningLaunch> other_launches(const World& world, const Site& site);

/// --free: leaves of the hosts those that no launch uses, where there are enough for the request, else as many as it
/// asks for that are used least.
void keep_free_hosts(const Request& request, const std::vector<RunningLaunch>& others, Site& site);

/// --free: takes what others use on the job's hosts out of the node; `input.taken` gets the devices.
/// Errors: `usage` where no core is left.
Status keep_free_cores(const std::vector<RunningLaunch>& others, const Site& site, JobNode& node,
                       PlanInput& input);

/// What a launch would have in common with others on its nodes.
struct Shared {
  std::vector<Diagnostic> diagnostics;
  std::string
      beside;  ///< "launch 4711 (python train.py)": on the same nodes with nothing in common; "" for none
};
Shared compare_launches(const RunningLaunch& launch, const std::vector<RunningLaunch>& others,
                        const Launcher& launcher);

}  // namespace hpclaunch::job
