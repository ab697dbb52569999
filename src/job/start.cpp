// The start of a prepared job.
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

Result<sys::Ending> start_at(const Prepared& prepared) {
  const double now = sys::wall_clock();
  Result<sys::Ending> ending = start_ranks(prepared);
  if (ending) ending->started = now;
  return ending;
}

}  // namespace

Result<NodeStep> node_step(const Prepared& prepared, std::vector<std::string> command) {
  constexpr double kGraceSeconds = 5;
  Plan plan = one_rank_per_node(prepared.plan);
  plan.verify = Verify::off;
  plan.output = OutputOptions{false, "", kGraceSeconds};
  plan.supervise = false;
  plan.time_limit_signal = {};
  plan.command = std::move(command);
  const LauncherTraits& traits = prepared.launcher.launcher->traits;
  Result<std::string> wire = encode_wire(plan, {traits.rank_var, traits.local_rank_var});
  if (!wire) return wire.error();
  plan.wire = *std::move(wire);
  Result<Argv> argv =
      prepared.launcher.launcher->render(plan, prepared.launcher.facts, prepared.shim);
  if (!argv) return argv.error();
  return NodeStep{*std::move(argv), launch_environment(plan, prepared.env)};
}

Result<sys::Ending> start(const Prepared& prepared, const StageLines& lines) {
  if (prepared.stage.method.empty()) return start_at(prepared);
  return staged(prepared, lines, [&] { return start_at(prepared); });
}

}  // namespace hpclaunch::job
