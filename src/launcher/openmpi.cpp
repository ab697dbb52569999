// Open MPI's mpirun: ORTE up to version 4, a prterun from 5 on (launcher/prrte.cpp).
//
// Source: runs of 4.1.4, also with daemons that got nothing but PATH and HOME and inside a made-up
// Slurm allocation; orte/mca/rmaps/{seq,ppr}, orte/tools/orterun/orterun.c of v4.1.x.
// --map-by seq --host a,a,b  rank i on the i-th name. "--host a:2,b:1" is not the same: names are put
//                            into the allocation's order, and the node of mpirun itself comes first.
// --oversubscribe            a Slurm job without --ntasks-per-node has one slot on each node.
// --bind-to none             binds to one core each otherwise; exact sets of CPUs it cannot do.
// -x NAME                    for every variable: ranks on other nodes get OMPI_* and nothing else.
// An option that comes again replaces the one before, --host adds.
// A rank sees OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_LOCAL_RANK. Ranks survive a SIGKILL of mpirun.
#include <fmt/format.h>

#include "hpclaunch/text.h"
#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

constexpr std::string_view kGrammar = "openmpi";
constexpr const char* kPlacesRanks = "changes how mpirun places or binds ranks";
constexpr const char* kAsRoot = "Open MPI refuses to run as root unless both are set";

// An unknown version is a current one.
bool is_orte(std::string_view version) {
  constexpr int kFirstOfPrrte = 5;
  const auto major = parse_natural(split(version, '.').front());
  return major && *major < kFirstOfPrrte;
}

// By a host for each rank; where that list is too long, in the allocation's order of nodes.
void add_placement(const Plan& plan, Line& line) {
  const bool maps = line.given(
      {"map-by", "rankfile", "rf", "npernode", "N", "ppr", "bynode", "byslot", "pernode"});
  const std::string per_node = fmt::format("ppr:{}:node", plan.max_local_size());
  if (line.given({"host", "H", "hostfile", "machinefile", "default-hostfile"})) {
    if (!maps) line.add({"--map-by", per_node});
    return;
  }
  const std::string list = host_of_ranks(plan);
  if (!maps && plan.nodes() > 1 && list.size() <= kMaxArgument)
    return line.add({"--host", list, "--map-by", "seq", "--oversubscribe"});
  line.add_hosts({.list = "--host", .file = "--hostfile"}, host_counts(plan));
  if (maps) return;
  // With fewer slots than ranks, "slot" with --oversubscribe would place ranks otherwise: mpirun refuses.
  line.add(stretches(plan).size() == 1 ? Argv{"--map-by", per_node, "--oversubscribe"}
                                       : Argv{"--map-by", "slot"});
}

Result<Argv> render(const Plan& plan, const LauncherFacts& mpirun, const std::string& shim) {
  Line line(plan, {mpirun.path}, kGrammar);
  if (!is_orte(mpirun.version)) return finish_prrte(plan, mpirun, line, shim);
  add_mca_agent(mpirun, "--mca", "plm_rsh_agent", line);
  line.add({"-np", fmt::format("{}", plan.world_size())}, {"n", "np", "c"});
  add_placement(plan, line);
  line.add({"--bind-to", "none"},
           {"bind-to", "bind-to-core", "bind-to-socket", "cpu-set", "rankfile", "rf"});
  if (plan.supervision.output.label) line.add({"--tag-output"}, {"tag-output"});
  line.add_variables();
  return line.finish(shim);
}

// Of ORTE and, where it may be a prterun, of that.
LauncherTraits traits() {
  LauncherTraits traits = prrte_traits();
  const auto orte =
      one_by_one({{"OMPI_MCA_hwloc_base_bind_to_core OMPI_MCA_hwloc_base_bind_to_socket "
                   "OMPI_MCA_hwloc_base_binding_policy OMPI_MCA_hwloc_base_cpu_list "
                   "OMPI_MCA_hwloc_base_cpu_set OMPI_MCA_hwloc_base_slot_list "
                   "OMPI_MCA_orte_default_hostfile OMPI_MCA_orte_rankfile",
                   kPlacesRanks},
                  {"OMPI_MCA_orte_abort_on_non_zero_status OMPI_MCA_orte_enable_recovery",
                   "lets the other ranks continue after one has failed"},
                  {"OMPI_MCA_mca_base_env_list",
                   "mpirun refuses it beside -x, which hpclaunch passes for every variable; "
                   "--set NAME=VALUE passes one on"}});
  traits.conflicting.insert(traits.conflicting.begin(), orte.begin(), orte.end());
  traits.presets = {{"OMPI_ALLOW_RUN_AS_ROOT", "1", kAsRoot, Preset::as_root},
                    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", kAsRoot, Preset::as_root}};
  return traits;
}

void of_version(LauncherTraits& traits, std::string_view version) {
  if (!is_orte(version)) return;
  traits.removes.clear();
  traits.presets.push_back({"OMPI_MCA_orte_keep_fqdn_hostnames", "1",
                            "mpirun strips the domains of the nodes that it knows, and then does "
                            "not find those of --map-by seq",
                            Preset::qualified_hosts});
}

}  // namespace

Launcher openmpi = {
    .name = "openmpi",
    .programs = {"mpirun", "mpiexec", "mpirun.openmpi", "mpiexec.openmpi", "orterun"},
    .recognition = {.texts = {{"(Open MPI)", "(Open MPI)"}, {"(OpenRTE)", "(OpenRTE)"}},
                    .name_parts = {"orterun", "openmpi", "ompi"}},
    .shared_names = true,
    .by_version = true,
    .rank_mark = "OMPI_COMM_WORLD_RANK",
    .rank_variables =
        "OMPI_COMM_WORLD_* OMPI_UNIVERSE_SIZE OMPI_WORLD_SIZE OMPI_WORLD_LOCAL_SIZE "
        "OMPI_MCA_orte_hnp_uri OMPI_MCA_orte_local_daemon_uri OMPI_MCA_orte_ess_*",
    .place = {{Identity::rank, "OMPI_COMM_WORLD_RANK"},
              {Identity::ranks, "OMPI_COMM_WORLD_SIZE"},
              {Identity::local_rank, "OMPI_COMM_WORLD_LOCAL_RANK"},
              {Identity::local_size, "OMPI_COMM_WORLD_LOCAL_SIZE"}},
    .mpi = "openmpi",
    .rereads = prrte_rereads(),
    .traits = traits(),
    .of_version = of_version,
    .grammar = kGrammar,
    .agent_variables = kMcaAgents,
    .render = render};

}  // namespace hpclaunch::launcher
