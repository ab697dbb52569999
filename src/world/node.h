#pragma once
// The node that is planned for: a file, the profile's model or this machine, and what is granted of
// it.
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/probe.h"
#include "world/site.h"

namespace hpclaunch::job {

/// CPUs that are granted by number alone.
struct CpuQuota {
  int cpus = 0;          ///< whole ones; 0: no limit
  std::string why;       ///< "/sys/fs/cgroup/cpu.max: 200000 100000"
  std::string by = {};   ///< "PBS"; "": control groups, which grant time
  std::string fix = {};  ///< with it: the directive for whole nodes
};

struct JobNode {
  Topology topology;
  const NodeModel* model = nullptr;    ///< where it comes from; nullptr: measured or from a file
  bool part = false;                   ///< less than the whole node is granted
  bool known = true;                   ///< and which CPUs is known
  CpuSet whole = {};                   ///< of a job with all of it
  std::optional<Topology> live = {};   ///< this machine, where it was probed
  std::vector<int> granted = {};       ///< hardware threads on each host; empty: all, or unknown
  std::string granted_why = {};        ///< as PlanInput::granted_why
  std::vector<NodeGrant> grants = {};  ///< as PlanInput::grants and the two behind it
  std::vector<int> grant_of = {};
  std::string grants_mask = {};
  bool assumed = false;  ///< they are those of this machine, those of others are not known
  CpuQuota quota = {};   ///< of this machine, where it is planned for
  std::optional<std::vector<int>> reachable = {};  ///< Device::index; nullopt: unknown
};

/// The node of --topology, of this machine, or of the profile. `meanwhile` runs once, while the
/// probe works. Errors: those of the probe.
Result<JobNode> find_node(const Request& request, const World& world, const Site& site,
                          const std::function<void()>& meanwhile, Diagnostics& diagnostics);

/// grants.cpp: what the batch system grants by name, on a node like this one. `here`: what this machine, the first host,
/// allows. Nothing where each host has all of its node. False where it says nothing by name.
bool name_grants(const Site& site, const EnvSnapshot& env, const CpuSet& here, JobNode& node);

/// HPCLAUNCH_CPU_QUOTA, else the smallest of this process's control group and all around it.
CpuQuota cpu_quota(const World& world, Diagnostics& diagnostics);

/// "shm-small" where /dev/shm is as small as containers have it by default.
void check_shared_memory(const World& world, Diagnostics& diagnostics);

/// What the batch system says of a job that may have parts of nodes; "": it is not asked.
std::string describe_job(const Request& request, const World& world, const Site& site);

/// By BatchJob::said, where the job has a part of its nodes, the least on one of them, and may use all CPUs of `live`.
CpuQuota counted_cpus(const World& world, const Site& site, const Topology& live);

/// By BatchJob::said, where this machine, the first host, is confined to `here`, and to as many CPUs as it says: what
/// each host grants. False where that is not known.
bool count_others(const Site& site, const CpuSet& here, JobNode& node);

/// As set_by_batch, without what the job asked for. `node`: where as many are no sign of that.
std::map<std::string, std::string> set_by_job(const World& world, const Site& site,
                                              const Topology& node);

/// Devices that the batch system grants here.
struct GrantedDevices {
  std::size_t count = 0;  ///< 0: unknown
  bool listed = false;    ///< which ones is known too
};

/// By a device mask, else by what the batch system's variables say.
GrantedDevices granted_devices(const EnvSnapshot& env, const BatchJob& batch);

/// `granted`: CPUs of the first host, 0 for unknown. `live`: this machine, when it was probed as a
/// node of the job. A model that leaves locality to the node yields to it; any other is compared
/// with it.
JobNode settle_node(const NodeModel* model, const std::optional<Topology>& live, int granted,
                    GrantedDevices devices, OnDrift how, Diagnostics& diagnostics);

/// Before a job, as in a `made_up` world: `input` becomes that of a job with what the launch uses of
/// shared nodes. Errors: `usage` for --gpus with a number that no job can have.
Status ask_for_part(bool made_up, PlanInput& input);

/// --on-drift; without it `fail` under --verify strict, else `warn`.
OnDrift on_drift(const Request& request);

/// Compares, and adds the diagnostic `node-differs`, if any. `planned_as`: "the profile's node
/// \"gpu\"". `granted`: hardware threads of the job here; 0: unknown. True when `live` is to be
/// planned instead.
bool judge_drift(const Topology& planned, const Topology& live, const std::string& planned_as,
                 int granted, GrantedDevices devices, OnDrift how, Diagnostics& diagnostics);

/// `live` with the planned devices and NICs where it has none, as far as their NUMA nodes exist.
Topology replanned(const Topology& live, const Topology& planned);

/// Device::index of those that can be opened; nullopt where that is unknown for one of them.
std::optional<std::vector<int>> reachable_devices(const Topology& live,
                                                  const std::vector<DeviceFile>& files);

}  // namespace hpclaunch::job
