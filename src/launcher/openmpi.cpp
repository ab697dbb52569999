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
// A rank sees OMPI_COMM_WORLD_RANK and OMPI_COMM_WORLD_LOCAL_RANK. SIGKILL of mpirun leaves ranks.
#include <fmt/format.h>

#include "hpclaunch/text.h"
#include "launcher/line.h"
#include "launcher/rows.h"

namespace hpclaunch::openmpi {

namespace {

constexpr int kFirstOfPrrte = 5;

// A version that nobody knows is today's.
bool is_orte(const std::string& version) {
  const auto major = parse_natural(split(version, '.').front());
  return major && *major < kFirstOfPrrte;
}

// "a,a,b": the host of each rank in turn.
std::string host_of_each_rank(const Plan& plan) {
  std::string list;
  std::size_t host = 0;
  for (const NodeRun& run : plan.layout) {
    const auto ranks = plan.classes[static_cast<std::size_t>(run.node_class)].ranks.size();
    for (int n = 0; n < run.nodes; ++n, ++host)
      for (std::size_t r = 0; r < ranks; ++r) {
        if (!list.empty()) list += ',';
        list += plan.hosts[host];
      }
  }
  return list;
}

// Where the ranks go. A list by rank is too long for large jobs; the order of the nodes is then the
// allocation's.
Result<Argv> placement(const Plan& plan, const std::vector<std::string>& given) {
  const bool maps = line::gives_word(
      given, {"map-by", "rankfile", "rf", "npernode", "N", "ppr", "bynode", "byslot", "pernode"});
  if (line::gives_word(given, {"host", "H", "hostfile", "machinefile", "default-hostfile"}))
    return maps ? Argv{} : Argv{"--map-by", fmt::format("ppr:{}:node", plan.max_local_size())};
  const std::string list = host_of_each_rank(plan);
  if (!maps && plan.nodes() > 1 && list.size() <= line::kMaxArgument)
    return Argv{"--host", list, "--map-by", "seq", "--oversubscribe"};
  Result<Argv> words = line::hosts_or_file(plan, {"--host", "--hostfile"}, line::host_counts(plan));
  if (!words || maps) return words;
  if (line::stretches(plan).size() == 1)
    words->insert(words->end(), {"--map-by", fmt::format("ppr:{}:node", plan.max_local_size()),
                                 "--oversubscribe"});
  else  // with fewer slots than ranks it would deal them otherwise: let it refuse
    words->insert(words->end(), {"--map-by", "slot"});
  return words;
}

Result<Argv> render_orte(const Plan& plan, const std::string& mpirun, const std::string& shim) {
  const std::vector<std::string> given = line::given_args(plan);
  Argv argv = {mpirun};
  if (!line::gives_word(given, {"n", "np", "c"}))
    argv.insert(argv.end(), {"-np", fmt::format("{}", plan.world_size())});
  const Result<Argv> where = placement(plan, given);
  if (!where) return where.error();
  argv.insert(argv.end(), where->begin(), where->end());
  if (!line::gives_word(given,
                        {"bind-to", "bind-to-core", "bind-to-socket", "cpu-set", "rankfile", "rf"}))
    argv.insert(argv.end(), {"--bind-to", "none"});
  if (plan.output.label && !line::gives_word(given, {"tag-output"}))
    argv.emplace_back("--tag-output");
  for (const std::string& name : plan.forward) argv.insert(argv.end(), {"-x", name});
  return line::finish(std::move(argv), plan, "", shim);
}

}  // namespace

LauncherTraits traits() {
  LauncherTraits traits;
  traits.name = "openmpi";
  traits.rank_var = "OMPI_COMM_WORLD_RANK";
  traits.local_rank_var = "OMPI_COMM_WORLD_LOCAL_RANK";
  traits.multi_node = true;
  traits.termination.ranks_outlive_launcher = true;  // TERM stops them within seconds
  traits.names_variables = true;
  const char* why = "would change how mpirun places or binds ranks, which gets its own orders here";
  for (const char* name : {"OMPI_MCA_hwloc_base_bind_to_core", "OMPI_MCA_hwloc_base_bind_to_socket",
                           "OMPI_MCA_hwloc_base_binding_policy", "OMPI_MCA_hwloc_base_cpu_list",
                           "OMPI_MCA_hwloc_base_cpu_set", "OMPI_MCA_hwloc_base_slot_list",
                           "OMPI_MCA_orte_default_hostfile", "OMPI_MCA_orte_rankfile"})
    traits.conflicting.push_back({name, why});
  for (const char* name :
       {"OMPI_MCA_orte_abort_on_non_zero_status", "OMPI_MCA_orte_enable_recovery"})
    traits.conflicting.push_back({name, "would let the other ranks go on when one has failed"});
  traits.conflicting.push_back(
      {"OMPI_MCA_mca_base_env_list",
       "mpirun refuses it beside -x, which names every variable for it here; "
       "--set NAME=VALUE passes one on"});
  for (const char* prefix : {"OMPI_MCA_rmaps_", "PRTE_MCA_hwloc_default_", "PRTE_MCA_rmaps_"})
    traits.conflicting.push_back({prefix, why, false, false, true});
  const char* root = "Open MPI refuses to start for root, the user here, unless both are set";
  traits.presets = {{"OMPI_ALLOW_RUN_AS_ROOT", "1", root, true},
                    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", root, true}};
  return traits;
}

Result<Argv> render(const Plan& plan, const LauncherFacts& mpirun, const std::string& shim) {
  if (const Status logs = line::refuse_log_dir(
          plan, "mpirun of Open MPI", "--launcher-arg=--output-filename --launcher-arg=DIR");
      !logs)
    return logs.error();
  if (is_orte(mpirun.version)) return render_orte(plan, mpirun.path, shim);
  return prrte::render_behind({mpirun.path}, plan, shim);
}

}  // namespace hpclaunch::openmpi
