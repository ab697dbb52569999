// Flux's `flux run`.
//
// Source: flux-core src/shell/affinity.c and gpubind.c, doc/man1/flux-run.rst, doc/man7/flux-shell-options.rst,
// and runs of 0.88.0.
// -N nodes -n tasks          distributed evenly, the first nodes get more; in blocks. At most one task for each core:
//                            "error distributing 384 tasks over R".
// --tasks-per-node=P         in place of -n, for any number of tasks.
// -x                         whole nodes: without it a task gets one core.
// --requires=host:a,b        a set; Flux keeps its own order.
// --taskmap=manual:[[first node, nodes, tasks on each, repeat], ...]
//                            blocks of tasks on the job's nodes in that order (RFC 34), any number on each since 0.75.
// -o cpu-affinity=map:S;S    one set per local task, OS indices; passed to execve, so ';' needs no quotes.
//                            A set outside the node is dropped with a warning at most: the shim compares.
// -o gpu-affinity=off        otherwise CUDA_VISIBLE_DEVICES is set, to -1 where no GPU was asked for.
// -o exit-timeout=none -o exit-on-error   end all when one fails; without them 30 s after the first one
//                            has ended, also when it ended well.
// A rank sees FLUX_TASK_RANK and FLUX_TASK_LOCAL_ID. The environment is inherited whole.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hpclaunch/text.h"
#include "launcher/line.h"

namespace hpclaunch::launcher {

namespace {

constexpr std::string_view kGrammar = "flux run";

// "manual:[[1,1,4,1],[0,1,2,1]]"; "" where Flux by itself does the same.
std::string task_map(const Plan& plan) {
  const std::vector<int> places = places_of(plan);
  if (places.empty() && is_even(plan)) return "";
  struct Block {
    int first, nodes, tasks;
  };
  std::vector<Block> blocks;
  std::size_t host = 0;
  for (const Stretch& part : stretches(plan))
    for (int n = 0; n < part.nodes; ++n, ++host) {
      const int place = places.empty() ? static_cast<int>(host) : places[host];
      if (Block* last = blocks.empty() ? nullptr : &blocks.back();
          last != nullptr && last->tasks == part.ranks && last->first + last->nodes == place)
        ++last->nodes;
      else
        blocks.push_back({place, 1, part.ranks});
    }
  std::vector<std::string> texts;
  texts.reserve(blocks.size());
  for (const Block& one : blocks)
    texts.push_back(fmt::format("[{},{},{},1]", one.first, one.nodes, one.tasks));
  return fmt::format("manual:[{}]", fmt::join(texts, ","));
}

// More tasks than cores can be asked for by node only.
void add_counts(const Plan& plan, Line& line) {
  const int ranks = plan.world_size();
  line.add({"-N", fmt::format("{}", plan.nodes())}, {"--nodes", "-N"});
  if (plan.placement.cores == 0 || ranks <= plan.placement.cores)
    return line.add({"-n", fmt::format("{}", ranks)}, {"--ntasks", "-n"});
  if (ranks % plan.nodes() != 0)
    line.require(
        Error{ErrorKind::unsupported,
              fmt::format("flux run takes {} on {} only as the same number on each node: they are "
                          "more than the {} of these",
                          counted(ranks, "rank"), counted(plan.nodes(), "node"),
                          counted(plan.placement.cores, "core")),
              even_counts(plan)});
  line.add({fmt::format("--tasks-per-node={}", ranks / plan.nodes())}, {"--tasks-per-node"});
}

Result<Argv> render(const Plan& plan, const LauncherFacts& program, const std::string& shim) {
  Line line(plan, {program.path, "run"}, kGrammar);
  constexpr std::string_view kUnevenMaps = "0.75";  // the first version with them
  if (compare_versions(program.version, kUnevenMaps).value_or(0) < 0)
    line.require(check_even(plan, "flux run before 0.75"));
  add_counts(plan, line);
  line.add({"-x"}, {"--exclusive", "-x"});
  if (!plan.hosts.whole_allocation && !line.given({"--requires"}))
    line.add_hosts({.list = "--requires=host:",
                    .hint = "use the job's nodes without a host file",
                    .with_counts = false},
                   host_list(plan));
  if (const std::string map = task_map(plan); !map.empty())
    line.add({"--taskmap=" + map}, {"--taskmap"});
  const auto add = [&](std::string_view key, std::string_view value) {
    if (!line.given({"-o", "--setopt"}, key))
      line.add({"-o", value.empty() ? std::string(key) : fmt::format("{}={}", key, value)});
  };
  if (plan.placement.gpu_view != "launcher") {
    add("cpu-affinity", launcher_binds(plan) ? "map:" + join_sets(plan, ";", cpu_list) : "off");
    add("gpu-affinity", "off");
  }
  add("exit-timeout", "none");
  // It ends the shell that holds the last 0.5 s of output, the failed rank's traceback among it; hpclaunch loses nothing.
  if (!plan.supervision.supervise) {
    add("exit-on-error", "");
    add("output.batch-timeout", "0");
  }
  if (plan.supervision.output.label) line.add({"--label-io"}, {"--label-io", "-l"});
  return line.finish(shim);
}

}  // namespace

Launcher flux = {
    .name = "flux",
    .programs = {"flux"},
    .recognition = {.texts = {{"libflux-core:", "libflux-core:"}}, .name_parts = {"flux"}},
    .rank_mark = "FLUX_TASK_RANK",
    .rank_variables = "FLUX_TASK_RANK FLUX_TASK_LOCAL_ID FLUX_JOB_SIZE FLUX_JOB_NNODES",
    .place = {{Identity::rank, "FLUX_TASK_RANK"},
              {Identity::ranks, "FLUX_JOB_SIZE"},
              {Identity::nodes, "FLUX_JOB_NNODES"},
              {Identity::local_rank, "FLUX_TASK_LOCAL_ID"}},
    .mpi = "mpich openmpi",
    .traits = {.rank_var = "FLUX_TASK_RANK",
               .local_rank_var = "FLUX_TASK_LOCAL_ID",
               .binds_sets = true,
               .multi_node = true,
               .distribution = Distribution::even,
               // Runs of 0.88: a job belongs to the instance; two INT within 2 s cancel it.
               .termination = {.loses_output = true,
                               .queues = true,
                               .ask_waiting = {{"jobs", "-n", "-f", "pending,running", "-o",
                                                "job {id.f58} ({name}): {state} "
                                                "{contextual_info}"},
                                               {"resource", "list", "-n", "-s", "free", "-o",
                                                "free nodes: {nnodes} {nodelist}"}},
                               .steps = {{kInt, 500}, {kInt, 10'000}, {kKill, 10'000}}}},
    .grammar = kGrammar,
    .render = render};

}  // namespace hpclaunch::launcher
