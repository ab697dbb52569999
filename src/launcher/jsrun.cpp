// IBM's jsrun (JSM, in LSF jobs).
//
// Source: OLCF's user guide for Summit (jsrun options, resource sets), IBM's page on jsrun, and job
// scripts of its users for -X and --stdio_mode. The program has not been run.
// -n N -r 1 -a P             one resource set on each of N nodes, with P ranks in it.
// -c ALL_CPUS -g ALL_GPUS    the set is the whole node, so that the shim may bind and deal devices.
// -b none                    and jsrun does not bind inside it.
// -d packed                  ranks are numbered set by set.
// -X 1                       ends all ranks when one fails.
// It takes the job's nodes in their order and no list of hosts; only a resource file (-U) names some.
// A rank sees JSM_NAMESPACE_RANK and JSM_NAMESPACE_LOCAL_RANK. The environment is inherited whole.
#include <fmt/format.h>

#include "launcher/line.h"
#include "launcher/rows.h"

namespace hpclaunch::jsrun {

namespace {

Status check_layout(const Plan& plan) {
  const std::vector<line::Stretch> layout = line::stretches(plan);
  if (layout.size() > 1)
    return Error{ErrorKind::unsupported,
                 fmt::format("jsrun gives every node the same number of ranks, it cannot start {}",
                             line::in_words(layout)),
                 line::even_counts(plan)};
  if (!plan.whole_allocation)
    return Error{ErrorKind::unsupported,
                 "jsrun takes nodes of the job in its own order, it cannot be told which ones",
                 "use all nodes of the job and no host file; or describe the ranks in a resource "
                 "file and pass --launcher-arg=-U --launcher-arg=FILE"};
  return Done{};
}

}  // namespace

LauncherTraits traits() {
  LauncherTraits traits;
  traits.name = "jsrun";
  traits.rank_var = "JSM_NAMESPACE_RANK";
  traits.local_rank_var = "JSM_NAMESPACE_LOCAL_RANK";
  traits.multi_node = true;
  return traits;
}

Result<Argv> render(const Plan& plan, const LauncherFacts& jsrun, const std::string& shim) {
  if (const Status logs = line::refuse_log_dir(
          plan, "jsrun", "--launcher-arg=--stdio_mode --launcher-arg=individual");
      !logs)
    return logs.error();
  const std::vector<std::string> given = line::given_args(plan);
  Argv argv = {jsrun.path};
  const auto add = [&](std::string_view flag, std::string value, std::string_view word) {
    if (!line::gives(given, {flag, word}))
      argv.insert(argv.end(), {std::string(flag), std::move(value)});
  };
  if (!line::gives(given, {"-U", "--erf_input"})) {
    if (const Status fits = check_layout(plan); !fits) return fits.error();
    add("-n", fmt::format("{}", plan.nodes()), "--nrs");
    add("-r", "1", "--rs_per_host");
    add("-a", fmt::format("{}", plan.max_local_size()), "--tasks_per_rs");
    add("-c", "ALL_CPUS", "--cpu_per_rs");
    if (!plan.gpu_view.empty()) add("-g", "ALL_GPUS", "--gpu_per_rs");
    add("-b", "none", "--bind");
    add("-d", "packed", "--launch_distribution");
  }
  add("-X", "1", "--exit_on_error");
  if (plan.output.label && !line::gives(given, {"--stdio_mode"}))
    argv.insert(argv.end(), {"--stdio_mode", "prepended"});
  return line::finish(std::move(argv), plan, "", shim);
}

}  // namespace hpclaunch::jsrun
