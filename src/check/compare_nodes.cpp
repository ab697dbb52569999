// Facts of nodes: names, addresses, and what a job needs there before it starts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cmath>

#include "compare.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"

namespace hpclaunch::check {

namespace {

constexpr double kClockSeconds = 2;
constexpr unsigned long long kRoomBytes = 32u << 20;  // a container's default of /dev/shm is 64 MiB

// Is one of `found` an address of the node?
template <class Addresses>
bool meet(const Addresses& found, const NodeFacts& facts) {
  return std::ranges::any_of(facts.interfaces, [&](const Interface& one) {
    return std::ranges::find_first_of(found, one.addresses) != found.end();
  });
}

bool has_address(const NodeFacts& facts) {
  return std::ranges::any_of(facts.interfaces,
                             [](const Interface& one) { return !one.addresses.empty(); });
}

// The name of the node, or an address that the planned name has.
void compare_host(const Subject& at) {
  if (at.plan.hosts.own >= 0) return;  // this very node, whatever its platform calls it
  const Job& job = at.job;
  const std::string planned(at.plan.hosts.names[at.seat.node]);
  const std::string& found = at.host;
  const auto looked_up = job.seen.addresses.find(planned);
  const auto own = job.facts.find(found);
  const bool same = short_host(planned) == short_host(found)
                        ? same_host(planned, found)
                        : looked_up != job.seen.addresses.end() && own != job.facts.end() &&
                              meet(looked_up->second, *own->second);
  if (same) return;
  const bool of_job = job.hosts.count(short_host(found)) > 0;
  at.rank_differs("host", planned, found,
                  of_job
                      ? "the launcher uses another order of nodes, or distributes ranks otherwise"
                      : "the ranks run on a node outside of the plan, or its name differs",
                  of_job ? "use the job's own list of nodes, or a host file in the launcher's order"
                         : "compare the host list with the job's; hpclaunch plan shows it");
}

void compare_master(const Subject& at) {
  constexpr const char* kKind = "master-address";
  const NodeFacts& facts = *at.report.facts;
  const std::vector<std::string>& found = facts.master_resolves;
  const std::string& first = at.plan.hosts.names.front();
  if (!facts.master_problem.empty())
    return at.node_differs(kKind, fmt::format("MASTER_ADDR {} resolves", facts.master),
                           facts.master_problem, "the node cannot resolve the name",
                           "--master-addr with an IP address, or a name that every node resolves");
  if (at.plan.nodes() == 1 || found.empty()) return;
  const std::string planned = fmt::format("MASTER_ADDR {}: an address of {}", facts.master, first);
  if (std::all_of(found.begin(), found.end(), is_loopback))
    return at.node_differs(
        kKind, planned, "loopback: " + found.front(),
        at.seat.node == 0
            ? "/etc/hosts maps the node's own name to the loopback address, which other "
              "nodes cannot reach"
            : "each node would connect to itself",
        "--master-addr with an address that all nodes reach",
        at.seat.node == 0 ? Severity::warning : Severity::error);
  const NodeFacts* const own = at.job.facts_of.front();
  if (own != nullptr && has_address(*own) && !meet(found, *own))
    at.node_differs(kKind, planned, fmt::format("{}", fmt::join(found, ", ")),
                    "MASTER_ADDR is not the node of rank 0",
                    "unset MASTER_ADDR, or set it to " + first);
}

// PyTorch's Gloo takes the address that the node's own name leads to, where no interface is named.
void compare_own_name(const Subject& at) {
  const NodeFacts& facts = *at.report.facts;
  const std::vector<std::string>& found = facts.host_resolves;
  if (at.plan.nodes() < 2 || found.empty() || !std::ranges::all_of(found, is_loopback)) return;
  const std::string* interface = at.value("GLOO_SOCKET_IFNAME");
  const bool named = interface != nullptr && !interface->empty();
  std::string there = "NAME";
  for (const Interface& one : facts.interfaces)
    if (one.up && !one.addresses.empty() && there == "NAME") there = one.name;
  at.node_differs(
      "host-name", fmt::format("{}: an address that other nodes reach", at.host),
      "loopback: " + found.front(),
      named ? "/etc/hosts maps the node's own name to the loopback address; "
              "GLOO_SOCKET_IFNAME helps Gloo, and no other program"
            : "/etc/hosts maps the node's own name to the loopback address, and Gloo "
              "connects to where it leads",
      named ? "report it to the site" : fmt::format("--set GLOO_SOCKET_IFNAME={}", there),
      named ? Severity::note : Severity::warning);
}

void compare_port(const Subject& at) {
  const std::string& problem = at.report.facts->port_problem;
  if (at.seat.node != 0 || problem.empty()) return;
  const std::string* port = at.value("MASTER_PORT");
  at.node_differs("master-port", fmt::format("MASTER_PORT {} free", port ? *port : ""), problem,
                  "another process listens on it",
                  "let hpclaunch choose the port, or name a free one with --master-port");
}

void compare_interfaces(const Subject& at) {
  const std::vector<Interface>& interfaces = at.report.facts->interfaces;
  for (const std::string_view name : kInterfaceVariables) {
    const std::string* value = at.value(std::string(name));
    if (value == nullptr || value->empty()) continue;
    std::string problem = interface_problem(name, *value, interfaces);
    if (problem.empty() && at.plan.nodes() > 1 && (*value == "lo" || *value == "=lo"))
      problem = "lo reaches only the node itself";
    if (problem.empty()) continue;
    std::string there;
    for (const Interface& one : interfaces)
      if (one.up && !one.addresses.empty()) there += (there.empty() ? "" : ", ") + one.name;
    at.node_differs(
        "interface", fmt::format("{}={}", name, *value), std::move(problem),
        there.empty() ? "no interface of the node is up and has an address"
                      : fmt::format("usable there: {}", there),
        fmt::format("--set {}=NAME with one that every node has, or exclude the node", name));
  }
}

void compare_fabrics(const Subject& at) {
  const std::vector<std::string>& found = at.report.facts->fabrics;
  for (const Nic& nic : at.job.node.nics) {
    // Only these are names of the kernel's, /sys/class/cxi and /sys/class/infiniband.
    if (!nic.fabric.starts_with("cxi") && !nic.fabric.starts_with("mlx")) continue;
    if (std::find(found.begin(), found.end(), nic.fabric) != found.end()) continue;
    at.node_differs("fabric", nic.fabric,
                    found.empty() ? "none" : fmt::format("{}", fmt::join(found, ", ")),
                    "the network device is missing on the node, or its driver is not loaded",
                    "exclude the node, and report it to the site");
  }
}

void compare_program(const Subject& at) {
  const std::string& problem = at.report.facts->program_problem;
  if (!problem.empty())
    at.node_differs("program", "the program", problem,
                    "its file system is not mounted there, or the file exists on this node only",
                    "install it where every node sees it, or exclude the node");
}

void compare_room(const Subject& at) {
  for (const Room& room : at.report.facts->rooms) {
    const bool tight = room.problem.empty() && room.free_bytes < kRoomBytes;
    if (room.problem.empty() && !tight) continue;
    const bool shared = room.path == "/dev/shm";
    at.node_differs(
        "room", fmt::format("{} with {} free", room.path, human_bytes(kRoomBytes)),
        tight ? human_bytes(room.free_bytes) : room.problem,
        shared ? "files of an earlier job, or a small /dev/shm of a container; data loaders "
                 "and collectives need it"
               : "full, or missing on this node",
        shared ? "remove files of earlier jobs; in a container, use --ipc=host or --shm-size"
               : "--set TMPDIR=PATH with a directory that every node has",
        tight ? Severity::warning : Severity::error);
  }
}

void compare_bound_cpus(const Subject& at) {
  const CpuSet wanted = cpus_of(at.ranks);
  const Result<CpuSet> online = CpuSet::parse(at.report.facts->online);
  const Result<CpuSet> granted = CpuSet::parse(at.report.cpus);
  if (wanted.empty() || at.planned().part_first >= 0) return;
  if (online && !online->contains(wanted))
    at.node_differs("node-cpus", wanted.to_list(), at.report.facts->online,
                    "the node lacks planned CPUs: it is of another kind",
                    "exclude the node, or plan on a node of its kind (--node-type, --topology)");
  else if (at.job.seen.one_per_node && granted && !granted->contains(wanted))
    at.node_differs("node-cpus", wanted.to_list(), at.report.cpus,
                    "the job's control group (cpuset) allows only these", "request whole nodes");
}

// Processors and memory of another kind of node.
void compare_make(const Subject& at) {
  constexpr const char* kFix =
      "exclude the node, or plan on a node of its kind (--on-drift replan there, "
      "--node-type, --topology)";
  const NodeFacts& facts = *at.report.facts;
  const CpuSet all = at.job.node.all_pus();
  const Result<CpuSet> online = CpuSet::parse(facts.online);
  // Where bound CPUs are missing, node-cpus reports it.
  if (online && online->contains(cpus_of(at.ranks)) && *online != all && !all.empty())
    at.node_differs("node-differs", "CPUs " + all.to_list(), "CPUs " + facts.online,
                    online->contains(all)
                        ? "hardware threads that the planned node lacks"
                        : "cores or hardware threads are offline, or the node is of another kind",
                    kFix, Severity::warning);
  // HBM beside DDR has the same CPUs; the kernel's list has the nodes with CPUs.
  std::set<std::vector<int>> near;
  for (const NumaNode& numa : at.job.node.numa_nodes)
    if (!numa.pus.empty()) near.insert(numa.pus.to_vector());
  const Result<CpuSet> numa = CpuSet::parse(facts.numa);
  if (numa && !near.empty() && static_cast<int>(near.size()) != numa->count())
    at.node_differs("node-differs", counted(static_cast<long>(near.size()), "NUMA node"),
                    counted(numa->count(), "NUMA node"),
                    "another NUMA mode (NPS, sub-NUMA clustering)", kFix, Severity::warning);
}

// By PCI address, where the planned devices have one.
void compare_addresses(const Subject& at) {
  const std::vector<std::string>& there = at.report.facts->gpus;
  if (there.empty()) return;
  std::set<int> used;
  for (const RankPlan& rank : at.ranks)
    for (const Slot& unit : rank.slots) used.insert(unit.device);
  for (const Device& device : at.job.node.devices) {
    if (device.pci.empty() || std::find(there.begin(), there.end(), device.pci) != there.end())
      continue;
    at.node_differs("node-differs", fmt::format("device {} at {}", device.index, device.pci),
                    fmt::format("{} at {}", counted(static_cast<long>(there.size()), "device"),
                                fmt::join(there, ", ")),
                    "the device is missing, or the node has its devices at other addresses",
                    "exclude the node, and report it to the site",
                    used.count(device.index) > 0 ? Severity::error : Severity::warning);
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

}  // namespace

void compare_node(const Subject& at) {
  compare_host(at);
  if (!at.report.facts) return;
  compare_master(at);
  compare_own_name(at);
  compare_port(at);
  compare_interfaces(at);
  compare_fabrics(at);
  compare_program(at);
  compare_room(at);
  compare_make(at);
  compare_addresses(at);
  compare_bound_cpus(at);
  if (at.job.seen.one_per_node) compare_devices(at);
}

// A report may be delayed, which looks like a slow clock: the reference is the median of three nodes or
// more, and the earlier report of two.
void compare_clocks(const Job& job, Differences& out) {
  const Observed& seen = job.seen;
  if (seen.arrivals.size() != seen.reports.size()) return;
  std::vector<double> ahead;
  std::vector<int> nodes;
  for (std::size_t i = 0; i < seen.reports.size(); ++i) {
    const RankSeen& one = seen.reports[i];
    const auto rank = static_cast<std::size_t>(one.rank);
    if (!one.found->facts || rank >= job.seats.size()) continue;
    ahead.push_back(one.clock - seen.arrivals[i]);
    nodes.push_back(job.seats[rank].node);
  }
  if (ahead.empty()) return;
  const double reference = ahead.size() >= 3
                               ? median(ahead)
                               : std::min(0.0, *std::max_element(ahead.begin(), ahead.end()));
  for (std::size_t i = 0; i < ahead.size(); ++i) {
    const double off = ahead[i] - reference;
    if (std::abs(off) <= kClockSeconds) continue;
    out.add(different("clock", fmt::format("within {} s of the others", kClockSeconds),
                      fmt::format("{:.0f} s {}", std::abs(off), off > 0 ? "ahead" : "behind"),
                      "the node's clock is not synchronised",
                      "report it to the site; log times and timeouts are off", Severity::warning),
            nodes[i]);
  }
}

}  // namespace hpclaunch::check
