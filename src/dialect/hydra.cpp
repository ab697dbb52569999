// MPICH Hydra's mpiexec.
//
// Source: mpich src/pm/hydra/lib/tools/topo/hwloc/topo_hwloc.c (binding), mansrc/mpiexec.adoc, and runs
// of 4.0.2 and 4.2.1.
// -bind-to user:SET,SET,...   one SET per local rank; inside a SET '+' joins, '-' is a range, numbers
//                             are OS indices in decimal. Hydra ignores in silence what it cannot read,
//                             too short a list and CPUs that do not exist: the shim compares.
// -hosts a:4,b:2              ranks are dealt in blocks of the counts; without them one by one in turn.
// A rank sees PMI_RANK, PMI_SIZE, MPI_LOCALRANKID, MPI_LOCALNRANKS. The environment is inherited whole.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "dialect/line.h"
#include "dialect/rows.h"

namespace hpclaunch::hydra {

namespace {

std::string binding_set(const CpuSet& cpus) {
  std::string set = cpus.to_list();
  std::replace(set.begin(), set.end(), ',', '+');
  return set;
}

std::string host_list(const Plan& plan) {
  std::vector<std::string> hosts;
  std::size_t host = 0;
  for (const NodeRun& run : plan.layout)
    for (int n = 0; n < run.nodes; ++n, ++host)
      hosts.push_back(
          fmt::format("{}:{}", plan.hosts[host],
                      plan.classes[static_cast<std::size_t>(run.node_class)].ranks.size()));
  return fmt::format("{}", fmt::join(hosts, ","));
}

}  // namespace

LauncherTraits traits() {
  LauncherTraits traits;
  traits.name = "hydra";
  traits.rank_var = "PMI_RANK";
  traits.local_rank_var = "MPI_LOCALRANKID";
  traits.binds_sets = true;
  traits.multi_node = true;
  for (const char* name : {"HYDRA_BINDING", "HYDRA_MAPPING", "HYDRA_MEMBIND", "HYDRA_HOST_FILE"})
    traits.leftovers.push_back(
        {name, "would change what mpiexec is asked for on its command line"});
  return traits;
}

Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim) {
  const std::string hosts = host_list(plan);
  if (hosts.size() > line::kMaxArgument)
    return Error{ErrorKind::unsupported,
                 fmt::format("the list of {} hosts is longer than one argument may be ({} bytes)",
                             plan.nodes(), line::kMaxArgument),
                 "use the batch system's own launcher for a job of this size"};
  Argv argv = {mpiexec.path,
               "-hosts",
               hosts,
               "-n",
               fmt::format("{}", plan.world_size()),
               "-ppn",
               fmt::format("{}", plan.max_local_size())};
  if (plan.bind_via == BindVia::launcher) {
    std::vector<std::string> sets;  // one class: make_plan lets the launcher bind only then
    for (const RankPlan& rank : plan.classes.front().ranks) sets.push_back(binding_set(rank.cpus));
    argv.insert(argv.end(), {"-bind-to", fmt::format("user:{}", fmt::join(sets, ","))});
  } else {
    argv.insert(argv.end(), {"-bind-to", "none"});
  }
  if (plan.output.label) argv.push_back("-prepend-rank");
  if (!plan.output.log_dir.empty())
    return Error{ErrorKind::unsupported,
                 "mpiexec of MPICH cannot write a log file per rank and keep the output",
                 "leave --log-dir out, or pass --launcher-arg -outfile-pattern --launcher-arg "
                 "DIR/rank-%r.log"};
  return line::finish(std::move(argv), plan, "", shim);
}

}  // namespace hpclaunch::hydra
