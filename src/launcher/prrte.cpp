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
// Starting several programs (":") crashed in a distribution's 5.0.7: never used.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/hosts.h"
#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

constexpr const char* kAsRoot = "PRRTE refuses to run as root unless all four are set";

Result<Argv> render(const Plan& plan, const LauncherFacts& prterun, const std::string& shim) {
  Line line(plan, {prterun.path, "--personality", "ompi"}, kOpenMpiFlags.words);
  return finish_prrte(plan, line, shim);
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

}  // namespace

Result<Argv> finish_prrte(const Plan& plan, Line& line, const std::string& shim) {
  line.add({"-n", fmt::format("{}", plan.world_size())}, {"n", "np"});
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
  for (const std::string& name : plan.environment.forward) line.add({"-x", name});
  return line.finish(shim);
}

const Launcher prrte = {
    .name = "prrte",
    .programs = {"prterun"},
    .recognition = {.texts = {{"(PRRTE)", "(PRRTE)"}}, .name_parts = {"prterun"}},
    .shared_names = true,
    .rank_variables = "PMIX_RANK PMIX_NAMESPACE PMIX_LOCAL_RANK PMIX_SERVER_URI* PRTE_LAUNCHED",
    .mpi = "openmpi",
    .traits = {.rank_var = "OMPI_COMM_WORLD_RANK",
               .local_rank_var = "OMPI_COMM_WORLD_LOCAL_RANK",
               .multi_node = true,
               .by_ssh = true,
               .names_variables = true,
               // TERM stops ranks within seconds.
               .termination = {.ranks_outlive_launcher = true, .watch_links = true},
               .conflicting =
                   one_by_one({{.name = "OMPI_MCA_rmaps PRTE_MCA_hwloc_default_ PRTE_MCA_rmaps",
                                .why = "changes how prterun places or binds ranks",
                                .prefix = true}}),
               .presets = {{"OMPI_ALLOW_RUN_AS_ROOT", "1", kAsRoot, Preset::as_root},
                           {"OMPI_ALLOW_RUN_AS_ROOT_CONFIRM", "1", kAsRoot, Preset::as_root},
                           {"PRTE_ALLOW_RUN_AS_ROOT", "1", kAsRoot, Preset::as_root},
                           {"PRTE_ALLOW_RUN_AS_ROOT_CONFIRM", "1", kAsRoot, Preset::as_root}}},
    .flags = &kOpenMpiFlags,
    .render = render};

}  // namespace hpclaunch::launcher
