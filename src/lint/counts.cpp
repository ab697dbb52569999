#include "lint/counts.h"

#include <algorithm>

#include "hpclaunch/text.h"

namespace hpclaunch::lint {

long number_of(const Value& value) {
  return value.known() ? parse_natural(value.text).value_or(-1) : -1;
}

long number_of(const Option* option) {
  return option == nullptr || !option->has_value ? -1 : number_of(option->value.value);
}

bool is_slurm(const Launch& launch) { return launch.kind == "srun"; }
bool is_mpi(const Launch& launch) { return launch.kind == "mpiexec"; }
bool starts_ranks(const Launch& launch) {
  return is_slurm(launch) || is_mpi(launch) || launch.kind == "flux run" || launch.kind == "jsrun";
}
bool is_agent(const Launch& launch) {
  return launch.kind == "torchrun" || launch.kind == "accelerate launch" ||
         launch.kind == "deepspeed";
}

bool is_for_one_node(const Script& script, const Launch& launch) {
  return launch.kind == "torchrun" && launch.option({"--nnodes"}) == nullptr &&
         !launch.inner.empty() && launch.inner.front().value.known() &&
         script.given("PET_NNODES", launch) == nullptr;
}

const Launch* around(const Script& script, const Launch& launch) {
  return launch.outer == Setting::kNone ? nullptr : &script.launches[launch.outer];
}

long nodes_of(const Script& script, const Launch& launch) {
  if (const Option* typed = launch.option({"-N", "--nodes"}); typed != nullptr && !is_mpi(launch))
    return number_of(typed);
  if (is_agent(launch))
    return number_of(
        launch.option({"--nnodes", "--num_machines", "--num_nodes", "--num-machines"}));
  return script.request.nodes > 0 ? script.request.nodes : -1;
}

long ranks_per_node_of(const Script& script, const Launch& launch) {
  if (is_agent(launch))
    return number_of(launch.option({"--nproc_per_node", "--nproc-per-node", "--num_gpus"}));
  if (const Option* typed = launch.option(
          {"--ppn", "-ppn", "--ntasks-per-node", "--tasks-per-node", "-perhost", "-npernode"}))
    return number_of(typed);
  if (is_slurm(launch) && launch.option({"-n", "--ntasks", "-N", "--nodes"}) == nullptr &&
      script.request.tasks_per_node > 0)
    return script.request.tasks_per_node;
  const long nodes = nodes_of(script, launch);
  if (const Option* typed = launch.option({"-n", "--ntasks", "-np", "--np"});
      typed != nullptr && nodes == 1)
    return number_of(typed);
  return -1;
}

long ranks_of(const Script& script, const Launch& launch) {
  if (const Option* typed = launch.option({"-n", "--ntasks", "-np", "--np"}))
    return number_of(typed);
  const RequestOfJob& request = script.request;
  const bool own =
      launch.option({"-N", "--nodes", "--ntasks-per-node", "--tasks-per-node"}) != nullptr;
  if (is_slurm(launch) && !own && request.tasks > 0) return request.tasks;
  const long nodes = nodes_of(script, launch);
  const long each = ranks_per_node_of(script, launch);
  if (nodes > 0 && each > 0) return nodes * each;
  // sbatch without --nodes and --ntasks asks for one node.
  if (is_slurm(launch) && !own && request.system == "slurm" && request.nodes == 0 &&
      script.ask({"--nodes", "--ntasks", "--nodelist", "--array"}) == nullptr)
    return std::max(request.tasks_per_node, 1L);
  // One task on each node is what srun starts by itself.
  return is_slurm(launch) && each < 0 && request.tasks_per_node == 0 ? nodes : -1;
}

long gpus_per_node_of(const Script& script) {
  const std::string& text = script.request.gpus_per_node;
  if (text.empty()) return -1;
  return parse_natural(text.substr(text.rfind(':') + 1)).value_or(-1);
}

bool shows(const Script& script, const Launch& launch, Words names) {
  return std::ranges::any_of(names, [&](std::string_view name) {
    return name.starts_with('-') ? launch.option({name}) != nullptr
                                 : script.given(name, launch) != nullptr;
  });
}

bool is_loopback(std::string_view host) {
  return host == "localhost" || host.starts_with("127.") || host.starts_with("localhost:") ||
         host == "::1";
}

bool is_planned(const Launch& launch) {
  return !launch.inner.empty() && launch.inner.front().text().ends_with("hpclaunch-shim");
}

bool is_tool(const Launch& launch) {
  const auto listed = [](std::string_view program) {
    return has_word(words_named("tools"), program.substr(program.rfind('/') + 1));
  };
  if (launch.inner.empty()) return false;
  const std::string& program = launch.inner.front().text();
  if (launch.inner.size() != 3 || launch.inner[1].text() != "-c" || !program.ends_with("sh"))
    return listed(program);
  // bash -c "cp ... && cd ...": each command of the text.
  std::string text = launch.inner[2].text();
  for (char& c : text)
    if (c == '&' || c == '|' || c == ';') c = '\n';
  bool any = false;
  for (std::string_view line : split(text, '\n')) {
    line = trim(line);
    line = line.substr(0, line.find_first_of(" \t"));
    if (line.empty()) continue;
    any = true;
    if (line != "cd" && !listed(line)) return false;
  }
  return any;
}

}  // namespace hpclaunch::lint
