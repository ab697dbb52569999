// The start of a prepared job, and of its attempts after a failure.
#include <fmt/format.h>

#include "hpclaunch/wire.h"
#include "job/stage.h"
#include "job/steps.h"

namespace hpclaunch::job {

namespace {

Result<sys::Ending> start_ranks(const Prepared& prepared) {
  const EnvSnapshot& env = prepared.env;
  if (prepared.plan.launcher == "local")
    return sys::run_local(prepared.plan, launch_environment(prepared.plan, env), prepared.shim);
  Plan plan = prepared.plan;
  if (std::string& logs = plan.output.log_dir;
      !logs.empty()) {  // not where those of earlier launches are
    Result<std::string> place = sys::claim_log_directory(logs, plan.world_size());
    if (!place) return place.error();
    logs = *std::move(place);
    const LauncherTraits& traits = prepared.launcher.launcher->traits;
    Result<std::string> wire = encode_wire(plan, {traits.rank_var, traits.local_rank_var});
    if (!wire) return wire.error();
    plan.wire = *std::move(wire);
  }
  const EnvSnapshot changed = launch_environment(plan, env);
  if (plan.supervise) return sys::run_supervised(plan, prepared.argv, changed);
  std::vector<int> keep;
  if (prepared.port_lock >= 0) keep.push_back(prepared.port_lock);
  return sys::exec(prepared.argv, changed, keep);
}

// The time limit is near, so that the allocation would end with the next attempt.
bool past_signal(const TimeLimitSignal& signal) {
  return signal.signal != 0 && signal.at != 0 &&
         sys::wall_clock() >= static_cast<double>(signal.at);
}

// Each attempt gets its own entry, also where the next one cannot be planned.
Result<sys::Ending> start_attempts(Prepared& prepared, const StageLines& lines,
                                   std::vector<Attempt>& attempts) {
  const int most =
      prepared.means == nullptr ? 0 : prepared.means->input.request.max_restarts.value_or(0);
  while (true) {
    Attempt attempt{prepared.argv, sys::wall_clock(), 0, {}};
    Result<sys::Ending> ending = start_ranks(prepared);
    if (!ending) return ending.error();
    attempt.ended = sys::wall_clock();
    attempt.ending = *ending;
    attempts.push_back(std::move(attempt));
    const std::size_t made = attempts.size();
    if (most == 0 || ending->status == 0) return ending;
    if (const std::string fault = same_fault(attempts); !fault.empty()) lines(fault, true);
    if (static_cast<int>(made) > most || !can_restart(*ending) ||
        past_signal(prepared.plan.time_limit_signal))
      return ending;
    if (const Status planned = plan_restart(prepared); !planned) {
      lines(fmt::format("no restart: {}", planned.error().message), true);
      return ending;
    }
    lines(fmt::format("restart {} of {}, after {}", made, most, failure_text(*ending)), true);
  }
}

}  // namespace

Result<sys::Ending> start(Prepared& prepared, const StageLines& lines,
                          std::vector<Attempt>& attempts) {
  const auto ranks = [&] { return start_attempts(prepared, lines, attempts); };
  return prepared.stage.method.empty() ? ranks() : staged(prepared, lines, ranks);
}

}  // namespace hpclaunch::job
