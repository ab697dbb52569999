#pragma once
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/launcher_traits.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/request.h"
#include "hpclaunch/topology.h"

namespace hpclaunch {

struct NodeModel;  // hpclaunch/profile.h
struct Profile;

/// MASTER_ADDR and MASTER_PORT, with their reasons.
struct Rendezvous {
  std::string address;
  std::string address_why;
  int port = 0;
  std::string port_why;
  bool own_address = false;  ///< in place of a name that was given, and does not resolve here yet
};

/// Of a launch with NCCL's RAS beside MASTER_PORT: Megatron takes the two ports behind that, an agent's servers the third.
constexpr int ras_port(int master_port) {
  constexpr int kAfter = 4, kLastPort = 65'535;
  return master_port + kAfter <= kLastPort ? master_port + kAfter : master_port - kAfter;
}

/// This job, as the batch system describes it.
struct JobFacts {
  std::string scheduler = "none";  ///< "pbs", "slurm", "flux", "lsf", "cobalt", "sge", "none"
  std::string id = "0";            ///< "0" outside a job
  std::string user;
  bool whole_allocation = false;  ///< PlanInput::hosts is the job's own list
  bool invented_hosts = false;    ///< they stand for those of a job that does not run yet
  bool later = false;             ///< a shell of that job finds out the rest (hpclaunch/late.h)
};

/// What a program reads, "NAME=VALUE" with facts as {nodes}, and why.
using ProgramEnv = std::vector<std::pair<std::string, std::string>>;

/// What a batch system grants on a host, by name. {CPUs 0-23, {2, 3}}
struct NodeGrant {
  CpuSet cpus;                              ///< hardware threads
  std::optional<std::vector<int>> devices;  ///< Device::index, ascending; nullopt: all
  friend bool operator==(const NodeGrant&, const NodeGrant&) = default;
};

struct PlanInput {
  Topology node;                     ///< model of every node
  const Profile* profile = nullptr;  ///< resolved; nullptr: none
  std::string profile_why;           ///< why this one, or why none
  const NodeModel* model = nullptr;  ///< source of `node`; nullptr: probed or from a file
  bool part_of_node = false;         ///< some cores of a shared node are granted
  bool cores_known = true;           ///< which cores are granted here; false: only their number
  std::optional<Topology> live;      ///< this node, when it is a node of the job and was probed
  /// Device::index of those that a process here can open, ascending; nullopt: not checked.
  std::optional<std::vector<int>> reachable = {};
  /// --free: Slot::id and part (-1: all of it) that other launches of the job use, and who these are.
  std::vector<std::pair<int, int>> taken = {};
  std::string taken_by = {};
  std::string beside = {};  ///< launches on the same nodes that share nothing else; "" for none
  JobFacts job;
  /// Allocation or host file, launch order, each once; never empty.
  HostNames hosts;
  std::string hosts_file;        ///< their file, when it has nothing else in it
  std::string hosts_why;         ///< "host file hosts.txt", "this host"
  std::vector<int> places = {};  ///< as Hosts::places, of each of `hosts`
  int own = -1;                  ///< as Hosts::own
  std::string own_why = {};
  std::vector<int> slots;  ///< ranks per host of the allocation; empty: unknown
  std::string slots_why;
  bool slots_told = false;  ///< by a platform: they count also where nodes have devices
  /// Granted hardware threads on each host, all >= 1, where nodes are granted in part; empty: whole nodes,
  /// or unknown. Used only with `part_of_node`.
  std::vector<int> granted;
  std::string granted_why;  ///< "SLURM_JOB_CPUS_PER_NODE=2,8"
  std::vector<NodeGrant> grants =
      {};                          ///< different ones, the first host's first; empty: not by name
  std::vector<int> grant_of = {};  ///< each host's among them
  std::string grants_by = {};      ///< what says so: "flux resource R"
  std::string grants_mask = {};  ///< devices that the batch system's own mask has here: "2,3", "-1"
  int grant = 0;                 ///< whose `node` this is
  /// CPUs that are granted on each node by number, whichever these are; 0: no limit.
  int cpu_quota = 0;
  std::string cpu_quota_why;  ///< "/sys/fs/cgroup/cpu.max: 200000 100000"
  std::string cpu_quota_by;   ///< "PBS"; "": a control group, which grants their time
  std::string cpu_quota_fix;  ///< with it: "-l place=scatter:excl"
  bool granted_assumed =
      false;               ///< `granted` is this machine's, since those of others are not known
  CpuSet whole_node = {};  ///< of a job with all of a node; empty: all hardware threads
  bool job_part = false;   ///< outside a job: one is to be asked for with a part of each node
  std::string job_memory = {};  ///< and so much memory of it, "124G"; "": as it comes
  EnvSnapshot env;
  std::map<std::string, std::string> of_batch = {};   ///< set_by_batch
  std::map<std::string, std::string> libraries = {};  ///< library.NAME of the profile's conditions
  bool as_root = false;                               ///< user 0 starts the job
  bool first_is_here = false;                         ///< the first host is this machine
  LauncherTraits launcher;
  std::string launcher_why;
  Rendezvous rendezvous;
  ProgramEnv program_env = {};                ///< by --agent and --for
  std::vector<std::string> agent_masks = {};  ///< the only ones that the program of --agent reads
  /// Nodes that were lost in attempts before: the step there may not have left the other ones yet.
  std::string lost = {};
  int restart = 0;  ///< attempts of this launch before
  std::shared_ptr<const Request> request =
      std::make_shared<Request>();  ///< what was typed; never null
  // What became of it here:
  std::vector<std::string> command = {};        ///< the program resolved
  std::vector<std::string> launcher_args = {};  ///< behind the option of a heterogeneous job
  std::string image = {};                       ///< of the container; "" without one
  std::string directory = {};                   ///< where ranks start inside it; "" without one
  std::string log_dir = {};                     ///< absolute where ranks of other nodes open it
  bool stages = false;                          ///< an environment is copied to the nodes first
  TimeLimitSignal time_limit_signal;
  std::string time_limit_why;  ///< the time in words, and the source of the allocation's end
  std::string start_hook;      ///< directory of the module that --profile-start lets Python import
  std::string launch_key;      ///< for names of directories of this launch alone: "1000-3fd2a7c1"
};

/// Facts in, plan out. Pure.
/// Errors: `usage` for counts that contradict each other or the node, for a stack, mode or view that
/// the profile lacks, and where a rule of the profile refuses the launch; `unsupported` for several nodes
/// under a launcher that has one, and as encode_wire.
Result<Plan> make_plan(const PlanInput& input);

/// For each of Topology::nics why a job does not use it: "down"; "Ethernet beside a fabric" that is
/// up; "slower than others" of those, where speeds are known; "RoCE beside InfiniBand": of the fabrics that
/// are left one counts, that with the most ports (of as many InfiniBand before RoCE). "" where it is.
std::vector<std::string> idle_nics(const Topology& node);

/// Ports to try for MASTER_PORT, best first: 64 different numbers outside [ephemeral_first, ephemeral_last],
/// from 10000 up (from 1024 where that leaves too few; 10000..11023 where the range covers all), one after the
/// other from a place that `key` decides, so that different jobs begin far apart.
std::vector<int> candidate_ports(std::string_view key, int ephemeral_first, int ephemeral_last);

}  // namespace hpclaunch
