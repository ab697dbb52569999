// Who stays beside the ranks until they have ended (docs/reference/supervise.md).
#include <fmt/format.h>

#include <utility>

#include "plan/environment/environment.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

// The option that cannot do without; "" for none.
std::string needed_by(const PlanInput& input) {
  if (input.time_limit_signal.signal != 0) return "--signal";
  return input.options.output.report.empty() ? "" : "--report";
}

Error cannot_leave(const PlanInput& input) {
  if (input.launcher.name == "local")
    return Error{ErrorKind::usage, "--no-supervise: the local launcher always stays with its ranks",
                 "leave it out, or choose another launcher with --launcher NAME", kCommandLine};
  const std::string option = needed_by(input);
  return Error{ErrorKind::usage,
               fmt::format("--no-supervise and {}: {} needs hpclaunch to stay", option, option),
               fmt::format("leave out --no-supervise, or {}", option), kCommandLine};
}

void add_choice(const PlanInput& input, Plan& plan) {
  const std::string needed = needed_by(input);
  const std::string& launcher = input.launcher.name;
  Layer layer = Layer::builtin;
  std::string why;
  if (input.options.supervise) {
    layer = Layer::command_line;
    why = *input.options.supervise ? "--supervise" : "--no-supervise";
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
  } else {
    why = fmt::format("{} ends all ranks when one fails", launcher);
  }
  const bool stays = plan.supervise || launcher == "local";
  plan.choices.push_back(choice("supervise", layer, stays ? "yes" : "no",
                                layer == Layer::command_line ? kCommandLine : kRule,
                                std::move(why)));
}

}  // namespace

Status decide_supervise(const PlanInput& input, Plan& plan) {
  const bool local = input.launcher.name == "local";
  const bool needed = !needed_by(input).empty();
  if (input.options.supervise == false && (local || needed)) return cannot_leave(input);
  plan.supervise =
      !local && input.options.supervise.value_or(needed || !input.launcher.termination.fails_fast);
  plan.time_limit_signal = input.time_limit_signal;
  add_choice(input, plan);
  if (plan.time_limit_signal.signal != 0)
    plan.choices.push_back(choice("signal", Layer::command_line,
                                  time_limit_signal_name(plan.time_limit_signal.signal),
                                  kCommandLine, input.time_limit_why));
  return Done{};
}

}  // namespace hpclaunch
