// HPE's mpiexec of PALS (Cray EX systems under PBS).
//
// Source: HPE's open front end (Cray-HPE/craycli cray/modules/mpiexec/cli.py, which names the options
// and the variables that preset them) and the pages on running jobs in argonne-lcf/user-guides. Nobody
// publishes the program itself.
// --np N, --ppn P            ranks in all and on each node. Nodes are filled one after the other.
// --hosts a,b                bare names without counts; left out, the job's own list is used.
// --cpu-bind list:S:S:...    one set per local rank. ':' stands between ranks, ',' and '-' inside a
//                            set; OS indices; the same on every node. What fewer sets than ranks mean
//                            is written nowhere, so there are always as many. Without --cpu-bind each
//                            rank gets one hardware thread, so it is always there.
// --abort-on-failure         reports disagree on whether it is the default.
// A rank sees PALS_RANKID and PALS_LOCAL_RANKID with each kind of --pmi.
#include <fmt/format.h>

#include "launcher/line.h"
#include "launcher/rows.h"

namespace hpclaunch::pals {

namespace {

Status check_layout(const Plan& plan) {
  const int per_node = plan.max_local_size();
  const int filled = (plan.world_size() + per_node - 1) / per_node;
  return line::check_filled(plan, "mpiexec of PALS",
                            fmt::format("-N {} --ppn {}", filled, per_node));
}

}  // namespace

LauncherTraits traits() {
  LauncherTraits traits;
  traits.name = "pals";
  traits.rank_var = "PALS_RANKID";
  traits.local_rank_var = "PALS_LOCAL_RANKID";
  traits.binds_sets = true;
  traits.multi_node = true;
  traits.distribution = Distribution::fill;
  for (const char* name : {"PALS_CPU_BIND", "PALS_MEM_BIND", "PALS_PPN", "PALS_NRANKS",
                           "PALS_DEPTH", "PALS_HOSTFILE", "PALS_HOSTLIST"})
    traits.conflicting.push_back({name, "presets an option of mpiexec, which gets its own here"});
  return traits;
}

Result<Argv> render(const Plan& plan, const LauncherFacts& mpiexec, const std::string& shim) {
  const Status fits = check_layout(plan);
  if (!fits) return fits.error();
  if (!plan.output.log_dir.empty())
    return Error{ErrorKind::unsupported, "mpiexec of PALS cannot write a log file per rank",
                 "leave --log-dir out"};
  const std::vector<std::string> given = line::given_args(plan);
  Argv argv = {mpiexec.path};
  if (!line::gives_word(given, {"n", "np"}))
    argv.insert(argv.end(), {"--np", fmt::format("{}", plan.world_size())});
  if (!line::gives_word(given, {"ppn"}))
    argv.insert(argv.end(), {"--ppn", fmt::format("{}", plan.max_local_size())});
  if (!plan.whole_allocation &&
      !line::gives(given, {"--hosts", "--host", "--hostlist", "--hostfile", "-f"})) {
    const Result<std::string> hosts = line::host_list(
        plan, "use the job's nodes without a host file, or --launcher-arg=--hostfile=FILE");
    if (hosts)
      argv.insert(argv.end(), {"--hosts", *hosts});
    else if (!plan.hosts_file.empty())  // too many for one argument
      argv.insert(argv.end(), {"--hostfile", plan.hosts_file});
    else
      return hosts.error();
  }
  if (!line::gives(given, {"--cpu-bind"}) && plan.gpu_view != "launcher") {
    const std::string bind =
        line::launcher_binds(plan)
            ? "list:" + line::join_sets(plan, ":", [](const CpuSet& set) { return set.to_list(); })
            : "none";
    argv.insert(argv.end(), {"--cpu-bind", bind});
  }
  if (!line::gives(given, {"--envall", "--genvall", "--envnone", "--genvnone", "--envlist"}))
    argv.emplace_back("--envall");
  if (!line::gives(given, {"--abort-on-failure", "--no-abort-on-failure"}))
    argv.emplace_back("--abort-on-failure");
  argv.emplace_back("--line-buffer");
  if (plan.output.label) argv.emplace_back("--label");
  return line::finish(std::move(argv), plan, "--", shim);
}

}  // namespace hpclaunch::pals
