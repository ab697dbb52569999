// PRRTE's prterun, alone or under the name of Open MPI 5's mpirun.
//
// Source: prrte docs/prrte-rst-content/{cli-map-by,cli-bind-to,cli-output,prterun-all-cli}.rst,
// src/mca/schizo/ompi, and what 3.0.8 under Open MPI 5.0.7 did on one node.
// --personality ompi          without it a rank is told its rank and nothing else.
// --host a:4,b:2              a host without a count has one slot.
// --map-by ppr:4:node         so many ranks on each node; ":OVERSUBSCRIBE" when the batch system has
//                             given fewer slots. Uneven counts follow the slots.
// --bind-to none              numbers of CPUs are logical here and there is no form for sets.
// -x NAME                     variables for ranks on other nodes.
// Starting several programs (":") crashed in a distribution's 5.0.7: never used.
#include <fmt/format.h>

#include "launcher/line.h"
#include "launcher/rows.h"

namespace hpclaunch::prrte {

LauncherTraits traits() {
  LauncherTraits traits;
  traits.name = "prrte";
  traits.rank_var = "OMPI_COMM_WORLD_RANK";
  traits.local_rank_var = "OMPI_COMM_WORLD_LOCAL_RANK";
  traits.multi_node = true;
  traits.termination.ranks_outlive_launcher = true;  // TERM stops them within seconds
  traits.names_variables = true;
  for (const char* prefix : {"OMPI_MCA_rmaps_", "PRTE_MCA_hwloc_default_", "PRTE_MCA_rmaps_"})
    traits.conflicting.push_back(
        {prefix, "would change how prterun places or binds ranks, which gets its own orders here",
         false, false, true});
  const char* root = "PRRTE refuses to start for root, the user here, unless all four are set";
  for (const char* name : {"OMPI_ALLOW_RUN_AS_ROOT", "OMPI_ALLOW_RUN_AS_ROOT_CONFIRM",
                           "PRTE_ALLOW_RUN_AS_ROOT", "PRTE_ALLOW_RUN_AS_ROOT_CONFIRM"})
    traits.presets.push_back({name, "1", root, true});
  return traits;
}

Result<Argv> render_behind(Argv argv, const Plan& plan, const std::string& shim) {
  const std::vector<std::string> given = line::given_args(plan);
  if (!line::gives_word(given, {"n", "np"}))
    argv.insert(argv.end(), {"-n", fmt::format("{}", plan.world_size())});
  if (!line::gives_word(given, {"host", "H", "hostfile", "machinefile"})) {
    const Result<Argv> hosts =
        line::hosts_or_file(plan, {"--host", "--hostfile"}, line::host_counts(plan));
    if (!hosts) return hosts.error();
    argv.insert(argv.end(), hosts->begin(), hosts->end());
  }
  if (!line::gives_word(given, {"map-by", "mapby", "rankfile", "N", "npernode"})) {
    const bool even = line::stretches(plan).size() == 1;
    argv.insert(argv.end(),
                {"--map-by", even ? fmt::format("ppr:{}:node:OVERSUBSCRIBE", plan.max_local_size())
                                  : std::string("slot")});
  }
  if (!line::gives_word(given, {"bind-to", "bindto"}))
    argv.insert(argv.end(), {"--bind-to", "none"});
  if (plan.output.label && !line::gives_word(given, {"output", "tag-output"}))
    argv.insert(argv.end(), {"--output", "tag"});
  for (const std::string& name : plan.forward) argv.insert(argv.end(), {"-x", name});
  return line::finish(std::move(argv), plan, "", shim);
}

Result<Argv> render(const Plan& plan, const LauncherFacts& prterun, const std::string& shim) {
  if (const Status logs = line::refuse_log_dir(plan, "prterun", ""); !logs) return logs.error();
  return render_behind({prterun.path, "--personality", "ompi"}, plan, shim);
}

}  // namespace hpclaunch::prrte
