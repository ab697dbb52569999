// MPICH Hydra's mpiexec.
//
// Source: mpich src/pm/hydra/lib/tools/topo/hwloc/topo_hwloc.c (binding), mansrc/mpiexec.adoc, and runs
// of 4.0.2 and 4.2.1.
// -bind-to user:SET,SET,...   one SET per local rank; inside a SET '+' joins, '-' is a range, numbers
//                             are OS indices in decimal. Hydra ignores in silence what it cannot read,
//                             too short a list and CPUs that do not exist: the shim compares.
// An option that comes twice is an error ("duplicate setting"), so one that is given replaces ours.
// It waits for ranks that have not called MPI_Init when another one has failed (proxy/pmip_cb.c).
// -hosts a:4,b:2              ranks are dealt in blocks of the counts; without them one by one in turn.
// In a Slurm job srun starts the proxies, in an order of its own, by which they are numbered.
// -ppn 4                      overrules the counts: a:3,b:2,c:2 with -ppn 3 puts the sixth rank on b.
// A rank sees PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS. The environment is inherited whole.
#include <fmt/format.h>

#include <algorithm>

#include "launcher/line.h"
#include "launcher/rows.h"

namespace hpclaunch::hydra {

namespace {

std::string binding_set(const CpuSet& cpus) {
  std::string set = cpus.to_list();
  std::replace(set.begin(), set.end(), ',', '+');
  return set;
}

}  // namespace

LauncherTraits traits() {
  LauncherTraits traits;
  traits.name = "hydra";
  traits.rank_var = "PMI_RANK";
  traits.local_rank_var = "MPI_LOCALRANKID";
  traits.binds_sets = true;
  traits.multi_node = true;
  // Runs of 4.0.2: INT, TERM, QUIT and USR1 reach the ranks; HUP and USR2 kill mpiexec.
  traits.termination = {.fails_fast = false,
                        .steps = {{kKill, 10'000}},
                        .on_parent_death = kKill,
                        .sent = {{kHup, kTerm}, {kUsr2, 0}}};
  traits.shim_binds_why =
      "mpiexec would read the whole topology on each node for it, and drop in silence what it "
      "cannot "
      "bind; the shim binds";
  for (const char* name :
       {"HYDRA_BINDING", "HYDRA_MAPPING", "HYDRA_MEMBIND", "HYDRA_HOST_FILE", "HYDRA_CONFIG_FILE"})
    traits.conflicting.push_back(
        {name, "would change what mpiexec is asked for on its command line"});
  traits.conflicting.push_back(
      {"HYDRA_ENV", "would keep variables from ranks on other nodes, the plan among them"});
  return traits;
}

Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim) {
  if (const Status logs =
          line::refuse_log_dir(plan, "mpiexec of MPICH",
                               "--launcher-arg -outfile-pattern --launcher-arg DIR/rank-%r.log");
      !logs)
    return logs.error();
  const std::vector<std::string> given = line::given_args(plan);
  Argv argv = {mpiexec.path};
  if (!line::gives_word(given, {"hosts", "host", "hostlist", "machine", "machines", "machinelist",
                                "f", "hostfile", "machinefile"})) {
    if (mpiexec.uses_srun && !plan.whole_allocation &&
        !line::gives_word(given, {"launcher", "bootstrap", "rmk"}))
      if (const Status ordered = line::check_order_of_srun(
              plan, "mpiexec of MPICH starts its proxies by srun in a Slurm job, which",
              "order the host file by name; or, where ssh leads to the nodes, "
              "--launcher-arg=-launcher --launcher-arg=ssh");
          !ordered)
        return ordered.error();
    const Result<Argv> hosts = line::hosts_or_file(plan, {"-hosts", "-f"}, line::host_counts(plan));
    if (!hosts) return hosts.error();
    argv.insert(argv.end(), hosts->begin(), hosts->end());
  }
  if (!line::gives_word(given, {"n", "np"}))
    argv.insert(argv.end(), {"-n", fmt::format("{}", plan.world_size())});
  if (line::stretches(plan).size() == 1 && !line::gives_word(given, {"ppn"}))
    argv.insert(argv.end(), {"-ppn", fmt::format("{}", plan.max_local_size())});
  if (!line::gives_word(given, {"bind-to"})) {
    std::string binding = "none";
    if (line::launcher_binds(plan)) binding = "user:" + line::join_sets(plan, ",", binding_set);
    argv.insert(argv.end(), {"-bind-to", binding});
  }
  if (plan.output.label && !line::gives_word(given, {"prepend-rank", "l", "prepend-pattern"}))
    argv.emplace_back("-prepend-rank");
  return line::finish(std::move(argv), plan, "", shim);
}

}  // namespace hpclaunch::hydra
