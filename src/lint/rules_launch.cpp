// Launch lines: counts, CPU lists, launchers inside launchers.
#include <fmt/format.h>

#include <algorithm>
#include <map>

#include "hpclaunch/text.h"
#include "lint/counts.h"

namespace hpclaunch::lint {

namespace {

using Groups = std::vector<std::vector<std::pair<long, long>>>;  // of each rank: ranges of CPUs

// "1-8:9,10" of PALS; empty where it is not of that form.
Groups read_groups(std::string_view list) {
  Groups groups;
  for (const std::string_view group : split(list, ':')) {
    std::vector<std::pair<long, long>> ranges;
    for (const std::string_view range : split(group, ',')) {
      const std::size_t dash = range.find('-');
      const auto first = parse_natural(range.substr(0, dash));
      const auto last = dash == range.npos ? first : parse_natural(range.substr(dash + 1));
      if (!first || !last) return {};
      ranges.emplace_back(*first, *last);
    }
    groups.push_back(std::move(ranges));
  }
  return groups;
}

void cpu_lists(const Script& script, const Launch& launch, Findings& findings) {
  const Option* const option = launch.option({"--cpu-bind", "--cpu-binding"});
  if (!is_mpi(launch) || option == nullptr || !option->value.value.known()) return;
  const std::string& text = option->value.text();
  const std::size_t at = text.find("list:");
  if (at == std::string::npos) return;
  const Groups groups = read_groups(std::string_view(text).substr(at + 5));
  if (groups.empty()) return;
  const long ranks = ranks_per_node_of(script, launch);
  const Span span = option->value.span;
  if (groups.size() == 1 && groups[0].size() > 1 && ranks > 1) {
    findings.add("cpu-list-one-group", span,
                 fmt::format("one set of {} CPUs for each of the {} ranks: ',' joins CPUs of one "
                             "rank, ':' begins the next rank",
                             groups[0].size(), ranks),
                 fmt::format("--cpu-bind {}{}", text.substr(0, at + 5),
                             replaced(text.substr(at + 5), {{',', ":"}})));
    return;
  }
  const auto sets = static_cast<long>(groups.size());
  if (ranks > 0 && sets != ranks && sets > 1) {
    Finding& finding =
        findings.add("cpu-list-length", span,
                     fmt::format("the list has {} for {} on each node",
                                 counted(groups.size(), "set"), counted(ranks, "rank")));
    if (sets > ranks) finding.diagnostic.severity = Severity::note;  // the rest is not used
  }
  std::map<long, std::size_t> owner;
  for (std::size_t rank = 0; rank < groups.size(); ++rank)
    for (const auto& [first, last] : groups[rank]) {
      if (last < first) {
        findings.add("cpu-list-range", span,
                     fmt::format("{}-{} ends before it begins", first, last));
        return;
      }
      for (long cpu = first; cpu <= std::min(last, first + 4096); ++cpu) {
        const auto [before, added] = owner.emplace(cpu, rank);
        if (added || before->second == rank) continue;
        findings.add(
            "cpu-list-overlap", span,
            fmt::format("CPU {} is given to local ranks {} and {}", cpu, before->second, rank));
        return;
      }
    }
}

void counts(const Script& script, const Launch& launch, Findings& findings) {
  if (!starts_ranks(launch)) return;
  const long ranks = number_of(launch.option({"-n", "--ntasks", "-np", "--np"}));
  const long each = number_of(launch.option({"--ppn", "-ppn", "--ntasks-per-node"}));
  const long nodes = nodes_of(script, launch);
  if (is_mpi(launch) && ranks > 0 && each > 0 && ranks % each != 0)
    findings.add("ranks-uneven", launch.span,
                 fmt::format("{} ranks, {} for each node: the last node gets {}", ranks, each,
                             ranks % each));
  else if (ranks > 0 && each > 0 && nodes > 0 && ranks > nodes * each)
    findings.add("ranks-too-many", launch.span,
                 fmt::format("{} ranks, but {} with {} each have room for {}", ranks,
                             counted(nodes, "node"), each, nodes * each));
  const Option* const depth = launch.option({"--depth", "-d"});
  const Setting* const threads = script.given("OMP_NUM_THREADS", launch);
  if (is_mpi(launch) && number_of(depth) > 0 && threads != nullptr &&
      number_of(threads->value) > number_of(depth))
    findings.add("threads-above-cores", depth->span,
                 fmt::format("OMP_NUM_THREADS={}, and --depth gives each rank {}",
                             threads->value.text, counted(number_of(depth), "CPU")));
}

// Rules that are data. The place is where the variable is set.
void faults(const Script& script, const Launch& launch, Findings& findings) {
  // What the text does not say is given where it excuses (`without`), and not where it accuses (`with`).
  const auto given = [&](std::string_view item, bool unsaid) {
    const std::string_view name = item.substr(0, item.find('='));
    const std::string_view part = item.substr(std::min(name.size() + 1, item.size()));
    const auto has = [&](std::string_view text) {
      return text.find(part) != text.npos || (unsaid && text.find('\x01') != text.npos);
    };
    if (const Option* const option = launch.option({name})) return has(option->value.text());
    if (const Setting* const one = script.given(name, launch))
      return has(one->value.known() ? one->value.text : "\x01");
    const Ask* const ask = script.ask({name});
    return ask != nullptr && has(ask->value);
  };
  const auto accuses = [&](std::string_view item) { return given(item, false); };
  const auto excuses = [&](std::string_view item) { return given(item, true); };
  for (const Rule& rule : rows<Rule>())
    for (const LaunchFault& one : rule.launches) {
      const Setting* const setting = script.given(one.variable, launch);
      if (setting == nullptr || !setting->value.known()) continue;
      const std::string& text = setting->value.text;
      const bool fits = one.value.starts_with('*') ? text.find(one.value.substr(1)) != text.npos
                                                   : text == one.value;
      if (fits && (one.launchers.empty() || has_word(one.launchers, launch.program)) &&
          (one.with.empty() || std::ranges::any_of(one.with, accuses)) &&
          std::ranges::none_of(one.without, excuses))
        findings.add(rule.code, setting->name_span, std::string(one.message));
    }
}

// The same count twice: -n 4 --ntasks 8.
void twice(const Launch& launch, Findings& findings) {
  static constexpr std::string_view kSame[][4] = {{"-n", "--ntasks", "-np", "--np"},
                                                  {"-N", "--nodes"},
                                                  {"-c", "--cpus-per-task"},
                                                  {"--ppn", "-ppn", "--ntasks-per-node"},
                                                  {"--nproc_per_node", "--nproc-per-node"},
                                                  {"--nnodes"}};
  if (!starts_ranks(launch) && !is_agent(launch)) return;
  for (const auto& names : kSame) {
    if (names[0] == "-N" && is_mpi(launch)) continue;
    const Option* first = nullptr;
    for (const Option& one : launch.options) {
      if (std::ranges::count(names, one.name) == 0 || !one.has_value) continue;
      if (first != nullptr && first->value.value.known() && one.value.value.known() &&
          first->value.text() != one.value.text())
        findings.add(
            "option-twice", one.span,
            fmt::format("{} {} and {} {}: only the last one counts", first->name,
                        shown(first->value.text(), 30), one.name, shown(one.value.text(), 30)));
      first = &one;
    }
  }
}

// Slurm 22.05 and newer.
void cores_of_srun(const Script& script, const Launch& launch, Findings& findings) {
  const Ask* const asked = script.ask({"--cpus-per-task"});
  if (!is_slurm(launch) || asked == nullptr || script.request.system != "slurm" || is_tool(launch))
    return;
  if (script.request.cpus_per_task == 1 || !parse_natural(asked->value)) return;
  if (launch.option({"-c", "--cpus-per-task", "--exact", "--cpus-per-gpu", "--cpu-bind",
                     "--cpus-per-tres"}) != nullptr)
    return;
  if (script.given("SRUN_CPUS_PER_TASK", launch) != nullptr) return;
  Finding& finding =
      findings.add("srun-cpus-per-task", launch.span,
                   fmt::format("srun of Slurm 22.05 and 23.02 does not inherit --cpus-per-task={} "
                               "of the job: each task gets one CPU",
                               asked->value));
  if (!launch.words.empty() && launch.words.front().direct && launch.outer == Setting::kNone) {
    finding.edits = {{launch.span.end, launch.span.end, " --cpus-per-task=$SLURM_CPUS_PER_TASK"}};
    finding.certain = script.request.cpus_per_task > 1;
  }
}

void threads_of_srun(const Script& script, const Launch& launch, Findings& findings) {
  if (!is_slurm(launch)) return;
  const Option* const typed = launch.option({"-c", "--cpus-per-task"});
  const long cores = typed != nullptr                   ? number_of(typed)
                     : script.request.cpus_per_task > 0 ? script.request.cpus_per_task
                                                        : -1;
  const Setting* const threads = script.given("OMP_NUM_THREADS", launch);
  if (cores > 0 && threads != nullptr && number_of(threads->value) > cores)
    findings.add("threads-above-cores", threads->name_span,
                 fmt::format("OMP_NUM_THREADS={}, and each task has {}", threads->value.text,
                             counted(cores, "CPU")));
}

void nested(const Script& script, const Launch& launch, Findings& findings) {
  const Launch* outer = around(script, launch);
  while (outer != nullptr && !starts_ranks(*outer)) outer = around(script, *outer);
  if (outer == nullptr) return;
  if (starts_ranks(launch)) {
    findings.add("launcher-in-launcher", launch.span,
                 fmt::format("{} inside {}: each process of {} starts a separate job",
                             launch.program, outer->program, outer->program));
    return;
  }
  const long each = ranks_per_node_of(script, *outer);
  if (is_agent(launch) && each > 1)
    findings.add(
        "launcher-in-launcher", launch.span,
        fmt::format("{} starts {} {} on each node, and each of them starts workers", outer->program,
                    each, launch.program),
        fmt::format(
            "{} with one task per node around {}, or the program itself with {} tasks per node",
            outer->program, launch.program, each));
}

// srun torchrun on several nodes: without --nnodes, each node trains for itself.
void one_job_each(const Script& script, const Launch& launch, Findings& findings) {
  const Launch* const outer = around(script, launch);
  if (outer == nullptr || !starts_ranks(*outer) || !is_for_one_node(script, launch)) return;
  const long nodes = nodes_of(script, *outer);
  if (nodes < 2) return;
  findings.add(
      "rendezvous-missing", launch.span,
      fmt::format("torchrun without --nnodes expects one node, and {} starts it on {}",
                  outer->program, nodes),
      fmt::format("--nnodes={} --rdzv-backend=c10d --rdzv-endpoint=FIRST_NODE:PORT", nodes));
}

// torchrun and its kind on several nodes.
void agents(const Script& script, const Launch& launch, Findings& findings) {
  if (!is_agent(launch)) return;
  const long nodes = nodes_of(script, launch);
  const Launch* const outer = around(script, launch);
  const bool several = nodes > 1;
  const Option* const rank = launch.option({"--node_rank", "--node-rank", "--machine_rank"});
  const Option* const address =
      launch.option({"--master_addr", "--master-addr", "--rdzv_endpoint", "--rdzv-endpoint",
                     "--main_process_ip", "--main-process-ip"});
  const bool in_step = outer != nullptr && starts_ranks(*outer);
  if (several && in_step && number_of(rank) >= 0 &&
      launch.option({"--rdzv_backend", "--rdzv-backend"}) == nullptr)
    findings.add(
        "node-rank-constant", rank->span,
        fmt::format("{} is {} on each of the {} nodes", rank->name, number_of(rank), nodes),
        fmt::format("{} {}, inside bash -c '...' so that each node has its own", rank->name,
                    is_slurm(*outer) ? "$SLURM_NODEID" : "with the launcher's variable for it"));
  const bool file =
      launch.option({"--config_file", "--config-file", "--hostfile", "-H"}) != nullptr;
  const bool addressed = address != nullptr || script.given("MASTER_ADDR", launch) != nullptr ||
                         script.given("PET_MASTER_ADDR", launch) != nullptr ||
                         script.given("PET_RDZV_ENDPOINT", launch) != nullptr;
  if (several && launch.kind == "torchrun" && address == nullptr && !file &&
      script.given("PET_MASTER_ADDR", launch) == nullptr &&
      script.given("PET_RDZV_ENDPOINT", launch) == nullptr)
    findings.add(
        "rendezvous-missing", launch.span,
        fmt::format("{} nodes without --rdzv-endpoint or --master-addr: each connects to itself{}",
                    nodes, addressed ? " (MASTER_ADDR is not read by torchrun)" : ""));
  if (several && address != nullptr && address->value.value.known() &&
      is_loopback(address->value.text()))
    findings.add("address-loopback", address->span,
                 fmt::format("{} {} on {} nodes: each node connects to itself", address->name,
                             address->value.text(), nodes));
  const Command& command = script.shell.commands[launch.command];
  if (outer == nullptr && !script.request.system.empty() && script.request.nodes > 1 && several &&
      !command.conditional && command.function == 0 && launch.kind != "deepspeed" &&
      !launch.background)
    findings.add("one-node-only", launch.span,
                 fmt::format("the batch script runs on the first node only: {} waits there for {}",
                             launch.program, counted(nodes - 1, "other node")),
                 fmt::format("srun --ntasks-per-node=1 {} ...", launch.program));
  const long gpus = gpus_per_node_of(script), workers = ranks_per_node_of(script, launch);
  if (gpus > 0 && workers > gpus && launch.kind == "torchrun")
    findings.add("workers-above-devices", launch.span,
                 fmt::format("{} workers on each node, and the job asks for {}", workers,
                             counted(gpus, "GPU")));
  const bool old = std::ranges::any_of(
      launch.words, [](const Text& one) { return one.text() == "torch.distributed.launch"; });
  if (old)
    findings.add("old-launch-module", launch.span,
                 "torch.distributed.launch is deprecated: torchrun has the same options and sets "
                 "LOCAL_RANK");
}

// srun NAME=value program: no shell reads this line.
void assignment(const Launch& launch, Findings& findings) {
  if ((!starts_ranks(launch) && launch.kind != "container") || launch.inner.size() < 2) return;
  const Text& first = launch.inner.front();
  const std::size_t equals = first.text().find('=');
  if (equals == std::string::npos || !is_identifier(first.text().substr(0, equals))) return;
  Finding& finding = findings.add(
      "assignment-as-program", first.span,
      fmt::format("{} runs {} as a program: only a shell reads it as an assignment", launch.program,
                  shown(first.text().substr(0, equals + 1), 40)),
      fmt::format("{} ... env {}=... program", launch.program, first.text().substr(0, equals)));
  if (first.direct) finding.edits = {{first.span.begin, first.span.begin, "env "}};
  finding.certain = first.direct;
}

void containers(const Script& script, const Launch& launch, Findings& findings) {
  if (launch.engine == nullptr || launch.engine->shows_devices.empty() ||
      shows(script, launch, launch.engine->shows_devices))
    return;
  const RequestOfJob& request = script.request;
  std::string asked = request.gpus_per_node + request.gpus_per_task + request.gpus;
  const Ask* const lsf = script.ask({"-gpu"});
  if (lsf != nullptr) asked += lsf->value;
  if (asked.empty() || gpus_per_node_of(script) == 0) return;
  for (const Text& word : launch.words)
    if (!word.value.known()) return;
  // Where AMD's device files are there, an image with its own libraries needs no option.
  const bool nvidia = std::ranges::any_of(script.modules, [](const Module& one) {
    return one.name.starts_with("cuda") || one.name.starts_with("nvhpc");
  });
  for (const std::string* one :
       {&request.gpus_per_node, &request.gpus_per_task, &request.gpus, &request.constraint})
    asked += "_" + *one;
  if (const Ask* const select = script.ask({"-l select"})) asked += "_" + select->value;
  const std::string_view named = gpu_vendor(asked);
  if (named.empty() ? !nvidia : named != "nvidia") return;
  findings.add("container-without-devices", launch.span,
               fmt::format("the job requests GPUs, and {} shows none of them in the container",
                           launch.program),
               fmt::format("{} {} {} ...", launch.program, launch.engine->line.words.front(),
                           joined(words_of(launch.engine->devices, "nvidia"), " ")));
}

void passing_on(const Script& script, const Launch& launch, Findings& findings) {
  if (!is_slurm(launch)) return;
  const Option* const typed = launch.option({"--export"});
  if (typed != nullptr && typed->value.value.known()) {
    const std::string& list = typed->value.text();
    if (list != "ALL" && !list.starts_with("ALL,") && list.find(",ALL") == std::string::npos &&
        list != "NIL")
      findings.add("environment-not-passed", typed->span,
                   fmt::format("--export={}: the ranks get nothing else of this script's "
                               "environment, PATH and modules included",
                               shown(list, 40)),
                   "--export=ALL" + (list == "NONE" ? "" : "," + list));
  } else if (typed == nullptr && script.request.exported == "NONE" && !is_tool(launch)) {
    const bool cured = std::ranges::any_of(
        script.settings, [](const Setting& one) { return one.name == "SLURM_EXPORT_ENV"; });
    if (!cured)
      findings.add("environment-not-passed", launch.span,
                   "the job has --export=NONE, and srun inherits it as SLURM_EXPORT_ENV: the ranks "
                   "get no variable of this script",
                   "unset SLURM_EXPORT_ENV before srun, or srun --export=ALL");
  }
}

void ends(const Script& script, const Launch& launch, Findings& findings) {
  const std::vector<Command>& commands = script.shell.commands;
  const auto first = commands.begin() + static_cast<std::ptrdiff_t>(launch.command);
  const auto is = [&](const Command& one, std::string_view name) {
    return !one.words.empty() && script.shell.at(one.words.front().span) == name;
  };
  if (launch.background && launch.outer == Setting::kNone && !script.request.system.empty() &&
      first->function == 0 && starts_ranks(launch)) {
    const bool something = std::ranges::any_of(first + 1, commands.end(), [&](const Command& one) {
      return is(one, "wait") || is(one, "fg") || is(one, "sleep") || is(one, "while") || one.test ||
             is(one, "tail");
    });
    const bool more = std::ranges::any_of(script.launches, [&](const Launch& one) {
      return one.command > launch.command && !one.background;
    });
    if (!something && !more)
      findings.add("no-wait", launch.span,
                   fmt::format("{} runs in the background without a wait: the job ends at once",
                               launch.program));
  }
  const bool to_tee =
      first->join == Join::pipe && first + 1 != commands.end() && is(*(first + 1), "tee");
  if (!to_tee || launch.outer != Setting::kNone || is_tool(launch) || script.request.system.empty())
    return;
  const bool pipefail = std::ranges::any_of(commands, [&](const Command& one) {
    return is(one, "set") && script.shell.at(one.span).find("pipefail") != std::string_view::npos;
  });
  if (!pipefail && script.shell.text.find("PIPESTATUS") == std::string_view::npos)
    findings.add("status-of-pipe", launch.span,
                 "the job's status is that of tee: a failed launch counts as completed");
}

}  // namespace

void check_launches(const Script& script, Findings& findings) {
  for (const Launch& launch : script.launches) {
    cpu_lists(script, launch, findings);
    counts(script, launch, findings);
    faults(script, launch, findings);
    twice(launch, findings);
    cores_of_srun(script, launch, findings);
    threads_of_srun(script, launch, findings);
    nested(script, launch, findings);
    agents(script, launch, findings);
    one_job_each(script, launch, findings);
    assignment(launch, findings);
    containers(script, launch, findings);
    passing_on(script, launch, findings);
    ends(script, launch, findings);
  }
}

}  // namespace hpclaunch::lint
