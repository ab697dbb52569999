// What the catalogue says of values that are taken and seldom meant, and of versions that do not work together.
#include <algorithm>
#include <map>

#include "hpclaunch/knowledge.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"
#include "lint/counts.h"

namespace hpclaunch::lint {

namespace {

// python x.py, without a launcher.
bool starts_programs(const Script& script) {
  return std::ranges::any_of(script.shell.commands, [&](const Command& command) {
    if (command.words.size() < 2) return false;
    const std::string_view program = script.shell.at(command.words.front().span);
    const std::string_view name = program.substr(program.rfind('/') + 1);
    return is_python(name) && !script.by_name.contains("NODE_RANK");
  });
}

// All that the script starts stays on one node, as far as its text says.
bool one_node(const Script& script) {
  if (script.request.nodes != 0 || !script.request.system.empty()) return script.request.nodes == 1;
  if (script.launches.empty()) return starts_programs(script);
  return std::ranges::all_of(script.launches, [&](const Launch& one) {
    if (one.option({"--standalone"}) != nullptr || one.program == "vllm") return true;
    if (one.kind == "deepspeed")  // without a hostfile it starts on this node only
      return one.option({"--hostfile", "-H", "--num_nodes"}) == nullptr;
    const Option* const nodes = one.option({"--nnodes", "--num_machines"});
    if (nodes != nullptr) return is_agent(one) && number_of(nodes) == 1;
    return is_for_one_node(script, one);
  });
}

// At the last value of each variable.
void cautions(const Script& script, Findings& findings) {
  const auto value_of = [&](std::string_view name) { return script.exported(name); };
  const bool single = one_node(script);
  const bool ranks = std::ranges::any_of(script.launches, starts_ranks);
  const bool environment = script.shell.commands.empty();
  for (const auto& [name, indices] : script.by_name) {
    const Setting& one = script.settings[indices.back()];
    if (!one.exported || one.conditional || one.how == Setting::How::unset || one.array) continue;
    const std::string value = one.value.known() ? one.value.text : std::string(1, '\x01');
    for (const knowledge::Caution& caution : knowledge::cautions(name, value, value_of)) {
      if ((caution.between_nodes && single) || (caution.launched && !ranks && !environment))
        continue;
      Finding& finding = findings.add(knowledge::code(caution.kind), one.name_span,
                                      knowledge::sentence(caution, one.value.known() ? value : ""));
      if (!caution.since.empty()) finding.diagnostic.severity = Severity::note;  // may be older
    }
  }
}

// Components by the modules that are loaded, each with the place of its last one.
std::map<std::string, Span> loaded(const Script& script, knowledge::Versions& versions) {
  std::map<std::string, Span> places;
  for (std::size_t i = 0; i < script.modules.size(); ++i) {
    const Module& module = script.modules[i];
    if (module.conditional || module.name.find('\x01') != module.name.npos) continue;
    if (module.verb == "purge" || module.verb == "reset") versions.clear();
    const bool swaps = module.verb == "swap" || module.verb == "switch";
    const bool swapped_out =
        swaps && i + 1 < script.modules.size() && script.modules[i + 1].command == module.command;
    if (module.verb == "unload" || module.verb == "delete" || swapped_out)
      versions.erase(knowledge::component_of(module.name));
    else if (module.verb == "load" || swaps)
      places[knowledge::add_module(module.name, versions)] = module.span;
  }
  const Setting* const names = script.last("LOADEDMODULES", script.settings.size());
  if (names != nullptr && names->value.known())  // an environment
    for (const std::string_view module : split(names->value.text, ':'))
      places[knowledge::add_module(module, versions)] = names->name_span;
  return places;
}

// Only a script that has one of its options, where it is about options.
bool concerns(const Script& script, const knowledge::KnownIssue& issue) {
  return issue.options.empty() ||
         std::ranges::any_of(issue.options.all(), [&](std::string_view option) {
           return script.shell.text.find(option) != std::string_view::npos;
         });
}

// A batch job that starts no ranks, or one: its libraries do not communicate.
bool alone(const Script& script) {
  return !script.shell.directives.empty() &&
         std::ranges::all_of(script.launches, [&](const Launch& one) {
           return is_tool(one) || (starts_ranks(one) && ranks_of(script, one) == 1);
         });
}

// Ranks that meet at torch's address exchange nothing by MPI: it starts them at most.
bool of_idle_mpi(const Script& script, const knowledge::KnownIssue& issue) {
  const std::string_view component = issue.versions.front();
  const bool mpi = component == "openmpi" || component == "mpich" || component == "cray-mpich" ||
                   component == "intel-mpi";
  return mpi && issue.effect != knowledge::KnownIssue::Effect::no_start &&
         (script.by_name.contains("MASTER_ADDR") || std::ranges::any_of(script.launches, is_agent));
}

// "gh200" of --gpus-per-node=gh200:4, "amd-gfx90a" of the module craype-accel-amd-gfx90a.
std::string gpus_of(const Script& script) {
  constexpr std::string_view kModule = "craype-accel-";
  const RequestOfJob& request = script.request;
  std::vector<std::string_view> names = {request.gpus_per_node, request.gpus_per_task, request.gpus,
                                         request.constraint};
  for (const Module& one : script.modules)
    if (one.verb == "load" && one.name.starts_with(kModule))
      names.push_back(std::string_view(one.name).substr(kModule.size()));
  return joined(names, ", ");
}

void known_issues(const Script& script, Findings& findings) {
  if (alone(script)) return;
  knowledge::Versions versions;
  const std::map<std::string, Span> places = loaded(script, versions);
  versions[knowledge::kGpu] = gpus_of(script);
  const auto value_of = [&](std::string_view name) { return script.exported(name); };
  for (const knowledge::KnownIssue& one : knowledge::known_issues(versions, value_of)) {
    if (!concerns(script, one) || of_idle_mpi(script, one)) continue;
    const auto place = places.find(std::string(one.versions.front()));
    Finding& finding = findings.add(knowledge::kKnownIssueId, place->second,
                                    knowledge::sentence(one, versions), std::string(one.fix));
    finding.diagnostic.severity = knowledge::severity(one);
    finding.distinct = true;
  }
}

}  // namespace

knowledge::Versions loaded_versions(const Script& script) {
  knowledge::Versions versions;
  loaded(script, versions);
  return versions;
}

void check_catalogue(const Script& script, Findings& findings) {
  cautions(script, findings);
  known_issues(script, findings);
}

}  // namespace hpclaunch::lint
