// Whether hpclaunch supervises the ranks until they stop (docs/reference/supervise.md).
#include <fmt/format.h>

#include <utility>

#include "hpclaunch/text.h"
#include "plan/environment/environment.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

// The option that cannot do without; "" for none.
std::string needed_by(const PlanInput& input) {
  if (input.time_limit_signal.signal != 0) return "--signal";
  if (!input.request.output.log_dir.empty()) return "--log-dir";
  return input.request.output.report.empty() ? "" : "--report";
}

Error cannot_leave(const PlanInput& input) {
  if (input.launcher.name == "local")
    return request_error("--no-supervise: the local launcher always stays with its ranks",
                         "leave it out, or choose another launcher with --launcher NAME");
  const std::string option = needed_by(input);
  return request_error(
      fmt::format("--no-supervise and {}: {} needs hpclaunch to stay", option, option),
      fmt::format("leave out --no-supervise, or {}", option));
}

void add_choice(const PlanInput& input, Plan& plan) {
  const std::string needed = needed_by(input);
  const std::string& launcher = input.launcher.name;
  Layer layer = Layer::builtin;
  std::string why;
  if (input.request.supervise) {
    layer = Layer::command_line;
    why = *input.request.supervise ? "--supervise" : "--no-supervise";
  } else if (launcher == "local") {
    why = "the local launcher always stays with its ranks";
  } else if (!needed.empty()) {
    layer = Layer::computed;
    why = needed + " needs it";
  } else if (!input.launcher.termination.fails_fast) {
    why = fmt::format(
        "{} continues when a rank that is no MPI program fails, and its exit status is not "
        "the rank's",
        launcher);
  } else if (input.launcher.errors_elsewhere) {
    why = "an argument for the launcher redirects standard error, and with it how ranks exit";
  } else if (input.launcher.termination.hides_status) {
    why = fmt::format("the exit status of {} may be that of a rank that it stopped", launcher);
  } else {
    why = fmt::format("{} ends all ranks when one fails, with that rank's status", launcher);
  }
  const bool stays = plan.supervise || launcher == "local";
  plan.choices.push_back(choice("supervise", layer, stays ? "yes" : "no", std::move(why)));
}

}  // namespace

Status decide_supervise(const PlanInput& input, Plan& plan) {
  const bool local = input.launcher.name == "local";
  const bool needed = !needed_by(input).empty();
  if (input.request.supervise == false && (local || needed)) return cannot_leave(input);
  const bool hidden = input.launcher.termination.hides_status && !input.launcher.errors_elsewhere;
  plan.supervise = !local && input.request.supervise.value_or(
                                 needed || hidden || !input.launcher.termination.fails_fast);
  // Where no record arrives, every node would seem not to start.
  if (input.launcher.errors_elsewhere && !plan.output.start_seconds) plan.output.start_seconds = 0;
  plan.time_limit_signal = input.time_limit_signal;
  add_choice(input, plan);
  if (plan.time_limit_signal.signal != 0)
    plan.choices.push_back(choice("signal", Layer::command_line,
                                  time_limit_signal_name(plan.time_limit_signal.signal),
                                  input.time_limit_why));
  return Done{};
}

// A shell that is itself in a step holds the resources that a step of ours would wait for.
// Source: slurm src/common/slurm_protocol_defs.h: numbers from 0xfffffff0 are no ordinary steps.
void note_step(const PlanInput& input, Plan& plan) {
  constexpr long kReserved = 0xfffffff0;
  if (input.launcher.step_var.empty()) return;
  const std::string step = input.env.get(input.launcher.step_var);
  const std::optional<long> number = parse_natural(step, kReserved - 1);
  if (!number) return;
  plan.inside_step = true;
  plan.choices.push_back(
      choice("inside-step", Layer::environment, step,
             fmt::format("{} is set: this shell is a step of the job and holds its nodes, so the "
                         "ranks' step has to share them",
                         input.launcher.step_var)));
}

}  // namespace hpclaunch
