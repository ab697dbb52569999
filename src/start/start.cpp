// The start of a prepared job, and of its attempts after a failure.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <system_error>

#include "hpclaunch/events.h"
#include "hpclaunch/wire.h"
#include "start/stage.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

constexpr int kSignalled = 128;
constexpr std::string_view kStallFolder = "/tmp/hpclaunch-stall-";  // of --stall; scratch.h too
constexpr int kMpsSeconds = 60;  // for a daemon to be ready, and for all of them to end

std::vector<std::string> mps_command(const std::vector<std::string>& action) {
  std::vector<std::string> words = {"/bin/sh", "-c", "eval \"$1\"", "hpclaunch-mps", kMpsSteps};
  words.insert(words.end(), action.begin(), action.end());
  return words;
}

// At once, also where the end of a step has killed daemon and keeper, and left their directory.
void stop_mps(const Prepared& prepared, const StageLines& lines) {
  const Result<NodeStep> step = node_step(prepared, mps_command({"stop"}));
  const auto show = [&](std::string_view line, double) { lines(line, true); };
  const Result<sys::Ended> ended =
      step ? sys::listen_to(step->argv, step->env, kMpsSeconds, 5, show) : step.error();
  if (!ended || ended->status != 0)
    lines("--mps: daemons may still run on some nodes: nvidia-cuda-mps-control", true);
}

Result<sys::Ending> start_ranks(const Prepared& prepared, const Unfinished& unfinished) {
  const EnvSnapshot& env = prepared.env;
  const bool built_in = prepared.launcher.launcher->traits.built_in;
  const sys::Asking asking = asking_of(prepared, unfinished);
  // No copy of the plan: each page of it would be copied once more after the fork.
  if (built_in && prepared.container.engine == nullptr && !prepared.plan.supervision.mps)
    return sys::run_local(prepared.plan, launch_environment(prepared.plan, env), prepared.shim,
                          asking);
  Plan plan = prepared.plan;
  Argv line = prepared.argv;
  if (plan.supervision.mps) {
    const int most = plan.supervision.output.start_seconds.value_or(0);
    const auto limit = fmt::format("{}", most > 0 ? std::min(most, kMpsSeconds) : kMpsSeconds);
    const std::vector<std::string> before = mps_command({"rank", limit});
    plan.launch.command.insert(plan.launch.command.begin(), before.begin(), before.end());
    Result<Argv> rendered = launch_line(prepared.container, prepared.launcher, prepared.shim, plan);
    if (!rendered) return rendered.error();
    line = *std::move(rendered);
  }
  if (built_in) {
    const Entered entered = enter(prepared.container, prepared.shim, plan);
    return sys::run_local(entered.plan, launch_environment(plan, env), entered.first, asking);
  }
  if (std::string& logs = plan.supervision.output.log_dir;
      !logs.empty()) {  // not where those of earlier launches are
    Result<std::string> place = sys::claim_log_directory(logs, plan.world_size());
    if (!place) return place.error();
    logs = *std::move(place);
    const LauncherTraits& traits = prepared.launcher.launcher->traits;
    Result<std::string> wire =
        encode_wire(plan, {traits.rank_var, traits.local_rank_var, !traits.built_in});
    if (!wire) return wire.error();
    plan.environment.wire = *std::move(wire);
  }
  const EnvSnapshot changed = launch_environment(plan, env);
  if (plan.supervision.supervise)
    return sys::run_supervised(plan, line, changed, channel_place(plan, changed), asking);
  std::vector<int> keep;
  for (const int lock : {prepared.port_lock, prepared.launch_lock})
    if (lock >= 0) keep.push_back(lock);
  return sys::exec(line, changed, keep);
}

Result<sys::Ending> start_at(const Prepared& prepared, const StageLines& lines,
                             const Unfinished& unfinished) {
  const double now = sys::wall_clock();
  if (const int signal = sys::held_signal(); signal != 0) {
    lines(fmt::format("not started: {}", sys::signal_name(signal)), true);
    sys::Ending none;
    none.status = kSignalled + signal;
    none.started = now;
    none.passed_on = signal;
    return none;
  }
  Result<sys::Ending> ending = start_ranks(prepared, unfinished);
  if (ending) ending->started = now;
  if (ending && prepared.plan.supervision.mps) stop_mps(prepared, lines);
  for (const std::string& folder : prepared.plan.environment.make_dirs)  // elsewhere the monitors
    if (std::error_code ignored; folder.starts_with(kStallFolder))
      std::filesystem::remove_all(folder, ignored);
  return ending;
}

// The time limit is near, so that the allocation would end with the next attempt.
bool past_signal(const TimeLimitSignal& signal) {
  return signal.signal != 0 && signal.at != 0 &&
         sys::wall_clock() >= static_cast<double>(signal.at);
}

// The batch system may end us at once.
void requeue(std::vector<std::string> command, const std::string& path, const StageLines& lines) {
  constexpr double kSeconds = 30;
  lines(fmt::format("at the job's time limit: {}", fmt::join(command, " ")), true);
  Result<std::string> program = sys::find_program(command.front(), path);
  if (program) command.front() = *program;
  const Result<sys::Captured> done =
      program ? sys::capture(command, kSeconds) : Result<sys::Captured>(program.error());
  if (!done || done->status != 0)
    lines(fmt::format("not requeued: {}", done ? done->complaint() : done.error().message), true);
}

// Each attempt gets its own entry, also where the next one cannot be planned.
Result<sys::Ending> start_attempts(const Prepared& first, const StageLines& lines,
                                   std::vector<Attempt>& attempts, const Unfinished& unfinished) {
  const int most = first.max_restarts;
  std::optional<Prepared> again;
  while (true) {
    const Prepared& prepared = again ? *again : first;
    Result<sys::Ending> ending = start_at(prepared, lines, unfinished);
    if (!ending) return ending.error();
    attempts.push_back({prepared.argv, *ending, sys::wall_clock(), prepared.plan.hosts.names,
                        prepared.plan.world_size()});
    const std::size_t made = attempts.size();
    if (most == 0 || ending->status == 0) return ending;
    if (const std::string fault = same_fault(attempts); !fault.empty()) lines(fault, true);
    if (ending->stalled && prepared.plan.supervision.output.on_stall != "restart") return ending;
    if (static_cast<int>(made) > most || !can_restart(*ending) ||
        past_signal(prepared.plan.supervision.time_limit_signal) || sys::held_signal() != 0)
      return ending;
    const std::vector<int> lost = lost_nodes(*ending);
    Result<Prepared> next = plan_restart(prepared, static_cast<int>(made), lost);
    if (!next) {
      lines(fmt::format("no restart: {}", next.error().message), true);
      if (!next.error().hint.empty()) lines("try: " + next.error().hint, true);
      return ending;
    }
    for (const int node : lost) lines(replacement_text(prepared.plan, next->plan, node), true);
    again = *std::move(next);
    lines(fmt::format("restart {} of {}, after {}", made, most, failure_text(*ending)), true);
  }
}

}  // namespace

Result<NodeStep> node_step(const Prepared& prepared, std::vector<std::string> command) {
  constexpr double kGraceSeconds = 5;
  Plan plan = one_rank_per_node(prepared.plan);
  plan.supervision.verify = Verify::off;
  plan.supervision.output = OutputOptions{false, "", kGraceSeconds};
  plan.supervision.supervise = false;
  plan.supervision.time_limit_signal = {};
  plan.launch.command = quoted_command(*prepared.launcher.launcher, std::move(command));
  const LauncherTraits& traits = prepared.launcher.launcher->traits;
  Result<std::string> wire =
      encode_wire(plan, {traits.rank_var, traits.local_rank_var, !traits.built_in});
  if (!wire) return wire.error();
  plan.environment.wire = *std::move(wire);
  Result<Argv> argv =
      prepared.launcher.launcher->render(plan, prepared.launcher.facts, prepared.shim);
  if (!argv) return argv.error();
  return NodeStep{*std::move(argv), launch_environment(plan, prepared.env)};
}

Result<sys::Ending> start(const Prepared& prepared, const StageLines& lines,
                          std::vector<Attempt>& attempts, const Unfinished& unfinished) {
  if (const Status head = wait_for_head(prepared, lines); !head) return head.error();
  const auto ranks = [&] { return start_attempts(prepared, lines, attempts, unfinished); };
  Result<sys::Ending> ending =
      prepared.stage.method.empty() ? ranks() : staged(prepared, lines, ranks);
  const bool limit =
      ending && (ending->time_limit || past_signal(prepared.plan.supervision.time_limit_signal));
  if (limit && !prepared.requeue.empty())
    requeue(prepared.requeue, prepared.env.get("PATH"), lines);
  return ending;
}

}  // namespace hpclaunch::job
