// What is set for devices, networks and the rendezvous, and what the job asks for.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hpclaunch/text.h"
#include "lint/counts.h"

namespace hpclaunch::lint {

namespace {

const std::string* known(const Script& script, const char* name, const Launch& launch) {
  const Setting* const given = script.given(name, launch);
  return given == nullptr || !given->value.known() ? nullptr : &given->value.text;
}

struct Costly {
  std::string_view name;
  std::string_view values;  ///< separated by '|'
  bool for_debugging;
  std::string_view why;
};
constexpr Costly kCostly[] = {
    {"NCCL_P2P_DISABLE", "1", false, "GPUs of one node then exchange data through host memory"},
    {"NCCL_IB_DISABLE", "1", false, "nodes then exchange data through IP sockets"},
    {"NCCL_SHM_DISABLE", "1", false, "ranks of one node then use the network"},
    {"NCCL_NET", "Socket|socket", false, "nodes then exchange data through IP sockets"},
    {"FI_PROVIDER", "tcp|sockets|udp|tcp;ofi_rxm", false, "the fabric is not used"},
    {"CUDA_LAUNCH_BLOCKING", "1", true, "each kernel is waited for"},
    {"HIP_LAUNCH_BLOCKING", "1", true, "each kernel is waited for"},
    {"AMD_SERIALIZE_KERNEL", "1|2|3", true, "kernels run one after the other"},
    {"PYTORCH_NO_CUDA_MEMORY_CACHING", "1", true, "each tensor allocates device memory anew"},
    {"TORCH_DISTRIBUTED_DEBUG", "DETAIL", true,
     "each collective is checked by further collectives"},
    {"NCCL_DEBUG", "TRACE", true, "each call is logged by each rank"},
    {"FI_LOG_LEVEL", "debug|trace", true, "each operation of the network is logged by each rank"},
};

void costly(const Script& script, Findings& findings) {
  for (const Costly& row : kCostly) {
    const auto found = script.by_name.find(row.name);
    if (found == script.by_name.end()) continue;
    const Setting& one = script.settings[found->second.back()];
    if (!one.exported || one.conditional || !one.value.known()) continue;
    if (std::ranges::count(split(row.values, '|'), std::string_view(one.value.text)) == 0) continue;
    const std::string message = fmt::format("{}={}: {}", row.name, one.value.text, row.why);
    if (row.for_debugging)
      findings.add("debug-setting", one.name_span, message);
    else
      findings.add("slow-setting", one.name_span, message);
  }
}

void masks(const Script& script, const Launch& launch, Findings& findings) {
  static constexpr std::array kMasks = {"CUDA_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES",
                                        "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};
  const long ranks = ranks_per_node_of(script, launch);
  for (const char* name : kMasks) {
    const Setting* const given = script.given(name, launch);
    if (given == nullptr || !given->value.known() || given->value.text.empty()) continue;
    const std::size_t devices = split(given->value.text, ',').size();
    if ((starts_ranks(launch) || is_agent(launch)) && devices == 1 && ranks > 1)
      findings.add("one-device-for-all", given->name_span,
                   fmt::format("{}={}: all {} ranks of a node share one device", name,
                               given->value.text, ranks),
                   fmt::format("omit {}, and let each rank take device LOCAL_RANK", name));
    if (is_slurm(launch) &&
        launch.option("--gpu-bind --gpus-per-task --gpus-per-node --gres") != nullptr)
      findings.add(
          "mask-and-option", given->name_span,
          fmt::format("{}={} is set for srun, whose options give each task devices of its own",
                      name, given->value.text));
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

void intel_mask(const Script& script, const Launch& launch, Findings& findings) {
  const Setting* const mask = script.given("ZE_AFFINITY_MASK", launch);
  const std::string* const hierarchy = known(script, "ZE_FLAT_DEVICE_HIERARCHY", launch);
  if (mask == nullptr || !mask->value.known() || hierarchy == nullptr) return;
  if (*hierarchy == "FLAT" && mask->value.text.find('.') != std::string::npos)
    findings.add(
        "affinity-mask-form", mask->name_span,
        fmt::format(
            "ZE_AFFINITY_MASK={} names tiles of devices; under ZE_FLAT_DEVICE_HIERARCHY=FLAT each "
            "tile is a device of its own, and none is visible",
            mask->value.text),
        "ZE_AFFINITY_MASK=0,1,... with numbers of tiles, or ZE_FLAT_DEVICE_HIERARCHY=COMPOSITE");
}

void network(const Script& script, const Launch& launch, Findings& findings) {
  const std::string* const protocol = known(script, "FI_CXI_RDZV_PROTO", launch);
  if (protocol != nullptr && *protocol == "alt_read") {
    const Option* const typed = launch.option("--network --setattr -S");
    const Ask* const asked = script.ask("--network --setattr");
    const auto allows = [](std::string_view text) {
      return text.find("rdzv_get") != std::string_view::npos;
    };
    const bool allowed =
        (typed != nullptr && (allows(typed->value.text()) || !typed->value.value.known())) ||
        (asked != nullptr && allows(asked->value));
    if (!allowed && (is_slurm(launch) || launch.kind == "flux run"))
      findings.add("alt-read-without-flag", script.given("FI_CXI_RDZV_PROTO", launch)->name_span,
                   "FI_CXI_RDZV_PROTO=alt_read without the option that switches rdzv_get off: "
                   "libfabric warns and takes its default",
                   is_slurm(launch) ? "srun --network=disable_rdzv_get"
                                    : "flux run --setattr=rdzv_get_en=0");
  }
  const Setting* const affinity = script.given("CCL_WORKER_AFFINITY", launch);
  const std::string* const workers = known(script, "CCL_WORKER_COUNT", launch);
  const long ranks = ranks_per_node_of(script, launch);
  if (affinity != nullptr && affinity->value.known() && affinity->value.text != "auto" &&
      ranks > 0 && affinity->value.text.find('-') == std::string::npos) {
    const long each = workers == nullptr ? 1 : parse_natural(*workers).value_or(-1);
    const auto entries = static_cast<long>(split(affinity->value.text, ',').size());
    if (each > 0 && entries != ranks * each)
      findings.add("worker-affinity-length", affinity->name_span,
                   fmt::format("CCL_WORKER_AFFINITY has {}; {} with {} each need {}",
                               counted(entries, "core"), counted(ranks, "rank"),
                               counted(each, "worker"), ranks * each));
  }
}

// What to type for the name of the job's first node.
std::string first_node(std::string_view system) {
  if (system == "slurm")
    return "export MASTER_ADDR=$(scontrol show hostnames \"$SLURM_JOB_NODELIST\" | head -n 1)";
  if (system == "pbs") return "export MASTER_ADDR=$(head -n 1 \"$PBS_NODEFILE\")";
  return "the name of the job's first node, as the others know it";
}

void rendezvous(const Script& script, const Launch& launch, Findings& findings) {
  const Setting* const address = script.given("MASTER_ADDR", launch);
  const long nodes = nodes_of(script, launch);
  if (address != nullptr && address->value.known() && is_loopback(address->value.text) && nodes > 1)
    findings.add("address-loopback", address->name_span,
                 fmt::format("MASTER_ADDR={} on {} nodes: each would connect to itself",
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
  const bool alone = script.ask("--exclusive") != nullptr || script.request.nodes > 1 ||
                     script.request.system != "slurm";
  if (port != nullptr && number_of(port->value) > 0 && !alone)
    findings.add(
        "port-for-all", port->name_span,
        fmt::format(
            "MASTER_PORT={}: another job on the same node with the same script takes the same port",
            port->value.text),
        "export MASTER_PORT=$((10000 + SLURM_JOB_ID % 50000))");
}

// HH:MM:SS and its relatives, which the systems read differently.
bool is_time(std::string_view system, std::string_view text) {
  if (text.empty() || text.find_first_of("$%{") != text.npos) return true;
  if (system == "slurm") {
    if (to_lower(text) == "unlimited" || to_lower(text) == "infinite") return true;
    return text.find_first_not_of("0123456789:-") == text.npos &&
           std::ranges::count(text, '-') <= 1 && std::ranges::count(text, ':') <= 2;
  }
  return text.find_first_not_of("0123456789:.") == text.npos;
}

void asks(const Script& script, Findings& findings) {
  const RequestOfJob& request = script.request;
  const Ask* const time = script.ask("--time -l\x1fwalltime");
  if (time != nullptr && (request.system == "slurm" || request.system == "pbs") &&
      !is_time(request.system, time->value))
    findings.add(
        "bad-time", time->span, fmt::format("\"{}\" is no time", shown(time->value, 40)),
        request.system == "slurm" ? "HH:MM:SS, D-HH:MM:SS, or minutes" : "HH:MM:SS, or seconds");
  const Ask* const tasks = script.ask("--ntasks");
  if (request.system == "slurm" && request.nodes > 0 && request.tasks > 0 &&
      request.tasks_per_node > 0 && request.tasks > request.nodes * request.tasks_per_node &&
      tasks != nullptr)
    findings.add("tasks-contradict", tasks->span,
                 fmt::format("--ntasks={} is more than {} with {} each", request.tasks,
                             counted(request.nodes, "node"), request.tasks_per_node));
  const Ask* const per_task = script.ask("--gpus-per-task");
  if (per_task != nullptr && (request.tasks_per_node > 1 || request.tasks > 1))
    findings.add("devices-per-task", per_task->span,
                 "--gpus-per-task shows each task its own GPU only: NCCL cannot use direct "
                 "transfers between GPUs of the node, and LOCAL_RANK is no index of a device",
                 "--gpus-per-node=N, and let each rank take device LOCAL_RANK");
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

// mkdir below /tmp in a job of several nodes: the others lack it.
void local_folders(const Script& script, Findings& findings) {
  if (script.request.nodes < 2 || script.launches.empty()) return;
  for (std::size_t i = 0; i < script.shell.commands.size(); ++i) {
    const Command& command = script.shell.commands[i];
    if (command.words.size() < 2 || script.shell.at(command.words.front().span) != "mkdir")
      continue;
    const bool launched =
        std::ranges::any_of(script.launches, [&](const Launch& one) { return one.command == i; });
    if (launched || command.function != 0) continue;
    for (const Word& word : command.words) {
      const std::string_view path = script.shell.at(word.span);
      if (!path.starts_with("/tmp/") && !path.starts_with("\"/tmp/")) continue;
      findings.add(
          "folder-on-first-node", word.span,
          fmt::format("{} is made on the first of {} nodes", shown(path, 60), script.request.nodes),
          script.request.system == "slurm" ? "srun --ntasks-per-node=1 --overlap mkdir -p ..."
                                           : "mpiexec --ppn 1 ... mkdir -p ...");
      break;
    }
  }
}

}  // namespace

void check_settings(const Script& script, Findings& findings) {
  costly(script, findings);
  for (const Launch& launch : script.launches) {
    masks(script, launch, findings);
    intel_mask(script, launch, findings);
    network(script, launch, findings);
    rendezvous(script, launch, findings);
  }
  asks(script, findings);
  node_file(script, findings);
  local_folders(script, findings);
}

}  // namespace hpclaunch::lint
