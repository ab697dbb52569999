// IBM's jsrun (JSM, in LSF jobs).
//
// Source: OLCF's user guide for Summit (jsrun options, resource sets), IBM's page on jsrun, and job
// scripts of its users for -X and --stdio_mode. The program has not been run.
// -n N -r 1 -a P             one resource set on each of N nodes, with P ranks in it.
// -c ALL_CPUS -g ALL_GPUS    the set is the whole node, so that the shim binds and assigns devices.
// -b none                    and jsrun does not bind inside it.
// -d packed                  ranks are numbered set by set.
// -X 1                       ends all ranks when one fails.
// It takes the job's nodes in their order and no list of hosts; only a resource file (-U) names some.
// A rank sees JSM_NAMESPACE_RANK and JSM_NAMESPACE_LOCAL_RANK. The environment is inherited whole.
#include <fmt/format.h>

#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

constexpr std::string_view kGrammar = "jsrun";

Status check_layout(const Plan& plan) {
  const std::vector<Stretch> layout = stretches(plan);
  if (layout.size() > 1)
    return Error{ErrorKind::unsupported,
                 fmt::format("jsrun starts the same number of ranks on every node, not {}",
                             in_words(layout)),
                 even_counts(plan)};
  if (!plan.hosts.whole_allocation)
    return Error{ErrorKind::unsupported,
                 "jsrun uses the nodes of the job in its own order and takes no list of hosts",
                 "use all nodes of the job and no host file; or describe the ranks in a resource "
                 "file and pass --launcher-arg=-U --launcher-arg=FILE"};
  return Done{};
}

Result<Argv> render(const Plan& plan, const LauncherFacts& program, const std::string& shim) {
  Line line(plan, {program.path}, kGrammar);
  if (!line.given({"-U", "--erf_input"})) {
    line.require(check_layout(plan));
    line.add({"-n", fmt::format("{}", plan.nodes())}, {"-n", "--nrs"});
    line.add({"-r", "1"}, {"-r", "--rs_per_host"});
    line.add({"-a", fmt::format("{}", plan.max_local_size())}, {"-a", "--tasks_per_rs"});
    line.add({"-c", "ALL_CPUS"}, {"-c", "--cpu_per_rs"});
    if (!plan.placement.gpu_view.empty()) line.add({"-g", "ALL_GPUS"}, {"-g", "--gpu_per_rs"});
    line.add({"-b", "none"}, {"-b", "--bind"});
    line.add({"-d", "packed"}, {"-d", "--launch_distribution"});
  }
  line.add({"-X", "1"}, {"-X", "--exit_on_error"});
  if (plan.supervision.output.label) line.add({"--stdio_mode", "prepended"}, {"--stdio_mode"});
  return line.finish(shim);
}

}  // namespace

// JSM's programs have a folder of their own; what jsrun prints is not documented.
Launcher jsrun = {.name = "jsrun",
                  .programs = {"jsrun"},
                  .recognition = {.folder = "/jsm_pmix/",
                                  .texts = {{"jsrun", "", true}},
                                  .name_parts = {"jsrun"}},
                  .rank_variables = "JSM_NAMESPACE_*",
                  .place = {{Identity::rank, "JSM_NAMESPACE_RANK"},
                            {Identity::ranks, "JSM_NAMESPACE_SIZE"},
                            {Identity::local_rank, "JSM_NAMESPACE_LOCAL_RANK"},
                            {Identity::local_size, "JSM_NAMESPACE_LOCAL_SIZE"}},
                  .mpi = "openmpi",
                  .rereads = {":"},
                  .traits = {.rank_var = "JSM_NAMESPACE_RANK",
                             .local_rank_var = "JSM_NAMESPACE_LOCAL_RANK",
                             .multi_node = true,
                             .termination = {.queues = true}},
                  .grammar = kGrammar,
                  .render = render};

}  // namespace hpclaunch::launcher
