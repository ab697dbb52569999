// HPE's mpiexec of PALS (Cray EX systems under PBS).
//
// Source: HPE's open front end (Cray-HPE/craycli cray/modules/mpiexec/cli.py, which names the options
// and the variables that preset them) and the pages on running jobs in argonne-lcf/user-guides. The
// program itself is not published.
// --np N, --ppn P            ranks in all and on each node. Nodes are filled one after the other.
// --hosts a,b                bare names without counts; left out, the job's own list is used.
// --cpu-bind list:S:S:...    one set per local rank. ':' separates ranks, ',' and '-' inside a
//                            set; OS indices; the same on every node. What fewer sets than ranks mean
//                            is written nowhere, so there are always as many. Without --cpu-bind each
//                            rank gets one hardware thread, so it is always there.
// --abort-on-failure         reports disagree on whether it is the default.
// A rank sees PALS_RANKID and PALS_LOCAL_RANKID with each kind of --pmi.
#include <fmt/format.h>

#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

constexpr std::string_view kGrammar = "pals";

Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim) {
  const int per_node = plan.max_local_size();
  const int filled = (plan.world_size() + per_node - 1) / per_node;
  Line line(plan, {mpiexec.path}, kGrammar);
  line.require(
      check_filled(plan, "mpiexec of PALS", fmt::format("-N {} --ppn {}", filled, per_node)));
  line.add({"--np", fmt::format("{}", plan.world_size())}, {"n", "np"});
  line.add({"--ppn", fmt::format("{}", per_node)}, {"ppn"});
  if (!plan.hosts.whole_allocation && !line.given({"hosts", "host", "hostlist", "hostfile", "f"}))
    line.add_hosts(
        {.list = "--hosts",
         .file = "--hostfile",
         .hint = "use the job's nodes without a host file, or --launcher-arg=--hostfile=FILE",
         .with_counts = false},
        host_list(plan));
  if (plan.placement.gpu_view != "launcher")
    line.add(
        {"--cpu-bind", launcher_binds(plan) ? "list:" + join_sets(plan, ":", cpu_list) : "none"},
        {"cpu-bind"});
  line.add({"--envall"}, {"envall", "genvall", "envnone", "genvnone", "envlist"});
  line.add({"--abort-on-failure"}, {"abort-on-failure", "no-abort-on-failure"});
  line.add({"--line-buffer"});
  if (plan.supervision.output.label) line.add({"--label"});
  return line.finish(shim, "--");
}

}  // namespace

Launcher pals = {
    .name = "pals",
    .programs = {"mpiexec", "mpirun"},
    .recognition = {.folder = "/cray/pals/",
                    .texts = {{"[global_options] [command_options]", std::nullopt}}},
    .shared_names = true,
    .rank_mark = "PALS_RANKID",
    .rank_variables =
        "PALS_RANKID PALS_LOCAL_RANKID PALS_LOCAL_SIZE PALS_NODEID PMI_LOCAL_RANK "
        "PMI_LOCAL_SIZE PMI_UNIVERSE_SIZE",
    .place = {{Identity::rank, "PALS_RANKID"},
              {Identity::ranks, "PMI_SIZE"},
              {Identity::node, "PALS_NODEID"},
              {Identity::local_rank, "PALS_LOCAL_RANKID"},
              {Identity::local_size, "PMI_LOCAL_SIZE PALS_LOCAL_SIZE"}},
    .mpi = "mpich openmpi",
    .rereads = {":"},
    .traits =
        {.rank_var = "PALS_RANKID",
         .local_rank_var = "PALS_LOCAL_RANKID",
         .binds_sets = true,
         .multi_node = true,
         .distribution = Distribution::fill,
         .conflicting = one_by_one({{"PALS_CPU_BIND PALS_MEM_BIND PALS_PPN PALS_NRANKS PALS_DEPTH "
                                     "PALS_HOSTFILE PALS_HOSTLIST",
                                     "presets an option of mpiexec that hpclaunch passes"}}),
         // Of Hydra's mpiexec: oneCCL with its default launcher, and programs written for Intel MPI.
         .aliases = {{Identity::local_rank, "MPI_LOCALRANKID"},
                     {Identity::local_size, "MPI_LOCALNRANKS"}}},
    .grammar = kGrammar,
    .render = render};

}  // namespace hpclaunch::launcher
