#pragma once
// What the ranks of a node read that the first of them has planned.
#include <sys/types.h>

#include <functional>
#include <map>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/start.h"

namespace hpclaunch::job {

/// A device as masks name it. {3, "GPU-5d4f...", {}, CPUs 24-31}
struct BindDevice {
  int index = 0;
  std::string uuid, pci;
  std::vector<std::string> instances;
  CpuSet near;
  std::string file = {};  ///< "/dev/nvidia3", where each rank may open its own device only
};

/// Lines of text in a file that only this user reads and writes.
struct NodePlan {
  std::string shim;
  std::string program;    ///< absolute
  bool inserted = false;  ///< before the typed words, in place of the first one
  std::string wire;       ///< HPCLAUNCH_PLAN
  std::string address;    ///< MASTER_ADDR; "" unknown
  std::string port;
  std::map<std::string, std::optional<std::string>> set;  ///< nullopt: removed
  std::vector<std::string> rank, node, ranks, nodes;      ///< names of variables with these
  std::vector<std::string> threads;     ///< those whose value is the number of cores
  std::vector<CpuSet> cpus;             ///< of each rank; empty: not bound
  std::vector<int> each;                ///< cores of each rank
  std::vector<std::vector<int>> units;  ///< Device::index of each rank
  std::vector<BindDevice> devices;
  std::vector<CpuSet> cores;
  std::vector<std::pair<int, CpuSet>> numas;
  std::string unbound;                       ///< why ranks are not bound; "" where they are
  std::vector<Diagnostic> diagnostics;       ///< for the process that has planned; not in the file
  int port_lock = -1;                        ///< the same
  std::map<std::string, std::string> files;  ///< that decide: path and World::stamp
};

/// What the plan of a node depends on beside the variables that are equal on it.
struct BindBasis {
  BindPlace place;
  CpuSet cpus;                ///< that the ranks may use together
  bool own_device = false;    ///< the launcher has given each rank one of the devices
  std::string port_key = {};  ///< equal on all ranks of the launch, and of no other one
};

/// `here`: `run` or bind has placed this rank already; `above`: another process, in whose place a launcher has started
/// this one.
enum class Placed { no, here, above };
Placed placed_by_hpclaunch(const BindRequest& request, const EnvSnapshot& env);
/// Without what hpclaunch has told the process above.
EnvSnapshot without_place(const EnvSnapshot& env);

/// The nearest process above that is no rank's own: the launcher's on this node, the shell of a loop. 0 where a namespace
/// hides it.
pid_t common_ancestor(const BindPlace& place);

/// Which launch a rank is of, by its launcher's variables and by the process that has started all ranks of the node: not
/// by what each rank may have of its own, such as arguments.
struct LaunchKeys {
  std::string node;  ///< the same on the ranks of this node
  std::string port;  ///< the same on all ranks
};
LaunchKeys launch_keys(const BindPlace& place, pid_t ancestor, const BindRequest& request,
                       const EnvSnapshot& env);

/// Equal where ranks of one launch need the same plan. `options`: of session.words, before the program.
std::string plan_key(const BindBasis& basis, const Session& session, std::size_t options);

/// As the process was started with it; empty where it cannot be read.
EnvSnapshot environment_of(pid_t pid);

/// Through job::prepare, as `run` would for this node. Errors: as that.
Result<NodePlan> plan_node(const BindRequest& request, const BindBasis& basis,
                           const EnvSnapshot& env);

/// Names that a rank has of its own, and PyTorch's: what is set stays.
bool is_bind_identity(std::string_view name);

std::string node_plan_text(const NodePlan& plan);
/// nullopt: it is not whole, or another version wrote it.
std::optional<NodePlan> read_node_plan(std::string_view text);

/// A rank that asks for the plan of its node.
struct PlanAsked {
  std::string launch;  ///< LaunchKeys::node
  std::string plan;    ///< plan_key
  int local = 0;
};

/// The plan that a process of this launch has left on this node, else what `make` returns, which is left for others, with
/// the port of the launch's first plan. One process makes it while the others wait for that one. A rank that has asked
/// before is one of the next launch. Errors: of `make`.
Result<NodePlan> shared_node_plan(const PlanAsked& asked,
                                  const std::function<Result<NodePlan>()>& make);

}  // namespace hpclaunch::job
