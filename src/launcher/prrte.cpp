// PRRTE's prterun, alone or under the name of Open MPI 5's mpirun.
//
// Source: prrte docs/prrte-rst-content/{cli-map-by,cli-bind-to,cli-output,prterun-all-cli}.rst,
// src/mca/schizo/ompi, and what 3.0.8 under Open MPI 5.0.7 did on one node.
// --personality ompi          without it a rank is told its rank and nothing else.
// --host a:4,b:2              a host without a count has one slot.
//                             Nodes are known by what stands before the first dot, and without
//                             OVERSUBSCRIBE the count of a qualified name is lost: "a.x:0,a:4".
// --map-by ppr:4:node         so many ranks on each node; ":OVERSUBSCRIBE" when the batch system has
//                             given fewer slots. Uneven counts follow the slots.
// --bind-to none              numbers of CPUs are logical here and there is no form for sets.
// -x NAME                     variables for ranks on other nodes.
// It reads --map-by and the like among the program's words too: prrte_rereads. "--bind-to=core" is refused since 3.0.13.
// Starting several programs (":") crashed in a distribution's 5.0.7: never used.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"
#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

constexpr std::string_view kGrammar = "openmpi";
constexpr const char* kAsRoot = "PRRTE refuses to run as root unless all four are set";

Result<Argv> render(const Plan& plan, const LauncherFacts& prterun, const std::string& shim) {
  Line line(plan, {prterun.path, "--personality", "ompi"}, kGrammar);
  return finish_prrte(plan, prterun, line, shim);
}

// The part before the first dot; a whole address.
std::string label_of(const std::string& host) {
  return is_qualified(host) ? host.substr(0, host.find('.')) : host;
}

// "a.x:0,a:4": the name by which the node is reached, and that by which its slots are found.
std::string counts_by_label(const Plan& plan) {
  return host_texts(plan, [](std::string_view host, std::size_t ranks) {
    const std::string name(host);
    return fmt::format("{}{}:{}", is_qualified(host) ? name + ":0," : "", label_of(name), ranks);
  });
}

Status check_labels(const Plan& plan) {
  std::map<std::string, std::string> seen;
  if (std::ranges::none_of(plan.hosts.names, is_qualified)) return Done{};
  for (const std::string& host : plan.hosts.names)
    if (const auto [other, is_new] = seen.emplace(label_of(host), host); !is_new)
      return Error{ErrorKind::unsupported,
                   fmt::format("{} takes {} and {} for one node: it reads a name up to the first "
                               "dot",
                               plan.launch.launcher, other->second, host),
                   "write their IPv4 addresses to a file, and pass --hostfile FILE"};
  return Done{};
}

LauncherTraits traits() {
  LauncherTraits traits = prrte_traits();
  traits.presets = {{"OMPI_ALLOW_RUN_AS_ROOT", "1", kAsRoot, Preset::as_root},
                    {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", kAsRoot, Preset::as_root},
                    {"PRTE_ALLOW_RUN_AS_ROOT", "1", kAsRoot, Preset::as_root},
                    {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1", kAsRoot, Preset::as_root}};
  return traits;
}

}  // namespace

std::vector<std::string_view> prrte_rereads() {
  return {":",          "--bind-to", "--bindto",  "--gmca",   "--gomca", "--gpmixmca",
          "--gprtemca", "--map-by",  "--mapby",   "--mca",    "--omca",  "--personality",
          "--pmixmca",  "--prtemca", "--rank-by", "--rankby", "--rtos",  "--runtime-options"};
}

LauncherTraits prrte_traits() {
  constexpr const char* kPlaces = "changes how prterun places or binds ranks";
  return {.rank_var = "OMPI_COMM_WORLD_RANK",
          .local_rank_var = "OMPI_COMM_WORLD_LOCAL_RANK",
          .multi_node = true,
          .by_ssh = true,
          .names_variables = true,
          .termination = {.ranks_outlive_launcher = true},
          .conflicting = one_by_one(
              {{"PRTE_MCA_bindto PRTE_MCA_mapby PRTE_MCA_rankby PRTE_MCA_prte_default_dash_host "
                "PRTE_MCA_prte_default_hostfile OMPI_MCA_prte_default_dash_host "
                "OMPI_MCA_prte_default_hostfile",
                kPlaces},
               {"OMPI_MCA_state_base_autorestart OMPI_MCA_state_base_continuous "
                "OMPI_MCA_state_base_error_non_zero_exit OMPI_MCA_state_base_recoverable "
                "PRTE_MCA_rtos PRTE_MCA_state_base_autorestart PRTE_MCA_state_base_continuous "
                "PRTE_MCA_state_base_error_non_zero_exit PRTE_MCA_state_base_recoverable",
                "lets the other ranks continue after one has failed, and the job end with 0"},
               {"OMPI_MCA_prte_keep_fqdn_hostnames PRTE_MCA_prte_keep_fqdn_hostnames",
                "prterun then finds no slots on hosts that have a domain"},
               {"PRTE_MCA_output",
                "labels or redirects output, and with it how each rank exited; "
                "--launcher-arg=--output --launcher-arg=... does so for this launch"},
               {"PRTE_MCA_personality PRTE_MCA_schizo_proxy",
                "changes which options prterun accepts, and which variables ranks get"},
               {.name = "OMPI_MCA_rmaps PRTE_MCA_hwloc_default_ PRTE_MCA_rmaps",
                .why = kPlaces,
                .prefix = true}}),
          .removes = "PMIX_ PRTE_"};
}

void add_mca_agent(const LauncherFacts& mpirun, std::string_view option, std::string_view name,
                   Line& line) {
  if (mpirun.agent.empty()) return;
  for (const std::string_view key : {"plm", "plm_rsh_agent", "plm_ssh_agent"})
    if (line.given({"mca", "omca", "prtemca"}, key)) return;
  line.add({std::string(option), std::string(name), mpirun.agent});
}

Result<Argv> finish_prrte(const Plan& plan, const LauncherFacts& prterun, Line& line,
                          const std::string& shim) {
  add_mca_agent(prterun, "--prtemca", "plm_ssh_agent", line);
  line.add({"-n", fmt::format("{}", plan.world_size())}, {"n", "np"});
  line.split_given({"map-by", "rank-by", "bind-to", "runtime-options"});
  const bool even = stretches(plan).size() == 1;
  if (!line.given({"host", "H", "hostfile", "machinefile"})) {
    line.require(check_labels(plan));
    line.add_hosts({.list = "--host", .file = "--hostfile"},
                   even ? host_counts(plan) : counts_by_label(plan));
  }
  line.add({"--map-by", even ? fmt::format("ppr:{}:node:OVERSUBSCRIBE", plan.max_local_size())
                             : std::string("slot")},
           {"map-by", "mapby", "rankfile", "N", "npernode"});
  line.add({"--bind-to", "none"}, {"bind-to", "bindto"});
  if (plan.supervision.output.label) line.add({"--output", "tag"}, {"output", "tag-output"});
  line.add_variables();
  return line.finish(shim);
}

Launcher prrte = {
    .name = "prrte",
    .programs = {"prterun"},
    .recognition = {.texts = {{"(PRRTE)", "(PRRTE)"}}, .name_parts = {"prterun"}},
    .shared_names = true,
    .rank_variables = "PMIX_RANK PMIX_NAMESPACE PMIX_LOCAL_RANK PMIX_SERVER_URI* PRTE_LAUNCHED",
    .mpi = "openmpi",
    .rereads = prrte_rereads(),
    .traits = traits(),
    .grammar = kGrammar,
    .agent_variables = kMcaAgents,
    .render = render};

}  // namespace hpclaunch::launcher
