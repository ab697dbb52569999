// The launcher inside hpclaunch, for one node (docs/reference/local-launcher.md). Its command line is a hidden
// command of hpclaunch, which a dry run prints; `run` calls the same function directly.
// src/sys/local starts the ranks and sets HPCLAUNCH_LOCAL_RANK for each.
#include <fmt/format.h>

#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

Result<Argv> render(const Plan& plan, const LauncherFacts& self, const std::string& shim) {
  if (!plan.launch.launcher_args.empty())
    return Error{ErrorKind::usage, "--launcher-arg: the local launcher takes no arguments",
                 "omit it, or choose another launcher with --launcher NAME"};
  const auto [first, ranks] = plan.own_ranks();
  Argv argv = {self.path, "launch-local", "--ranks", fmt::format("{}", ranks)};
  if (plan.hosts.own >= 0)
    argv.insert(argv.end(), {"--first-rank", fmt::format("{}", first), "--of",
                             fmt::format("{}", plan.world_size())});
  const OutputOptions& output = plan.supervision.output;
  if (output.label) argv.push_back("--label");
  if (!output.shown_ranks.empty())
    argv.insert(argv.end(), {"--local-ranks-filter", output.shown_ranks});
  if (!output.log_dir.empty()) argv.insert(argv.end(), {"--log-dir", output.log_dir});
  if (const TimeLimitSignal& one = plan.supervision.time_limit_signal; one.signal != 0)
    argv.insert(argv.end(),
                {"--notice", fmt::format("{}@{}", time_limit_signal_name(one.signal), one.at)});
  argv.insert(argv.end(), {"--grace", fmt::format("{}", output.grace_seconds), "--", shim});
  argv.insert(argv.end(), plan.launch.command.begin(), plan.launch.command.end());
  return argv;
}

}  // namespace

Launcher local = {
    .name = "local",
    .rank_mark = "HPCLAUNCH_LOCAL_RANK",
    // Of launchers that hpclaunch never starts: MVAPICH2's and Horovod's.
    .rank_variables =
        "MV2_COMM_WORLD_* HOROVOD_RANK HOROVOD_SIZE HOROVOD_LOCAL_RANK "
        "HOROVOD_LOCAL_SIZE HOROVOD_CROSS_RANK HOROVOD_CROSS_SIZE",
    .place = {{Identity::rank, "PMI_RANK MV2_COMM_WORLD_RANK"},
              {Identity::ranks, "PMI_SIZE MV2_COMM_WORLD_SIZE"},
              {Identity::local_rank, "PMI_LOCAL_RANK MV2_COMM_WORLD_LOCAL_RANK"},
              {Identity::local_size, "PMI_LOCAL_SIZE MV2_COMM_WORLD_LOCAL_SIZE"}},
    .traits = {.rank_var = "HPCLAUNCH_LOCAL_RANK",  // one node: the global rank is the local one
               .local_rank_var = "HPCLAUNCH_LOCAL_RANK",
               .built_in = true},
    .render = render};

}  // namespace hpclaunch::launcher
