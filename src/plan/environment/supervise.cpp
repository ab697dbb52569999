// Whether hpclaunch supervises the ranks until they stop (docs/reference/supervise.md).
#include <fmt/format.h>

#include "hpclaunch/text.h"
#include "plan/environment/environment.h"
#include "plan/environment/settings.h"

namespace hpclaunch {

namespace {

// The option that cannot do without; "" for none.
std::string needed_by(const PlanInput& input, bool mps) {
  if (input.time_limit_signal.signal != 0) return "--signal";
  if (!input.request->output.log_dir.empty()) return "--log-dir";
  if (!input.request->output.shown_ranks.empty()) return "--local-ranks-filter";
  if (input.stages) return "--stage";
  if (input.request->max_restarts.value_or(0) > 0) return "--max-restarts";
  if (input.request->profile_start) return "--profile-start";
  if (input.request->output.stall_seconds) return "--stall";
  if (mps) return "--mps";
  return input.request->output.report.empty() ? "" : "--report";
}

constexpr const char* kLocal = "the local launcher always supervises its ranks";

Error cannot_leave(const PlanInput& input, const std::string& option) {
  if (input.launcher.built_in)
    return request_error(fmt::format("--no-supervise: {}", kLocal),
                         "omit it, or choose another launcher with --launcher NAME");
  return request_error(fmt::format("--no-supervise and {} exclude each other", option),
                       fmt::format("omit --no-supervise, or {}", option));
}

Setting supervise_choice(const PlanInput& input, const std::string& needed) {
  const auto chosen = [](bool yes, Layer layer, std::string why) {
    return choice("supervise", layer, yes ? "yes" : "no", std::move(why));
  };
  if (const std::optional<bool>& typed = input.request->supervise)
    return chosen(*typed, Layer::command_line, *typed ? "--supervise" : "--no-supervise");
  if (input.launcher.built_in) return chosen(true, Layer::builtin, kLocal);
  if (!needed.empty()) return chosen(true, Layer::computed, "required by " + needed);
  return chosen(true, Layer::builtin,
                "the first failure, its exact status, and time for the other ranks to end");
}

}  // namespace

Result<Made<Supervision>> decide_supervision(const PlanInput& input, bool mps) {
  const bool local = input.launcher.built_in;
  const std::string needed = needed_by(input, mps);
  const std::string& on_stall = input.request->output.on_stall;
  if (!on_stall.empty() && !input.request->output.stall_seconds)
    return request_error(fmt::format("--on-stall {} needs --stall", on_stall),
                         fmt::format("--stall auto --on-stall {}", on_stall));
  if (on_stall == "restart" && input.request->max_restarts.value_or(0) == 0)
    return request_error("--on-stall restart is of no use without restarts",
                         "--on-stall restart --max-restarts 1");
  if (input.request->supervise == false && (local || !needed.empty()))
    return cannot_leave(input, needed);
  Made<Supervision> made{{.verify = input.request->verify,
                          .output = input.request->output,
                          .mps = mps,
                          .time_limit_signal = input.time_limit_signal,
                          .termination = input.launcher.termination},
                         {{supervise_choice(input, needed)}}};
  auto& [supervision, said] = made;
  supervision.supervise = !local && said.choices.back().value() == Value("yes");
  if (supervision.supervise && supervision.termination.loses_output)
    supervision.termination.fails_fast = false;
  OutputOptions& output = supervision.output;
  if (local && output.end_seconds)
    said.reports.push_back({"end-timeout-local", Severity::warning,
                            "--end-timeout: the local launcher ends no ranks that stay",
                            "--launcher with an mpiexec or srun, which also serves one node"});
  output.log_dir = input.log_dir;
  if (std::string& typed = output.shown_ranks; !typed.empty()) {
    std::string list;  // Python's int() takes blanks
    for (const std::string_view part : split(typed, ','))
      list.append(part.data() == typed.data() ? "" : ",").append(trim(part));
    const Result<CpuSet> ranks = CpuSet::parse(list);
    if (!ranks || ranks->empty())
      return request_error(
          fmt::format("--local-ranks-filter \"{}\" is no list of local ranks", shown(typed)),
          "--local-ranks-filter 0 for the first rank of each node, or 0,2-3");
    typed = ranks->to_list();
  }
  if (const int signal = input.time_limit_signal.signal; signal != 0)
    said.choices.push_back(choice("signal", Layer::command_line, time_limit_signal_name(signal),
                                  input.time_limit_why));
  return made;
}

// A step of ours would wait for the resources of the step that this shell is in.
std::optional<Setting> step_choice(const PlanInput& input) {
  if (input.launcher.step_var.empty()) return std::nullopt;
  if (!input.beside.empty())
    return choice("beside", Layer::environment, input.beside,
                  fmt::format("it runs on the same nodes, and shares no core and no device: the "
                              "step of {} does not wait for its end",
                              input.launcher.name));
  if (!input.lost.empty())
    return choice("beside", Layer::computed, input.lost,
                  fmt::format("it was lost, and the step of {} before may not have ended on the "
                              "other nodes",
                              input.launcher.name));
  if (!input.launcher.inside_step(input.env)) return std::nullopt;
  return choice(
      "inside-step", Layer::environment, input.env.get(input.launcher.step_var),
      fmt::format("{} is set: this shell is a job step, and the ranks' step shares its nodes",
                  input.launcher.step_var));
}

}  // namespace hpclaunch
