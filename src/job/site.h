#pragma once
// Where a job runs: its hosts, the batch system, the profile that holds there, and what a node of it is.
#include <functional>
#include <optional>
#include <vector>

#include "hpclaunch/make_plan.h"
#include "hpclaunch/request.h"
#include "job/hosts.h"
#include "job/prepare.h"
#include "job/profiles.h"

namespace hpclaunch::cli {

/// The batch system and the job, by what it exports; the innermost one. "none" outside of a job.
JobFacts job_facts(const EnvSnapshot& env);

struct Site {
  Hosts hosts;
  JobFacts job;
  ChosenProfile chosen;
  const NodeModel* model = nullptr;  ///< of `chosen`
  bool is_here = false;              ///< this machine is a node of the job

  const Profile* profile() const { return chosen.profile ? &*chosen.profile : nullptr; }
};

/// Fills `site`, which must stay where it is: `model` points into it. Where a profile is planned for away
/// from its site, and only shown, hosts are made up.
/// Errors: those of find_hosts, choose_profile and choose_model.
Status find_site(const Request& args, const EnvSnapshot& env, Purpose purpose, Site& site,
                 std::vector<Diagnostic>& diagnostics);

/// As many hosts as there are nodes, in place of those that were found.
void make_up_hosts(int nodes, Hosts& hosts);

/// What was typed about nodes; 1 when nothing was.
int nodes_asked_for(const Request& args);

/// The node that is planned for.
struct Seen {
  Topology node;
  const NodeModel* model = nullptr;  ///< that the node was taken from; nullptr: it was asked itself
  bool part = false;                 ///< less than the whole node was granted
  bool known = true;                 ///< and which part is known
  std::optional<Topology> live;      ///< this machine, where it was asked
  std::vector<int> granted;          ///< hardware threads on each host; empty: all, or unknown
  std::optional<std::vector<int>> reachable = {};  ///< Device::index; nothing: not looked at
};

/// The node of --topology, of this machine, or of the profile. `meanwhile` runs once, while the probe
/// works. Errors: those of the probe.
Result<Seen> see_node(const Request& args, const EnvSnapshot& env, const Site& site,
                      const std::function<void()>& meanwhile, std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch::cli
