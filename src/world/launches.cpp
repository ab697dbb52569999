// What each launch of this user uses, told to the others.
#include "hpclaunch/launches.h"

#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <limits>
#include <nlohmann/json.hpp>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

using Json = nlohmann::json;

// "" where the user has none.
std::string folder_of_launches(bool create) {
  const std::string runtime = sys::runtime_folder(create);
  if (runtime.empty()) return "";
  std::string folder = runtime + "/launches";
  if (create) mkdir(folder.c_str(), S_IRWXU);
  return folder;
}

std::string file_name(const std::string& path) { return path.substr(path.rfind('/') + 1); }

// "python train.py"
std::string program_of(const std::vector<std::string>& command) {
  if (command.empty()) return "";
  std::string text = file_name(command.front());
  if (command.size() > 1 && !command[1].starts_with('-') && text.starts_with("python"))
    text += " " + file_name(command[1]);
  return text;
}

NodesInUse use_of(const NodeClass& one) {
  NodesInUse use;
  for (const RankPlan& rank : one.ranks) {
    use.cpus |= rank.cpus;
    use.unbound = use.unbound || rank.cpus.empty();
    for (const Slot& slot : rank.slots)
      if (const DeviceInUse device{slot.id(), slot.part};
          std::ranges::count(use.devices, device) == 0)
        use.devices.push_back(device);
  }
  std::ranges::sort(use.devices);
  return use;
}

NodesInUse nodes_from(const Json& json) {
  NodesInUse nodes;
  if (Result<HostNames> hosts = expand_hostlist(json.at("hosts").get<std::string>()); hosts)
    nodes.hosts = *std::move(hosts);
  if (const Result<CpuSet> cpus = CpuSet::parse(json.at("cpus").get<std::string>()); cpus)
    nodes.cpus = *cpus;
  nodes.unbound = json.at("unbound").get<bool>();
  nodes.devices = json.at("devices").get<std::vector<DeviceInUse>>();
  return nodes;
}

}  // namespace

RunningLaunch launch_of(const Plan& plan, std::string job) {
  RunningLaunch launch;
  launch.job = std::move(job);
  launch.program = program_of(plan.launch.command);
  launch.ranks = plan.world_size();
  if (plan.hosts.own >= 0) {  // it uses no other node
    const int own = plan.hosts.own;
    int node = 0;
    for (const NodeRun& run : plan.placement.layout)
      if (const int first = std::exchange(node, node + run.nodes); own >= first && own < node)
        launch.nodes.push_back(use_of(plan.placement.of(run)));
    launch.nodes.front().hosts.push_back(plan.hosts.names[static_cast<std::size_t>(own)]);
    return launch;
  }
  for (const NodeClass& one : plan.placement.classes) launch.nodes.push_back(use_of(one));
  if (launch.nodes.size() == 1) {  // compressed, as it is
    launch.nodes.front().hosts = plan.hosts.names;
    return launch;
  }
  std::size_t node = 0;
  for (const NodeRun& run : plan.placement.layout)
    for (int n = 0; n < run.nodes; ++n)
      launch.nodes[static_cast<std::size_t>(run.node_class)].hosts.push_back(
          plan.hosts.names[node++]);
  return launch;
}

std::string to_json(const RunningLaunch& launch) {
  Json nodes = Json::array();
  for (const NodesInUse& one : launch.nodes)
    nodes.push_back({{"hosts", host_ranges(one.hosts, std::numeric_limits<std::size_t>::max())},
                     {"cpus", one.cpus.to_list()},
                     {"unbound", one.unbound},
                     {"devices", one.devices}});
  const Json json = {{"job", launch.job},         {"pid", launch.pid},
                     {"program", launch.program}, {"started", launch.started},
                     {"ranks", launch.ranks},     {"nodes", std::move(nodes)}};
  return json.dump(-1, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::optional<RunningLaunch> parse_launch(std::string_view text) {
  try {
    const Json json = Json::parse(text);
    RunningLaunch launch;
    json.at("job").get_to(launch.job);
    json.at("pid").get_to(launch.pid);
    json.at("program").get_to(launch.program);
    json.at("started").get_to(launch.started);
    json.at("ranks").get_to(launch.ranks);
    for (const Json& one : json.at("nodes")) launch.nodes.push_back(nodes_from(one));
    return launch;
  } catch (const Json::exception&) {
    return std::nullopt;  // of another version
  }
}

std::vector<RunningLaunch> running_launches() {
  std::vector<RunningLaunch> launches;
  if (const std::string folder = folder_of_launches(false); !folder.empty())
    for (const std::string& text : sys::held_files(folder))
      if (std::optional<RunningLaunch> one = parse_launch(text); one && one->pid != getpid())
        launches.push_back(*std::move(one));
  std::ranges::stable_sort(launches, {}, &RunningLaunch::started);
  return launches;
}

LaunchTurn::LaunchTurn() {
  constexpr double kPatience = 30;
  if (const std::string runtime = sys::runtime_folder(true); !runtime.empty())
    lock_ = sys::take_turn(runtime + "/planning", kPatience);
}

LaunchTurn::~LaunchTurn() {
  if (lock_ >= 0) sys::end_turn(lock_);
}

int LaunchTurn::announce(const Plan& plan, const std::string& job) {
  const std::string folder = folder_of_launches(true);
  if (folder.empty()) return -1;
  RunningLaunch launch = launch_of(plan, job);
  launch.pid = getpid();
  launch.started = static_cast<long long>(sys::wall_clock());
  return sys::hold_file(fmt::format("{}/{}", folder, launch.pid), to_json(launch));
}

void withdraw_launch() {
  if (const std::string folder = folder_of_launches(false); !folder.empty())
    unlink(fmt::format("{}/{}", folder, getpid()).c_str());
}

}  // namespace hpclaunch::job
