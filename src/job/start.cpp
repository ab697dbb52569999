// The start of a prepared job.
#include "hpclaunch/wire.h"
#include "job/container.h"
#include "job/stage.h"
#include "job/steps.h"

namespace hpclaunch::job {

namespace {

Result<sys::Ending> start_ranks(const Prepared& prepared) {
  const EnvSnapshot& env = prepared.env;
  if (prepared.plan.launcher == "local") {
    const Entered entered = enter(prepared, prepared.plan);
    return sys::run_local(entered.plan, launch_environment(prepared.plan, env), entered.first);
  }
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

}  // namespace

Result<sys::Ending> start(const Prepared& prepared, const StageLines& lines) {
  if (prepared.stage.method.empty()) return start_ranks(prepared);
  return staged(prepared, lines, [&] { return start_ranks(prepared); });
}

}  // namespace hpclaunch::job
