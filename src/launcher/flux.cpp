// Flux's `flux run`.
//
// Source: flux-core src/shell/affinity.c and gpubind.c, doc/man1/flux-run.rst, doc/man7/flux-shell-options.rst,
// and runs of 0.88.0.
// -N nodes -n tasks          dealt evenly, the first nodes get more; in blocks.
// -x                         whole nodes: without it a task gets one core.
// --requires=host:a,b        a set; Flux keeps its own order.
// -o cpu-affinity=map:S;S    one set per local task, OS indices; passed to execve, so ';' needs no quotes.
//                            A set outside the node is dropped with a warning at most: the shim compares.
// -o gpu-affinity=off        otherwise CUDA_VISIBLE_DEVICES is set, to -1 where no GPU was asked for.
// -o exit-timeout=none -o exit-on-error   end all when one fails; without them 30 s after the first one
//                            has ended, also when it ended well.
// A rank sees FLUX_TASK_RANK and FLUX_TASK_LOCAL_ID. The environment is inherited whole.
#include <fmt/format.h>

#include "launcher/line.h"
#include "launcher/rows.h"

namespace hpclaunch::flux {

LauncherTraits traits() {
  LauncherTraits traits;
  traits.name = "flux";
  traits.rank_var = "FLUX_TASK_RANK";
  traits.local_rank_var = "FLUX_TASK_LOCAL_ID";
  traits.binds_sets = true;
  traits.multi_node = true;
  // Runs of 0.88: a job belongs to the instance; two INT within 2 s cancel it.
  traits.termination.steps = {{kInt, 500}, {kInt, 10'000}, {kKill, 10'000}};
  traits.termination.sent = {{kHup, kTerm}, {kInt, kTerm}, {kQuit, kTerm}, {kTerm, kTerm}};
  traits.distribution = Distribution::even;
  return traits;
}

Result<Argv> render(const Plan& plan, const LauncherFacts& flux, const std::string& shim) {
  const Status fits = line::check_spread(plan, "flux run");
  if (!fits) return fits.error();
  if (!plan.output.log_dir.empty())
    return Error{ErrorKind::unsupported,
                 "flux run cannot write a log file per rank and keep the output",
                 "leave --log-dir out"};
  const std::vector<std::string> given = line::given_args(plan);
  Argv argv = {flux.path, "run"};
  if (!line::gives(given, {"--nodes", "-N"}))
    argv.insert(argv.end(), {"-N", fmt::format("{}", plan.nodes())});
  if (!line::gives(given, {"--ntasks", "-n"}))
    argv.insert(argv.end(), {"-n", fmt::format("{}", plan.world_size())});
  if (!line::gives(given, {"--exclusive", "-x"})) argv.emplace_back("-x");
  if (!plan.whole_allocation && !line::gives(given, {"--requires"})) {
    const Result<std::string> hosts =
        line::host_list(plan, "use the job's nodes without a host file");
    if (!hosts) return hosts.error();
    argv.push_back("--requires=host:" + *hosts);
  }
  const auto add = [&](std::string_view key, std::string_view value) {
    if (line::gives_key(given, "-o", "--setopt", key)) return;
    argv.insert(argv.end(),
                {"-o", value.empty() ? std::string(key) : fmt::format("{}={}", key, value)});
  };
  if (plan.gpu_view != "launcher") {
    add("cpu-affinity",
        line::launcher_binds(plan)
            ? "map:" + line::join_sets(plan, ";", [](const CpuSet& set) { return set.to_list(); })
            : "off");
    add("gpu-affinity", "off");
  }
  add("exit-timeout", "none");
  add("exit-on-error", "");
  if (plan.output.label && !line::gives(given, {"--label-io", "-l"}))
    argv.emplace_back("--label-io");
  return line::finish(std::move(argv), plan, "", shim);
}

}  // namespace hpclaunch::flux
