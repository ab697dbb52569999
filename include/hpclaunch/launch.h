#pragma once
// What a start asks of the room that prepared it: launch lines, the next attempt, the batch system.
#include <string>
#include <vector>

#include "hpclaunch/prepared.h"
#include "hpclaunch/sys.h"

namespace hpclaunch {
struct Scheduler;
}

namespace hpclaunch::job {

/// `plan` with the engine before its program; `first` is what the launcher starts.
struct Entered {
  Plan plan;
  std::string first;
};
Entered enter(const ContainerUse& container, const std::string& shim, Plan plan);

/// The launch line of `plan`, in the container where there is one. Errors: as the launcher's render.
Result<Argv> launch_line(const ContainerUse& container, const ChosenLauncher& launcher,
                         const std::string& shim, const Plan& plan);

/// The next attempt: with its number and, unless the user chose one, a new MASTER_PORT. Errors: as prepare.
Result<Prepared> plan_restart(const Prepared& before, int restart, const std::vector<int>& lost);

/// Runs what a row of the batch systems names, the program found on PATH. Errors: as sys::find_program and sys::capture.
Result<sys::Captured> ask_batch_system(std::vector<std::string> question, const World& world);

/// The batch system that this machine can submit to: its configuration and its command are here. nullptr: none.
const Scheduler* installed(const World& world);

/// Where rank 0 of the job or step is that this process is a rank of, with so many nodes; "": not known.
std::string first_host(const World& world, int nodes);

/// Node and nodes, {1, 2}, where the ranks fill the slots of the job's hosts in their order, so that this host has `size`
/// of them from rank `first` on. nullopt: the job has no such list.
std::optional<std::pair<int, int>> listed_node(const World& world, int first, int size, int ranks);

/// Node and nodes where RANK is the number of a pod on the platform whose variables are there.
std::optional<std::pair<int, int>> pod_place(const World& world);

/// The program of a request with its arguments as execve(2) needs them, a script behind its Python. Errors: as prepare.
Result<std::vector<std::string>> program_words(const Request& request, const World& world);

/// "2026-11-21T22:00:05Z"
std::string utc(long long unix_time);

}  // namespace hpclaunch::job
