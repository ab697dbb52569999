#pragma once
// What was typed on the command line, in one value: cli fills it, job resolves it, plan reads it.
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/plan.h"

namespace hpclaunch {

/// What to do when the node is not the one that was planned.
enum class OnDrift { warn, fail, replan };

std::string_view to_string(OnDrift how);

/// --stage and what belongs to it.
struct StageRequest {
  std::string method;          ///< "auto", "none", "sbcast", "copy", "venv", "copper"
  std::string from;            ///< archive, directory or requirements file
  std::string to;              ///< directory of each node
  std::optional<int> seconds;  ///< for all steps
  bool keep = false;           ///< not removed when the program has ended
};

/// A variable for every rank.
struct TypedVariable {
  std::string name, value;
  std::string option = "--set";  ///< "--env-file job.env:3" says it more closely
};

/// --container and what belongs to it.
struct ContainerRequest {
  std::string image;               ///< file, directory or name; "" for no container
  std::string engine;              ///< "apptainer", ...; "" for the site's, or the one on PATH
  std::vector<std::string> binds;  ///< "SRC" or "SRC:DST"
};

/// What a site's profile asks of a container engine.
struct SiteContainer {
  std::string name;                  ///< of the engine
  std::vector<std::string> options;  ///< in place of those for devices
  std::vector<std::string> binds;    ///< "SRC" or "SRC:DST"
  Origin origin;
};

/// What is asked of a batch system for a job; "", 0 and empty: nothing.
struct JobOptions {
  int nodes = 1;
  long seconds = 0;
  std::string account;
  std::string queue;
  std::string queue_option;  ///< instead of the system's own, as in "-q"
  std::string name;
  std::string output, error;  ///< files
  std::string filesystems;
  std::string constraint;
  int devices = 0;                         ///< on each node
  int cpus = 0, ranks = 0;                 ///< of each node, where a part of it will do
  std::string memory;                      ///< of each node: "124G"
  std::string dependency, array, exclude;  ///< in the system's own words
  std::string reservation;                 ///< its name
  std::string mail;                        ///< address
  std::vector<std::string> batch;          ///< each a directive, as it is
};

/// In front of a list of hosts in place of the path of a file: "\na,b:4".
inline constexpr char kHostList = '\n';

/// Each field is one option of `hpclaunch run`; nullopt, "" and empty lists: not typed.
struct Request {
  std::optional<int> nodes;
  std::optional<int> ranks;  ///< world size
  std::optional<int> ranks_per_node;
  std::string ranks_by;  ///< "gpu", "xpu", "cpu", "auto": ranks per node, as torchrun counts
  std::optional<int> node_rank;  ///< of this node, where somebody starts hpclaunch on each
  std::string head;           ///< the host of torchrun's endpoint, for a node that is started apart
  bool static_nodes = false;  ///< torchrun: of a step with one task per node, each starts its own
  std::optional<int> least_nodes;  ///< with `nodes`: of these at least, else all that there are
  std::string on_time_limit;       ///< "requeue"
  std::optional<int> spares;       ///< nodes of the job kept back, for one that is lost
  std::optional<int> ranks_per_device;
  std::optional<int> devices_per_rank;  ///< 0: ranks get no device
  std::optional<int> cores_per_rank;
  std::optional<int> threads_per_core;  ///< hardware threads used of each core; nullopt: all
  std::optional<int> het_group;         ///< component of a heterogeneous Slurm job
  bool oversubscribe = false;
  bool free = false;  ///< only what other launches of the job leave
  std::optional<BindVia> bind_via;
  std::string cpu_bind;  ///< CPUs of each rank of a node: "0-3:8-11", "0x0f,0xf0"
  std::string hostfile;  ///< a path; of --hosts kHostList and the list
  std::string topology;

  std::string profile;  ///< name, file or "none"
  std::string stack;
  std::string node_type;
  std::string device_mode;
  std::string gpu_view;          ///< "own", "all", "launcher"
  bool view_is_implied = false;  ///< by another option: nothing to do without devices
  std::string
      local_rank;  ///< what LOCAL_RANK is: "device" as the rank sees it, "node": place on it

  std::string user, job_id;  ///< of a job that does not run yet

  std::string launcher;  ///< name or path
  std::vector<std::string> launcher_args;
  Verify verify = Verify::warn;
  std::optional<OnDrift> on_drift;
  std::vector<std::string> env_files;  ///< --env-file, in order
  std::vector<std::string> env;        ///< --env NAME[=VALUE], in order
  std::vector<TypedVariable> set;      ///< --set NAME=VALUE, in order
  std::vector<std::string> unset;      ///< --unset NAME, in order
  std::string master_addr;
  std::optional<int> master_port;
  OutputOptions output;
  std::optional<bool> supervise;
  std::string signal;               ///< "USR1@300": time-limit signal and seconds before the end
  std::string ends_in;              ///< "HH:MM:SS"
  std::optional<int> max_restarts;  ///< of the whole job, after a rank has failed
  bool agent = false;               ///< one process per node that owns the node
  std::vector<std::string> frameworks;  ///< --for NAME, in order
  /// The launcher that has started this process as a rank on this node ("slurm"; "local": some program); "": hpclaunch
  /// starts the ranks.
  std::string started_by;
  bool force = false;              ///< start in spite of errors, and outside an allocation
  std::optional<int> job_devices;  ///< --gpus: what a job is to ask for on each node
  std::string job_memory;          ///< --mem
  std::string job_queue;           ///< --queue

  std::vector<std::string> module_folders;  ///< --module-use, in order
  std::vector<std::string> modules;         ///< --module, in order
  std::string conda;                        ///< name or prefix
  std::string venv;                         ///< directory
  StageRequest stage;
  std::string mps;             ///< "auto", "on", "off": NVIDIA's MPS for ranks that share a device
  bool profile_start = false;  ///< measure exec, interpreter, import, rendezvous, first collective
  ContainerRequest container;

  /// Program and arguments; [0] absolute once resolved. "-m" there is a Python module, "x.py" may be a script.
  std::vector<std::string> command;
  bool python = false;  ///< `command` begins with a script, whatever its name
};

}  // namespace hpclaunch
