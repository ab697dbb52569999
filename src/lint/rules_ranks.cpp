// What differs between ranks, written where all of them get the same.
#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <set>

#include "hpclaunch/launcher.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"
#include "lint/counts.h"
#include "lint/words.h"

namespace hpclaunch::lint {

namespace {

using Names = std::set<std::string_view>;

// Variables that hold the rank among all, with that for the rank on its node.
const std::map<std::string_view, std::string_view>& rank_variables() {
  static const std::map<std::string_view, std::string_view> kAll = [] {
    std::map<std::string_view, std::string_view> all = {{"PMIX_RANK", "the launcher's own"},
                                                        {"PMI_RANK", "PMI_LOCAL_RANK"}};
    for (const Launcher& one : launchers())
      if (!one.traits.rank_var.empty()) all.emplace(one.traits.rank_var, one.traits.local_rank_var);
    return all;
  }();
  return kAll;
}

// Variables that each task finds with another value.
const Names& task_variables() {
  static const Names kAll = [] {
    Names all = {"PALS_NODEID", "OMPI_COMM_WORLD_NODE_RANK"};
    for (const auto& [rank, local] : rank_variables()) all.insert({rank, local});
    for (const Launcher& one : launchers())
      for (const IdentityVariables& variables : one.identity)
        if (variables.what <= Identity::node)
          for (const std::string_view name : split(variables.names, ' ')) all.insert(name);
    return all;
  }();
  return kAll;
}

// The first parameter of a word that is one of `names` and is not passed on as it stands; nullptr: none.
const Part* part_of(const Word& word, const auto& names) {
  const auto found = std::ranges::find_if(word.parts, [&](const Part& part) {
    return part.kind == Part::Kind::parameter && names.contains(part.text);
  });
  return found == word.parts.end() ? nullptr : &*found;
}

bool several_ranks(const Script& script, const Launch& launch) {
  if (!starts_ranks(launch) || launch.outer != Setting::kNone || is_tool(launch)) return false;
  return ranks_of(script, launch) != 1;
}

void report_early(const Part& part, std::string_view what, std::string_view launcher,
                  Findings& findings) {
  findings.add("expanded-too-early", part.span,
               fmt::format("the shell expands ${} before {} starts the ranks: all get the same {}",
                           part.text, launcher, what));
}

// srun prog --rank $SLURM_PROCID; NODE_RANK=$SLURM_NODEID, then srun.
void expanded_too_early(const Script& script, Findings& findings) {
  const Shell& shell = script.shell;
  Names names = task_variables();
  for (const auto& [name, indices] : script.by_name) names.erase(name);
  Names copies;  // variables that this script gives the value of a task variable
  std::map<std::size_t, const Launch*> launches;
  for (const Launch& one : script.launches)
    if (several_ranks(script, one)) launches.emplace(one.command, &one);
  for (std::size_t i = 0; i < shell.commands.size() && !launches.empty(); ++i) {
    const Command& command = shell.commands[i];
    const auto next = launches.lower_bound(i);
    if (next == launches.end()) return;
    if (command.function != 0) continue;
    const std::string& launcher = next->second->program;
    if (next->first == i) {
      for (const Word& word : command.words) {
        if (const Part* part = part_of(word, names))
          return report_early(*part, "value", launcher, findings);
        if (const Part* part = part_of(word, copies))
          return report_early(*part, "value", launcher, findings);
      }
    }
    for (const Assignment& one : command.assignments) {
      const Part* const part = part_of(one.value, names);
      if (part == nullptr || command.conditional || command.subshell) continue;
      const auto exported = script.by_name.find(one.name);
      const bool seen =
          exported != script.by_name.end() &&
          std::ranges::any_of(exported->second, [&](std::size_t index) {
            return script.settings[index].exported && script.settings[index].command == i;
          });
      if (seen) return report_early(*part, one.name, launcher, findings);
      copies.insert(one.name);
    }
    for (const Redirect& one : command.redirects) {
      if (one.body.empty() || one.quoted) continue;
      const std::string_view body = shell.at(one.body);
      for (const std::string_view name : names) {
        std::size_t at = body.find("$" + std::string(name));
        if (at == body.npos) at = body.find("${" + std::string(name));
        if (at == body.npos || (at > 0 && body[at - 1] == '\\')) continue;
        const Span span = span_of(one.body.begin + at, one.body.begin + at + name.size() + 1);
        findings.add("expanded-too-early", span,
                     fmt::format("the shell expands ${} while it writes these lines: all ranks "
                                 "get the value of the first task",
                                 name),
                     "<<'END' with quotes, which replaces nothing, or \\$" + std::string(name));
        return;
      }
    }
  }
}

// $((PMIX_RANK % 12))
void global_rank(const Script& script, Findings& findings) {
  for (const Command& command : script.shell.commands)
    for (const Assignment& one : command.assignments) {
      const std::string_view text = script.shell.at(one.value.span);
      if (text.find('%') == text.npos) continue;
      for (const auto& [name, local] : rank_variables()) {
        const std::size_t at = text.find(name);
        if (at == text.npos ||
            (at > 0 && (text[at - 1] == '_' || is_identifier(text.substr(at - 1, 1)))))
          continue;
        const std::size_t behind = text.find_first_not_of(" }\"", at + name.size());
        if (behind == text.npos || text[behind] != '%' || text.find("$((") == text.npos) continue;
        findings.add("global-rank-as-local", one.name_span,
                     fmt::format("{} counts all ranks: its remainder is the rank on the node only "
                                 "where each node has that many, placed in blocks",
                                 name),
                     std::string(local));
        break;
      }
    }
}

void constants(const Script& script, const Launch& launch, Findings& findings) {
  if (!several_ranks(script, launch) || is_planned(launch)) return;
  const long ranks = ranks_of(script, launch);
  for (const char* name : {"RANK", "LOCAL_RANK"}) {
    const Setting* const one = script.given(name, launch);
    if (one == nullptr || number_of(one->value) < 0 || ranks < 2 || one->conditional) continue;
    findings.add(
        "rank-constant", one->name_span,
        fmt::format("{}={} is the same for all {} ranks", name, one->value.text, ranks),
        fmt::format("unset {}, and let each rank take its own from {}", name, launch.program));
  }
  const bool agent =
      std::ranges::any_of(script.launches, [](const Launch& one) { return is_agent(one); });
  const Setting* const size = script.given("WORLD_SIZE", launch);
  if (size != nullptr && !agent && ranks > 1 && number_of(size->value) > 0 &&
      number_of(size->value) != ranks)
    findings.add("world-size", size->name_span,
                 fmt::format("WORLD_SIZE={}, but {} starts {} ranks", size->value.text,
                             launch.program, ranks),
                 fmt::format("export WORLD_SIZE={}", ranks));
}

// A file that each rank would write.
void one_file(const Script& script, const Launch& launch, Findings& findings) {
  if (!starts_ranks(launch) || ranks_of(script, launch) < 2) return;
  const Setting* const log = script.given("NCCL_DEBUG_FILE", launch);
  if (log != nullptr && log->value.text.find('%') == std::string::npos)
    findings.add("one-file-for-all", log->name_span,
                 "NCCL_DEBUG_FILE without %h and %p: all ranks write the same file",
                 "NCCL_DEBUG_FILE=nccl.%h.%p");
  for (std::size_t i = 0; i + 1 < launch.inner.size(); ++i) {
    const std::string& program = launch.inner[0].text();
    const std::string& option = launch.inner[i].text();
    const bool profiles = program.substr(program.rfind('/') + 1) == "nsys";
    if (!profiles || (option != "-o" && !option.starts_with("--output"))) continue;
    const bool joined = option.find('=') != std::string::npos;
    const Text& file = launch.inner[joined ? i : i + 1];
    if (file.text().find('%') == std::string::npos && file.value.known())
      findings.add(
          "one-file-for-all", file.span,
          fmt::format("each rank's nsys writes {}", shown(file.text(), 40)),
          "-o report.%q{" + std::string(is_slurm(launch) ? "SLURM_PROCID" : "PMIX_RANK") + "}");
    return;
  }
}

// Variables that sbatch sets only where the job asks for what they say, with the options.
constexpr struct {
  std::string_view name, option, other;
} kOnRequest[] = {{"SLURM_NTASKS_PER_NODE", "--ntasks-per-node", "--tasks-per-node"},
                  {"SLURM_CPUS_PER_TASK", "--cpus-per-task", "--tres-per-task"},
                  {"SLURM_GPUS_PER_NODE", "--gpus-per-node", ""},
                  {"SLURM_GPUS_PER_TASK", "--gpus-per-task", ""},
                  {"SLURM_GPUS", "--gpus", ""}};

// Where `text` has `name` as a whole word without a default behind it.
bool refers(std::string_view text, std::string_view name) {
  for (std::size_t at = 0; (at = text.find(name, at)) != text.npos; at += name.size()) {
    const std::string_view rest = text.substr(at + name.size());
    const bool begins = at == 0 || !is_name_char(text[at - 1]);
    if (begins && (rest.empty() || (!is_name_char(rest.front()) && rest.front() != ':')))
      return true;
  }
  return false;
}

// The first command that needs a value of `name`; nullptr: none, or the script looks whether it is set.
const Part* first_need(const Script& script, std::string_view name) {
  const auto in = [&](const Word& word) -> const Part* {
    for (const Part& part : word.parts)
      if (part.kind == Part::Kind::parameter
              ? part.text == name && part.rest.empty()
              : part.kind == Part::Kind::arithmetic && refers(part.text, name))
        return &part;
    return nullptr;
  };
  for (const Command& command : script.shell.commands) {
    const std::string_view first =
        command.words.empty() ? "" : script.shell.at(command.words.front().span);
    const bool tests = command.test || first == "[" || first == "[[" || first == "test";
    if (tests && refers(script.shell.at(command.span), name)) return nullptr;
    if (tests || command.conditional || command.function != 0 || first == "echo" ||
        first == "printf")
      continue;
    for (const Word& word : command.words)
      if (const Part* const part = in(word)) return part;
    for (const Assignment& one : command.assignments)
      if (const Part* const part = in(one.value)) return part;
  }
  return nullptr;
}

void on_request(const Script& script, Findings& findings) {
  if (script.request.system != "slurm") return;
  for (const auto& [name, option, other] : kOnRequest) {
    if (script.ask({option, other}) != nullptr || script.by_name.contains(name)) continue;
    const Part* const part = first_need(script, name);
    if (part == nullptr) continue;
    findings.add("variable-not-requested", part->span,
                 fmt::format("{} is empty: Slurm sets it only for jobs with {}", name, option),
                 fmt::format("#SBATCH {}=NUMBER", option));
  }
}

// A job of several nodes whose script starts python itself and nothing that could reach the others.
void unused_nodes(const Script& script, Findings& findings) {
  const auto local = [&](const Launch& one) {
    return one.kind == "container" || is_for_one_node(script, one);
  };
  const bool reaches = !std::ranges::all_of(script.launches, local);
  const long nodes = script.request.nodes;
  if (nodes < 2 || script.request.system == "flux" || reaches) return;
  for (const std::string_view one : words_named("reaching"))
    if (refers(script.shell.text, one)) return;
  for (const Command& command : script.shell.commands) {
    if (command.words.size() < 2 || command.function != 0 || command.conditional) continue;
    const std::string_view program = script.shell.at(command.words.front().span);
    const bool runs = std::ranges::any_of(command.words, [&](const Word& word) {
      return script.shell.at(word.span).ends_with(".py");
    });
    const std::string_view name = program.substr(program.rfind('/') + 1);
    if (!runs || (!is_python(name) && name != "torchrun")) continue;
    findings.add("nodes-unused", command.words.front().span,
                 fmt::format("the batch script runs on the first node only: nothing runs on {}",
                             counted(nodes - 1, "other node")),
                 script.request.system == "slurm"
                     ? fmt::format("srun {} ..., or --nodes=1", name)
                     : fmt::format("mpiexec -n RANKS {} ..., or one node", name));
    return;
  }
}

std::string_view prefix_of(const Scheduler& system) {
  return system.job_variable.substr(0, system.job_variable.find('_') + 1);
}

bool of_another(const Scheduler& own, std::string_view variable) {
  return std::ranges::any_of(rows<Scheduler>(), [&](const Scheduler& one) {
    return !one.nested && !one.common_variable && prefix_of(one) != prefix_of(own) &&
           prefix_of(one).size() > 1 && variable.starts_with(prefix_of(one));
  });
}

// What only another batch system sets.
void other_system(const Script& script, Findings& findings) {
  const Scheduler* const own = find_row<Scheduler>(script.request.system);
  if (own == nullptr || own->nested) return;
  const std::string_view sentinel = script.shell.directives.front().sentinel;
  for (const Directive& one : script.shell.directives)
    if (one.sentinel != sentinel) return;  // meant for several
  for (const Command& command : script.shell.commands) {
    if (command.conditional || command.test || command.function != 0) continue;
    const auto check = [&](const Word& word) {
      for (const Part& part : word.parts) {
        if (part.kind != Part::Kind::parameter || !part.rest.empty() ||
            !of_another(*own, part.text) || script.by_name.contains(part.text))
          continue;
        findings.add(
            "other-system", part.span,
            fmt::format("{} does not set {}: it is empty in this job", own->title, part.text));
        return;
      }
    };
    for (const Word& word : command.words) check(word);
    for (const Assignment& one : command.assignments) check(one.value);
  }
  for (const Launch& launch : script.launches) {
    const Command& command = script.shell.commands[launch.command];
    if (is_slurm(launch) && own->launcher != "slurm" && !command.conditional &&
        command.function == 0)
      findings.add(
          "other-system", launch.span,
          fmt::format("srun starts programs in jobs of Slurm; this is one of {}", own->title),
          "mpiexec -n RANKS --ppn RANKS_PER_NODE ...");
  }
}

}  // namespace

void check_ranks(const Script& script, Findings& findings) {
  on_request(script, findings);
  unused_nodes(script, findings);
  expanded_too_early(script, findings);
  global_rank(script, findings);
  other_system(script, findings);
  for (const Launch& launch : script.launches) {
    constants(script, launch, findings);
    one_file(script, launch, findings);
  }
}

}  // namespace hpclaunch::lint
