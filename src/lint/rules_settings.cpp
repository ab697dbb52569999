// What is set for devices, networks and the rendezvous, and what the job asks for.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"
#include "lint/counts.h"

namespace hpclaunch::lint {

namespace {

const std::string* known(const Script& script, const char* name, const Launch& launch) {
  const Setting* const given = script.given(name, launch);
  return given == nullptr || !given->value.known() ? nullptr : &given->value.text;
}

void masks(const Script& script, const Launch& launch, Findings& findings) {
  static constexpr std::array kMasks = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                        "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};
  for (const char* name : kMasks) {
    const Setting* const given = script.given(name, launch);
    if (given == nullptr || !given->value.known() || given->value.text.empty()) continue;
    const long ranks = ranks_per_node_of(script, launch);
    const std::size_t devices = split(given->value.text, ',').size();
    if ((starts_ranks(launch) || is_agent(launch)) && devices == 1 && ranks > 1)
      findings.add("one-device-for-all", given->name_span,
                   fmt::format("{}={}: all {} ranks of a node share one device", name,
                               given->value.text, ranks),
                   fmt::format("omit {}, and let each rank take device LOCAL_RANK", name));
    if (is_slurm(launch) &&
        launch.option({"--gpu-bind", "--gpus-per-task", "--gpus-per-node", "--gres"}) != nullptr)
      findings.add("mask-and-option", given->name_span,
                   fmt::format("{}={} is set, and options of srun set a mask for each task", name,
                               given->value.text));
  }
  const std::string* const rocr = known(script, "ROCR_VISIBLE_DEVICES", launch);
  const std::string* hip = known(script, "HIP_VISIBLE_DEVICES", launch);
  const char* const second = hip != nullptr ? "HIP_VISIBLE_DEVICES" : "CUDA_VISIBLE_DEVICES";
  if (hip == nullptr) hip = known(script, "CUDA_VISIBLE_DEVICES", launch);
  if (rocr != nullptr && hip != nullptr && !rocr->empty() && *rocr == *hip && *rocr != "0" &&
      split(*rocr, ',').size() == 1)
    findings.add(
        "mask-twice", script.given(second, launch)->name_span,
        fmt::format("{}={} counts what ROCR_VISIBLE_DEVICES={} has left: no device is left", second,
                    *hip, *rocr),
        fmt::format("unset {}", second));
}

// "$PMI_LOCAL_RANK" as the device's number: right where devices and cores are numbered alike.
void mask_from_rank(const Script& script, const Setting& one, Findings& findings) {
  if (std::ranges::count(device_masks(), std::string_view(one.name)) == 0) return;
  const std::string_view value = script.shell.at(one.value_span);
  const std::size_t at = find_local_rank(value);
  if (at == value.npos || value.substr(0, at).find('-') != value.npos) return;
  findings.add("mask-from-local-rank", one.name_span,
               fmt::format("{} is the local rank: where the node numbers its devices against its "
                           "cores, each rank takes the farthest",
                           one.name));
}

void workers(const Script& script, const Launch& launch, Findings& findings) {
  const Setting* const affinity = script.given("CCL_WORKER_AFFINITY", launch);
  if (affinity == nullptr || !affinity->value.known() || affinity->value.text == "auto" ||
      affinity->value.text.find('-') != std::string::npos)
    return;
  const std::string* const workers = known(script, "CCL_WORKER_COUNT", launch);
  const long ranks = ranks_per_node_of(script, launch);
  const long each = workers == nullptr ? 1 : parse_natural(*workers).value_or(-1);
  const auto entries = static_cast<long>(split(affinity->value.text, ',').size());
  if (ranks > 0 && each > 0 && entries != ranks * each)
    findings.add(
        "worker-affinity-length", affinity->name_span,
        fmt::format("CCL_WORKER_AFFINITY has {}; {} with {} each need {}", counted(entries, "core"),
                    counted(ranks, "rank"), counted(each, "worker"), ranks * each));
}

// What to type for the name of the job's first node.
std::string first_node(std::string_view system) {
  const Scheduler* const known = find_row<Scheduler>(system);
  if (known == nullptr || known->first_host.empty())
    return "the name of the job's first node, as the others know it";
  return fmt::format("export MASTER_ADDR=$({})", known->first_host);
}

void rendezvous(const Script& script, const Launch& launch, Findings& findings) {
  const Setting* const address = script.given("MASTER_ADDR", launch);
  const long nodes = nodes_of(script, launch);
  if (address != nullptr && address->value.known() && is_loopback(address->value.text) && nodes > 1)
    findings.add("address-loopback", address->name_span,
                 fmt::format("MASTER_ADDR={} on {} nodes: each node connects to itself",
                             address->value.text, nodes),
                 first_node(script.request.system));
  if (address != nullptr && !address->value_span.empty()) {
    const std::string_view text = script.shell.at(address->value_span);
    const bool all =
        text.find("hostname -I") != text.npos || text.find("hostname --all-ip") != text.npos;
    const bool cut = text.find('|') != text.npos;
    if (all && !cut)
      findings.add("several-addresses", address->name_span,
                   "hostname -I prints all addresses of the node in one line",
                   "hostname -I | awk '{print $1}', or the host's name");
  }
  const Setting* const port = script.given("MASTER_PORT", launch);
  if (port == nullptr || number_of(port->value) <= 0) return;
  // A job that asks for nodes and no part of them has whole ones; --mem=0 is all of a node's memory.
  const Ask* const memory = script.ask({"--mem"});
  const bool parts = script.ask({"--gres", "--gpus", "--gpus-per-node", "--gpus-per-task",
                                 "--cpus-per-task", "--mem", "--mem-per-cpu", "--mem-per-gpu",
                                 "--ntasks", "--ntasks-per-node"}) != nullptr;
  const bool alone = script.ask({"--exclusive"}) != nullptr || script.request.nodes > 1 ||
                     script.request.system != "slurm" || (script.request.nodes == 1 && !parts) ||
                     (memory != nullptr && memory->value == "0");
  if (!alone)
    findings.add(
        "port-for-all", port->name_span,
        fmt::format(
            "MASTER_PORT={}: another job on the same node with the same script takes the same port",
            port->value.text),
        "export MASTER_PORT=$((10000 + SLURM_JOB_ID % 50000))");
}

// The word that a setting is given in the text; nullptr: none, or in the syntax of csh.
const Word* word_of(const Script& script, const Setting& setting) {
  for (const Assignment& one : script.shell.commands[setting.command].assignments)
    if (one.name == setting.name) return &one.value;
  return nullptr;
}

// MASTER_ADDR=$SLURM_JOB_NODELIST, MASTER_ADDR=$PBS_O_HOST, NCCL_SOCKET_IFNAME=lo
void address_of(const Script& script, const Setting& one, Findings& findings) {
  if ((one.name == "NCCL_SOCKET_IFNAME" || one.name == "GLOO_SOCKET_IFNAME") && one.exported &&
      one.value.known() && (one.value.text == "lo" || one.value.text == "=lo") &&
      script.request.nodes > 1)
    findings.add("interface-loopback", one.name_span,
                 fmt::format("{}={} on {} nodes: the loopback interface reaches no other node",
                             one.name, one.value.text, script.request.nodes));
  const Word* const word = one.name == "MASTER_ADDR" ? word_of(script, one) : nullptr;
  if (word == nullptr || word->parts.size() != 1 ||
      word->parts.front().kind != Part::Kind::parameter)
    return;
  const Part& part = word->parts.front();
  const bool list = std::ranges::any_of(rows<Scheduler>(), [&](const Scheduler& system) {
    return system.hosts_file == part.text ||
           std::ranges::count(system.hosts_variables, std::string_view(part.text)) > 0;
  });
  if (list && part.rest.empty() && script.request.nodes != 1)
    findings.add(
        "address-is-list", one.name_span,
        fmt::format("{} lists all nodes of the job, and MASTER_ADDR must be one host", part.text),
        first_node(script.request.system));
  if (has_word(words_named("submitters"), part.text))
    findings.add(
        "address-of-submitter", one.name_span,
        fmt::format("{} is the machine that the job was submitted from, where no rank runs",
                    part.text),
        first_node(script.request.system));
}

// HH:MM:SS and its relatives, as Slurm reads them.
bool is_slurm_time(std::string_view text) {
  if (text.empty() || text.find_first_of("$%{<?") != text.npos) return true;
  if (to_lower(text) == "unlimited" || to_lower(text) == "infinite") return true;
  return text.find_first_not_of("0123456789:-") == text.npos &&
         std::ranges::count(text, '-') <= 1 && std::ranges::count(text, ':') <= 2;
}

void own_devices(Span span, Findings& findings) {
  findings.add("devices-per-task", span,
               "--gpus-per-task shows each task its own GPU only: NCCL cannot use direct "
               "transfers between GPUs of the node, and LOCAL_RANK is not a device index",
               "--gpus-per-node=N, and let each rank take device LOCAL_RANK");
}

// The ranks may be Python: the program is unknown or a script, or the line has python, a container or torchrun in it.
bool may_be_python(const Script& script, const Launch& launch) {
  if (is_planned(launch)) return false;
  if (launch.inner.empty() || !launch.inner.front().value.known() ||
      launch.inner.front().text().ends_with("sh"))
    return true;
  const auto is_one = [](const Text& word) {
    const std::string& text = word.text();
    return text.ends_with(".py") || is_python(std::string_view(text).substr(text.rfind('/') + 1));
  };
  return std::ranges::any_of(launch.inner, is_one) ||
         std::ranges::any_of(script.launches,
                             [&](const Launch& one) { return around(script, one) == &launch; });
}

void asks(const Script& script, Findings& findings) {
  const RequestOfJob& request = script.request;
  const Ask* const time = script.ask({"--time"});
  if (time != nullptr && request.system == "slurm" && !is_slurm_time(time->value))
    findings.add("bad-time", time->span,
                 fmt::format("\"{}\" is not a time limit", shown(time->value, 40)),
                 "HH:MM:SS, D-HH:MM:SS, or minutes");
  const Ask* const tasks = script.ask({"--ntasks"});
  if (request.system == "slurm" && request.nodes > 0 && request.tasks > 0 &&
      request.tasks_per_node > 0 && request.tasks > request.nodes * request.tasks_per_node &&
      tasks != nullptr)
    findings.add("tasks-contradict", tasks->span,
                 fmt::format("--ntasks={} is more than {} with {} each", request.tasks,
                             counted(request.nodes, "node"), request.tasks_per_node));
  const Ask* const per_task = script.ask({"--gpus-per-task"});
  const Ask* const binding = script.ask({"--gpu-bind"});
  const bool shared = request.tasks_per_node > 1 ||
                      (request.tasks_per_node == 0 && request.tasks > std::max(request.nodes, 1L));
  // The batch script itself sees all GPUs; only steps have tasks.
  const bool steps = std::ranges::any_of(script.launches, [&](const Launch& one) {
    return is_slurm(one) && !is_tool(one) && may_be_python(script, one);
  });
  if (per_task != nullptr && shared && steps && (binding == nullptr || binding->value != "none"))
    own_devices(per_task->span, findings);
}

// Lines of the host file: one for each of the chunk's MPI processes.
void node_file(const Script& script, Findings& findings) {
  if (script.request.system != "pbs" || script.request.tasks_per_node < 2) return;
  for (const Setting& one : script.settings) {
    const bool nodes = to_lower(one.name).find("node") != std::string::npos;
    if (one.value.kind != Value::Kind::node_lines || !nodes || one.value_span.empty()) continue;
    if (script.shell.at(one.value_span).find("uniq") != std::string_view::npos ||
        script.shell.at(one.value_span).find("sort -u") != std::string_view::npos)
      continue;
    findings.add(
        "node-file-lines", one.name_span,
        fmt::format("PBS_NODEFILE has {} lines for each node (mpiprocs={}): {} is too large",
                    script.request.tasks_per_node, script.request.tasks_per_node, one.name),
        fmt::format("{}=$(sort -u \"$PBS_NODEFILE\" | wc -l)", one.name));
  }
}

}  // namespace

void check_settings(const Script& script, Findings& findings) {
  for (const Launch& launch : script.launches) {
    masks(script, launch, findings);
    workers(script, launch, findings);
    rendezvous(script, launch, findings);
    const Option* const devices = launch.option({"--gpus-per-task"});
    if (devices == nullptr || !is_slurm(launch)) continue;
    const Option* const binding = launch.option({"--gpu-bind"});
    const bool all_visible = binding != nullptr && binding->value.text() == "none";
    const long each = ranks_per_node_of(script, launch);
    if (!all_visible && may_be_python(script, launch) &&
        (each > 1 ||
         (each < 0 && ranks_of(script, launch) > std::max(nodes_of(script, launch), 1L))))
      own_devices(devices->span, findings);
  }
  asks(script, findings);
  node_file(script, findings);
  for (const Setting& one : script.settings) {
    address_of(script, one, findings);
    mask_from_rank(script, one, findings);
  }
}

}  // namespace hpclaunch::lint
