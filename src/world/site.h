#pragma once
// Where a job runs: hosts, batch system, profile and node model.
#include <memory>
#include <string>
#include <vector>

#include "hpclaunch/hosts.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/prepared.h"
#include "hpclaunch/scheduler.h"
#include "world/each_node.h"

namespace hpclaunch::job {

/// The request with its short forms spelled out: --env and --env-file become --set, "-m MODULE" and a script without
/// "#!" get the python of PATH. Errors: those of the file; `usage` for a variable that is not set; `program_not_found`.
Result<Request> spelled_out(Request request, const World& world, Diagnostics& diagnostics);

/// The request without what only the job can answer: what a batch script asks for is known before.
Request before_the_job(Request request);

bool is_here(std::string_view host, const World& world);    ///< a name of this machine
bool only_here(const HostList& hosts, const World& world);  ///< this machine is the one host
HostList invented_hosts(
    int nodes, HostNames known = {});  ///< for plans away from the site; the known ones first
int requested_nodes(const Request& request);  ///< 1 when neither nodes nor ranks were typed

/// --hostfile, else the batch system's list, else this machine. Runs the command or reads the file
/// that the batch system's row names. Errors: as parse_host_file and Scheduler::hosts;
/// `unsupported` for a list that cannot be read.
Result<HostList> find_hosts(const Request& request, const World& world, const BatchJob& batch);

struct ChosenProfile {
  std::shared_ptr<const Profile> profile;  ///< nullptr: none
  std::string why;                         ///< for the plan's "profile" choice
};

/// `ref` is --profile, "" for none typed. `hosts`: this machine's and the job's. Errors: as
/// load_profile; `usage` when two sites are detected.
Result<ChosenProfile> choose_profile(const std::string& ref, const World& world,
                                     const std::vector<std::string>& hosts, bool in_job,
                                     Diagnostics& diagnostics);

/// The model that --node-type names, else the first whose condition is met, else the first without
/// one; nullptr when the profile has none. Errors: `usage` for an unknown name.
Result<const NodeModel*> choose_model(const Request& request, const Profile* profile,
                                      const EnvSnapshot& env, const JobFacts& facts);

/// Where the job runs.
struct Site {
  BatchJob batch;
  HostList hosts;
  JobFacts facts;
  ChosenProfile chosen;
  const NodeModel* model = nullptr;  ///< of `chosen`
  bool is_here = false;              ///< this machine is a node of the job
  EachNode each;

  const Profile* profile() const { return chosen.profile.get(); }
};

JobFacts job_facts(const BatchJob& batch, const World& world);

/// Hosts are invented where a profile is planned for away from its site, and only shown.
Result<Site> find_site(const Request& request, const World& world, Purpose purpose,
                       const EachNode& each, Diagnostics& diagnostics);

/// The first host is this machine.
bool first_is_here(const HostList& hosts, const World& world);

/// What is wrong with MASTER_ADDR as seen from here. A given name is looked up before a start, and in plans for this
/// machine.
void check_address(const Plan& plan, const Request& request, const World& world, Purpose purpose,
                   Diagnostics& diagnostics);

/// A login node, by the profile or by a batch system that is installed here. Errors: `usage` before a start
/// without --force; else a diagnostic.
Status check_allocation(const Request& request, const World& world, const Site& site,
                        Purpose purpose, Diagnostics& diagnostics);

/// What every job of the site needs, where `options` does not say so. Errors: as choose_queue, where no queue is named.
Status add_job_needs(const JobNeeds& needs, JobOptions& options);

}  // namespace hpclaunch::job
