// The node that is planned for: drift, granted devices, and which of them can be reached.
#include <stdlib.h>
#include <sys/stat.h>
#include <unistd.h>

#include <filesystem>
#include <fstream>

#include "support/catch.h"
#include "world/node.h"

using namespace hpclaunch;
using namespace hpclaunch::job;

namespace {

Topology node_of(int numa, int cores, int devices) {
  Topology node;
  for (int n = 0; n < numa; ++n) node.numa_nodes.push_back({n, 0, {}});
  for (int c = 0; c < cores; ++c) {
    Core core{-1, c * numa / cores, {}};
    core.pus.add(c);
    node.numa_nodes[static_cast<std::size_t>(core.numa)].pus |= core.pus;
    node.cores.push_back(core);
  }
  node.allowed = node.all_pus();
  for (int d = 0; d < devices; ++d) {
    Device device;
    device.index = d;
    device.vendor = "nvidia";
    device.pci = "0000:0" + std::to_string(d + 1) + ":00.0";
    device.numa = d * numa / devices;
    device.pus = node.numa_nodes[static_cast<std::size_t>(device.numa)].pus;
    node.devices.push_back(device);
  }
  return node;
}

NodeModel model_of(Topology topology) {
  NodeModel model;
  model.name = "gpu";
  model.reserved.add(0);
  model.topology = std::move(topology);
  model.topology.allowed -= model.reserved;
  return model;
}

struct Settled {
  JobNode node;
  std::vector<Diagnostic> diagnostics;
};

Settled settle(const NodeModel& model, const std::optional<Topology>& live, OnDrift how,
               const EnvSnapshot& env = EnvSnapshot(), int granted = 0) {
  Settled settled;
  settled.node = settle_node(&model, live, granted, granted_devices(env, find_batch(env)), how,
                             settled.diagnostics);
  return settled;
}

}  // namespace

TEST_CASE("a node that is the profile's gives nothing to say", "[node]") {
  const NodeModel model = model_of(node_of(4, 8, 4));
  Topology live = node_of(4, 8, 0);
  live.allowed = *CpuSet::parse("0-3");
  const Settled settled = settle(model, live, OnDrift::fail);
  CHECK(settled.diagnostics.empty());
  CHECK(settled.node.topology.allowed.to_list() == "1-3");
  CHECK(settled.node.topology.devices.size() == 4);
  CHECK(settled.node.whole.to_list() == "1-7");
}

TEST_CASE("another NUMA mode, in each way", "[node]") {
  const NodeModel model = model_of(node_of(4, 8, 4));
  const Topology live = node_of(1, 8, 0);
  Settled settled = settle(model, live, OnDrift::warn);
  REQUIRE(settled.diagnostics.size() == 1);
  CHECK(settled.diagnostics[0].id == "node-differs");
  CHECK(settled.diagnostics[0].severity == Severity::warning);
  CHECK_THAT(settled.diagnostics[0].message, ContainsSubstring("1 NUMA node, planned 4"));
  CHECK(settled.node.topology.numa_nodes.size() == 4);
  settled = settle(model, live, OnDrift::fail);
  CHECK(settled.diagnostics[0].severity == Severity::error);
  settled = settle(model, live, OnDrift::replan);
  CHECK(settled.diagnostics[0].severity == Severity::note);
  const Topology& node = settled.node.topology;
  CHECK(node.numa_nodes.size() == 1);
  CHECK(node.allowed.to_list() == "1-7");  // what the site keeps stays kept
  REQUIRE(node.devices.size() == 4);       // nobody looked for devices here
  CHECK(node.devices[0].numa == 0);
  CHECK(node.devices[3].numa == -1);
  CHECK(settled.node.model == &model);
  CHECK(check_topology(node));
}

TEST_CASE("fewer CPUs because fewer were granted", "[node]") {
  const NodeModel model = model_of(node_of(4, 8, 4));
  Topology live = node_of(4, 8, 4);
  live.cores.resize(4);
  for (NumaNode& numa : live.numa_nodes) numa.pus &= live.all_pus();
  for (Device& device : live.devices) device.pus &= live.all_pus();
  live.allowed = live.all_pus();
  CHECK(settle(model, live, OnDrift::fail, EnvSnapshot(), 4).diagnostics.empty());
  CHECK(settle(model, live, OnDrift::fail, EnvSnapshot(), 4).node.topology.allowed.to_list() ==
        "1-3");
  CHECK(settle(model, live, OnDrift::fail, EnvSnapshot(), 7).diagnostics.size() == 1);
  live = node_of(4, 8, 4);
  live.devices.resize(2);
  const EnvSnapshot two({"SLURM_JOB_ID=1", "SLURM_JOB_GPUS=0,1"});
  CHECK(settle(model, live, OnDrift::fail, two).diagnostics.empty());
  CHECK_THAT(settle(model, live, OnDrift::warn).diagnostics[0].message,
             ContainsSubstring("device 3 at 0000:04:00.0 is missing"));
}

TEST_CASE("a model that leaves places to the node", "[node]") {
  NodeModel model = model_of(node_of(4, 8, 4));
  model.live = true;
  const auto devices = [&](const Topology& live, const std::vector<std::string>& env) {
    return settle(model, live, OnDrift::fail, EnvSnapshot(env)).node.topology.devices;
  };
  const Topology bare = node_of(4, 8, 0);
  CHECK(devices(bare, {}).empty());
  CHECK(devices(bare, {"CUDA_VISIBLE_DEVICES=-1"}).empty());
  CHECK(devices(bare, {"CUDA_VISIBLE_DEVICES=NoDevFiles"}).empty());
  CHECK(devices(bare, {"SLURM_JOB_ID=1", "SLURM_GPUS_ON_NODE=2"}).size() == 2);
  const auto masked = devices(bare, {"CUDA_VISIBLE_DEVICES=2,3"});  // the plan takes these two
  REQUIRE(masked.size() == 4);
  CHECK(masked[3].pus.empty());
  const auto seen = devices(node_of(2, 8, 3), {"SLURM_JOB_ID=1", "SLURM_JOB_GPUS=1"});
  REQUIRE(seen.size() == 3);
  CHECK(seen[2].numa == 1);
}

TEST_CASE("what is typed about drift, and what --verify strict means", "[node]") {
  Request args;
  CHECK(on_drift(args) == OnDrift::warn);
  args.verify = Verify::strict;
  CHECK(on_drift(args) == OnDrift::fail);
  args.on_drift = OnDrift::replan;
  CHECK(on_drift(args) == OnDrift::replan);
  args.on_drift = OnDrift::warn;
  CHECK(on_drift(args) == OnDrift::warn);
}

TEST_CASE("devices that can be reached", "[node]") {
  const Topology live = node_of(2, 4, 3);
  using Found = std::optional<std::vector<int>>;
  CHECK(reachable_devices(live, {}) == Found());
  CHECK(reachable_devices(live, {{"0000:01:00.0", "/dev/nvidia0", true},
                                 {"0000:02:00.0", "/dev/nvidia1", false},
                                 {"0000:03:00.0", "/dev/nvidia2", true}}) ==
        Found(std::vector<int>{0, 2}));
  CHECK(reachable_devices(live, {{"0000:02:00.0", "/dev/nvidia1", true}}) ==
        Found(std::vector<int>{1}));
  Topology other = live;
  other.devices[0].vendor = "amd";  // its driver would list a device that is there
  CHECK(reachable_devices(other, {{"0000:02:00.0", "/dev/nvidia1", true}}) == Found());
  other = live;
  other.devices[2].pci = other.devices[1].pci;  // partitions
  CHECK(reachable_devices(other, {{"0000:01:00.0", "/dev/nvidia0", true},
                                  {"0000:02:00.0", "/dev/nvidia1", true}}) == Found());
}

TEST_CASE("device files by their addresses", "[node]") {
  char folder[] = "/tmp/hpclaunch-files-XXXXXX";
  REQUIRE(mkdtemp(folder) != nullptr);
  const std::string root = folder;
  const auto write = [&](const std::string& path, const std::string& text) {
    std::filesystem::create_directories((root + path).substr(0, (root + path).rfind('/')));
    std::ofstream(root + path) << text;
  };
  write("/proc/driver/nvidia/gpus/0000:1B:00.0/information", "Model: x\nDevice Minor: \t 1\n");
  write("/proc/driver/nvidia/gpus/0000:0b:00.0/information", "Device Minor: 0\n");
  write("/proc/driver/nvidia/gpus/0000:0c:00.0/information", "nothing of use\n");
  write("/dev/nvidia1", "");
  write("/sys/devices/0000:29:00.0/vendor", "0x1002\n");
  write("/sys/class/drm/card0/x", "");
  std::filesystem::create_directories(root + "/sys/class/drm/renderD128");
  std::filesystem::create_symlink("../../../devices/0000:29:00.0",
                                  root + "/sys/class/drm/renderD128/device");
  write("/dev/dri/renderD128", "");
  const auto files = device_files(false, root);
  REQUIRE(files.size() == 3);
  CHECK(files[0].pci == "0000:0b:00.0");
  CHECK_FALSE(files[0].usable);
  CHECK(files[1].pci == "0000:1b:00.0");
  CHECK(files[1].usable);
  CHECK(files[2].path == root + "/dev/dri/renderD128");
  CHECK(files[2].usable);
  CHECK(device_files(true, root)[1].usable);
  std::filesystem::remove(root + "/dev/dri/renderD128");
  CHECK_FALSE(device_files(true, root)[2].usable);
  std::filesystem::remove_all(root);
}

namespace {

// What a job on n1 and n2 has, seen from n1.
Result<JobNode> found_on_n1(const char* scheduler, HostList hosts, const Topology& live) {
  World world;
  world.host = "n1";
  world.read_file = [](const std::string& path, std::size_t) -> Result<std::string> {
    return Error{ErrorKind::not_found, path};
  };
  world.probe_node = [&](double, const std::function<void()>& meanwhile) -> Result<LiveNode> {
    meanwhile();
    return LiveNode{live, {}};
  };
  world.device_files = [](bool) { return std::vector<DeviceFile>(); };
  Site site;
  site.batch.scheduler = find_row<Scheduler>(scheduler);
  site.is_here = true;
  site.hosts = std::move(hosts);
  if (site.hosts.names.empty()) site.hosts.names = {"n1", "n2"};
  Diagnostics diagnostics;
  return find_node(
      Request{}, world, site, [] {}, diagnostics);
}

Topology two_threads(int cores, const char* allowed) {
  Topology node;
  for (int c = 0; c < cores; ++c) {
    Core core;
    core.pus = *CpuSet::parse(std::to_string(c) + "," + std::to_string(c + cores));
    node.cores.push_back(core);
  }
  node.allowed = *CpuSet::parse(allowed);
  return node;
}

}  // namespace

TEST_CASE("what this node allows is a part where the batch system gives no numbers",
          "[node][parts]") {
  const Topology part = two_threads(8, "1,3,9,11");
  for (const char* scheduler : {"pbs", "flux", "lsf", "sge", "cobalt"}) {
    const Result<JobNode> node = found_on_n1(scheduler, {}, part);
    REQUIRE(node);
    CHECK((node->part && node->known && node->assumed));
    CHECK(node->granted == std::vector<int>{4, 4});
  }
  HostList hosts;
  hosts.slots_are_cores = true;
  for (const auto& [slots, granted] : {std::pair(std::vector{4, 6}, std::vector{4, 6}),
                                       {std::vector{2, 3}, std::vector{4, 6}},
                                       {std::vector{3, 5}, std::vector{4, 4}}}) {
    hosts.slots = slots;
    CHECK(found_on_n1("lsf", hosts, part)->granted == granted);
  }
  HostList one;
  one.names = {"n1"};
  CHECK_FALSE(found_on_n1("pbs", one, part)->part);  // its CPUs are known
  HostList elsewhere;
  elsewhere.names = {"n2", "n1"};
  CHECK_FALSE(found_on_n1("pbs", elsewhere, part)->part);
  CHECK_FALSE(found_on_n1("pbs", {}, two_threads(8, "0-15"))->part);
}

TEST_CASE("what Slurm counts as a CPU is told by what this node allows", "[node][parts]") {
  const auto granted = [](std::vector<int> counts, const char* allowed) {
    HostList hosts;
    hosts.granted = std::move(counts);
    const Result<JobNode> node = found_on_n1("slurm", hosts, two_threads(8, allowed));
    REQUIRE(node);
    CHECK_FALSE(node->assumed);
    return node->granted;
  };
  CHECK(granted({4, 2}, "0-1,8-9") == std::vector<int>{4, 2});  // hardware threads
  CHECK(granted({2, 4}, "0-1,8-9") == std::vector<int>{4, 8});  // cores
  CHECK(granted({4, 8}, "0-15") == std::vector<int>{4, 8});     // nothing is told
  CHECK(granted({8, 8}, "0-15").empty());                       // all cores
  CHECK(granted({16, 16}, "0-15").empty());                     // all threads
  CHECK(granted({8, 8}, "0-3,8-11") == std::vector<int>{8, 8});
  CHECK(granted({16, 8}, "0-15") == std::vector<int>{16, 8});
}

TEST_CASE("grants by name limit each host to its own", "[node][parts]") {
  const auto set = [](const char* list) { return *CpuSet::parse(list); };
  const auto found = [&](const Topology& here, std::vector<HostGrant> grants) {
    HostList hosts;
    hosts.grants = std::move(grants);
    hosts.grants_by = "flux resource R";
    const Result<JobNode> node = found_on_n1("flux", hosts, here);
    REQUIRE(node);
    return *node;
  };
  // Cores in hwloc's order, two threads each.
  JobNode node = found(two_threads(8, "0-3,8-11"), {{set("0-3"), {}}, {set("4-7"), {}}});
  CHECK_FALSE((node.part || node.assumed));
  REQUIRE(node.grants.size() == 2);
  CHECK(node.grants[0].cpus == set("0-3,8-11"));
  CHECK(node.grants[1].cpus == set("4-7,12-15"));
  CHECK(node.grant_of == std::vector<int>{0, 1});
  CHECK_FALSE(node.grants[0].devices);
  // All of each node: nothing to say. A mask of this process limits the plan.
  CHECK(found(two_threads(8, "0-15"), {{set("0-7"), {}}, {set("0-7"), {}}}).grants.empty());
  node = found(two_threads(8, "0-1,8-9"), {{set("0-7"), {}}, {set("0-7"), {}}});
  REQUIRE(node.grants.size() == 1);
  CHECK(node.grants[0].cpus == set("0-1,8-9"));
  CHECK(node.grant_of == std::vector<int>{0, 0});
  // Cores that this node does not have: of another kind, so what is allowed here counts.
  CHECK(found(two_threads(8, "0-3"), {{set("0-15"), {}}, {set("0-15"), {}}}).assumed);
  // Devices, also of nodes that have none, and partitions of one.
  Topology gpus = node_of(2, 8, 4);
  node = found(gpus, {{set("0-7"), set("2-3")}, {set("0-7"), set("0-1")}});
  REQUIRE(node.grants.size() == 2);
  CHECK(node.grants[0].devices == std::vector<int>{2, 3});
  CHECK(node.grants[1].devices == std::vector<int>{0, 1});
  CHECK(node.grants_mask == "2,3");
  node = found(gpus, {{set("0-7"), {}}, {set("0-7"), set("1")}});
  CHECK(node.grants[0].devices == std::vector<int>{});
  CHECK(node.grants_mask == "-1");
  CHECK(found(gpus, {{set("0-7"), {}}, {set("0-7"), {}}}).grants.empty());  // it knows no GPU
  gpus = node_of(2, 8, 6);
  for (Device& device : gpus.devices) {
    device.partition = "TPX";
    device.pci = device.index < 3 ? "0000:01:00.0" : "0000:02:00.0";
  }
  node = found(gpus, {{set("0-7"), set("1")}, {set("0-7"), set("0")}});
  CHECK(node.grants[0].devices == std::vector<int>{3, 4, 5});
  CHECK(node.grants[1].devices == std::vector<int>{0, 1, 2});
}
