// Facts of nodes: names, addresses, and what a job needs there before it starts.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cmath>

#include "differences.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"

namespace hpclaunch::check {

namespace {

constexpr double kClockSeconds = 2;
constexpr unsigned long long kRoomBytes = 32u << 20;  // a container's default of /dev/shm is 64 MiB

bool is_loopback_text(const std::string& address) {
  return address == "::1" || address.starts_with("127.") || address.starts_with("::ffff:127.");
}

bool meet(const std::vector<std::string>& found, const std::set<std::string>& own) {
  return std::any_of(found.begin(), found.end(),
                     [&](const std::string& address) { return own.count(address) > 0; });
}

std::set<std::string> addresses_of(const NodeFacts& facts) {
  std::set<std::string> all;
  for (const Interface& one : facts.interfaces)
    all.insert(one.addresses.begin(), one.addresses.end());
  return all;
}

void compare_master(const Plan& plan, int node, const NodeFacts& facts,
                    const std::set<std::string>& of_first, Differences& out) {
  const auto say = [&](Severity severity, std::string planned, std::string found, std::string cause,
                       std::string fix) {
    out.of_node(node, different("master-address", std::move(planned), std::move(found),
                                std::move(cause), std::move(fix), severity));
  };
  const std::string address = "an address of " + plan.hosts.front();
  if (!facts.master_problem.empty()) {
    say(Severity::error, fmt::format("MASTER_ADDR {} resolves", facts.master), facts.master_problem,
        "the node cannot resolve the name",
        "--master-addr with an IP address, or a name that every node resolves");
    return;
  }
  const std::vector<std::string>& found = facts.master_resolves;
  if (plan.nodes() == 1 || found.empty()) return;
  if (std::all_of(found.begin(), found.end(), is_loopback_text)) {
    say(node == 0 ? Severity::warning : Severity::error,
        fmt::format("MASTER_ADDR {}: {}", facts.master, address), "loopback: " + found.front(),
        node == 0 ? "/etc/hosts maps the node's own name to the loopback address, which other "
                    "nodes cannot reach"
                  : "each node would connect to itself",
        "--master-addr with an address that all nodes reach");
    return;
  }
  if (!of_first.empty() && !meet(found, of_first))
    say(Severity::error, fmt::format("MASTER_ADDR {}: {}", facts.master, address),
        fmt::format("{}", fmt::join(found, ", ")), "MASTER_ADDR is not the node of rank 0",
        "unset MASTER_ADDR, or set it to " + plan.hosts.front());
}

void compare_interfaces(const Plan& plan, const RankReport& report, int node, Differences& out) {
  constexpr std::array kNames = {"CCL_KVS_IFACE",      "FI_SOCKETS_IFACE",   "FI_TCP_IFACE",
                                 "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME"};
  for (const char* name : kNames) {
    const auto at = report.values.find(name);
    if (at == report.values.end() || at->second.empty()) continue;
    std::string problem = interface_problem(name, at->second, report.facts->interfaces);
    if (problem.empty() && plan.nodes() > 1 && (at->second == "lo" || at->second == "=lo"))
      problem = "lo reaches only the node itself";
    if (problem.empty()) continue;
    std::string there;
    for (const Interface& one : report.facts->interfaces)
      if (one.up && !one.addresses.empty()) there += (there.empty() ? "" : ", ") + one.name;
    out.of_node(
        node,
        different(
            "interface", fmt::format("{}={}", name, at->second), std::move(problem),
            there.empty() ? "no interface of the node is up and has an address"
                          : fmt::format("usable there: {}", there),
            fmt::format("--set {}=NAME with one that every node has, or exclude the node", name)));
  }
}

void compare_fabrics(const Topology& node, int at, const NodeFacts& facts, Differences& out) {
  for (const Nic& nic : node.nics) {
    // Only these are names of the kernel's, /sys/class/cxi and /sys/class/infiniband.
    if (!nic.fabric.starts_with("cxi") && !nic.fabric.starts_with("mlx")) continue;
    if (std::find(facts.fabrics.begin(), facts.fabrics.end(), nic.fabric) != facts.fabrics.end())
      continue;
    const std::string found = fmt::format("{}", fmt::join(facts.fabrics, ", "));
    out.of_node(at,
                different("fabric", nic.fabric, found.empty() ? "none" : found,
                          "the network device is missing on the node, or its driver is not loaded",
                          "exclude the node, and report it to the site"));
  }
}

void compare_room(const NodeFacts& facts, int node, Differences& out) {
  for (const Room& room : facts.rooms) {
    const bool tight = room.problem.empty() && room.free_bytes < kRoomBytes;
    if (room.problem.empty() && !tight) continue;
    const bool shared = room.path == "/dev/shm";
    out.of_node(
        node,
        different(
            "room", fmt::format("{} with {} free", room.path, human_bytes(kRoomBytes)),
            tight ? human_bytes(room.free_bytes) : room.problem,
            shared ? "files of an earlier job, or a small /dev/shm of a container; data loaders "
                     "and collectives need it"
                   : "full, or missing on this node",
            shared ? "remove files of earlier jobs; in a container, use --ipc=host or --shm-size"
                   : "--set TMPDIR=PATH with a directory that every node has",
            tight ? Severity::warning : Severity::error));
  }
}

void compare_node_cpus(const Plan& plan, int node, int node_class, const RankReport& report,
                       bool unbound, Differences& out) {
  CpuSet wanted;
  for (const RankPlan& rank : plan.classes[static_cast<std::size_t>(node_class)].ranks)
    wanted |= rank.cpus;
  const Result<CpuSet> online = CpuSet::parse(report.facts->online);
  const Result<CpuSet> granted = CpuSet::parse(report.cpus);
  if (wanted.empty()) return;
  if (online && !online->contains(wanted))
    out.of_node(
        node,
        different("node-cpus", wanted.to_list(), report.facts->online,
                  "the node lacks planned CPUs: it is of another kind",
                  "exclude the node, or plan on a node of its kind (--node-type, --topology)"));
  else if (unbound && granted && !granted->contains(wanted))
    out.of_node(node, different("node-cpus", wanted.to_list(), report.cpus,
                                "the job's control group (cpuset) allows only these",
                                "request whole nodes"));
}

// Processors and memory of another kind of node.
void compare_make(const Plan& plan, const Topology& node, int node_class, int at,
                  const NodeFacts& facts, Differences& out) {
  const auto report = [&](std::string planned, std::string found, std::string cause) {
    out.of_node(
        at, different("node-differs", std::move(planned), std::move(found), std::move(cause),
                      "exclude the node, or plan on a node of its kind (--on-drift replan there, "
                      "--node-type, --topology)",
                      Severity::warning));
  };
  const CpuSet all = node.all_pus();
  const Result<CpuSet> online = CpuSet::parse(facts.online);
  CpuSet bound;  // where these are missing, node-cpus reports it
  for (const RankPlan& rank : plan.classes[static_cast<std::size_t>(node_class)].ranks)
    bound |= rank.cpus;
  if (online && online->contains(bound) && *online != all && !all.empty())
    report("CPUs " + all.to_list(), "CPUs " + facts.online,
           online->contains(all)
               ? "hardware threads that the planned node lacks"
               : "cores or hardware threads are offline, or the node is of another kind");
  // HBM beside DDR has the same CPUs; the kernel's list has the nodes with CPUs.
  std::set<std::vector<int>> near;
  for (const NumaNode& numa : node.numa_nodes)
    if (!numa.pus.empty()) near.insert(numa.pus.to_vector());
  const Result<CpuSet> numa = CpuSet::parse(facts.numa);
  if (numa && !numa->empty() && !near.empty() && static_cast<int>(near.size()) != numa->count())
    report(counted(static_cast<long>(near.size()), "NUMA node"),
           counted(numa->count(), "NUMA node"), "another NUMA mode (NPS, sub-NUMA clustering)");
}

// By PCI address, where the planned devices have one.
void compare_addresses(const Plan& plan, const Topology& node, int node_class, int at,
                       const NodeFacts& facts, Differences& out) {
  if (facts.gpus.empty()) return;
  std::set<int> used;
  for (const RankPlan& rank : plan.classes[static_cast<std::size_t>(node_class)].ranks) {
    used.insert(rank.device);
    for (const UnitRef& more : rank.more_units) used.insert(more.device);
  }
  for (const Device& device : node.devices) {
    const auto& there = facts.gpus;
    if (device.pci.empty() || std::find(there.begin(), there.end(), device.pci) != there.end())
      continue;
    out.of_node(
        at, different("node-differs", fmt::format("device {} at {}", device.index, device.pci),
                      fmt::format("{} at {}", counted(static_cast<long>(there.size()), "device"),
                                  fmt::join(there, ", ")),
                      "the device is missing, or the node has its devices at other addresses",
                      "exclude the node, and report it to the site",
                      used.count(device.index) > 0 ? Severity::error : Severity::warning));
  }
}

double median(std::vector<double> values) {
  std::sort(values.begin(), values.end());
  return values[values.size() / 2];
}

// A report may be delayed, which looks like a slow clock: the reference is the median of three nodes or
// more, and the earlier report of two.
void compare_clocks(const Observed& seen, const std::vector<Seat>& seats, Differences& out) {
  if (seen.arrivals.size() != seen.reports.size()) return;
  std::vector<double> ahead;
  std::vector<int> nodes;
  for (std::size_t i = 0; i < seen.reports.size(); ++i) {
    const RankReport& report = seen.reports[i];
    if (!report.facts || static_cast<std::size_t>(report.rank) >= seats.size()) continue;
    ahead.push_back(report.clock - seen.arrivals[i]);
    nodes.push_back(seats[static_cast<std::size_t>(report.rank)].node);
  }
  if (ahead.empty()) return;
  const double reference = ahead.size() >= 3
                               ? median(ahead)
                               : std::min(0.0, *std::max_element(ahead.begin(), ahead.end()));
  for (std::size_t i = 0; i < ahead.size(); ++i) {
    const double off = ahead[i] - reference;
    if (std::abs(off) <= kClockSeconds) continue;
    out.of_node(
        nodes[i],
        different("clock", fmt::format("within {} s of the others", kClockSeconds),
                  fmt::format("{:.0f} s {}", std::abs(off), off > 0 ? "ahead" : "behind"),
                  "the node's clock is not synchronised",
                  "report it to the site; log times and timeouts are off", Severity::warning));
  }
}

}  // namespace

void compare_hosts(const Plan& plan, const Observed& seen, const std::vector<Seat>& seats,
                   Differences& out) {
  std::map<std::string, int> place;  // of each planned host
  for (std::size_t n = 0; n < plan.hosts.size(); ++n)
    place.emplace(short_host(plan.hosts[n]), static_cast<int>(n));
  std::map<std::string, std::set<std::string>> own;  // addresses by the node's own name
  for (const RankReport& report : seen.reports)
    if (report.facts) own[report.host] = addresses_of(*report.facts);
  const auto is_alias = [&](const std::string& planned, const std::string& found) {
    const auto names = seen.addresses.find(planned);
    const auto has = own.find(found);
    return names != seen.addresses.end() && has != own.end() &&
           std::any_of(names->second.begin(), names->second.end(),
                       [&](const std::string& one) { return has->second.count(one) > 0; });
  };
  for (const RankReport& report : seen.reports) {
    if (static_cast<std::size_t>(report.rank) >= seats.size()) continue;
    const int node = seats[static_cast<std::size_t>(report.rank)].node;
    const std::string& planned = plan.hosts[static_cast<std::size_t>(node)];
    if (short_host(planned) == short_host(report.host) ? same_host(planned, report.host)
                                                       : is_alias(planned, report.host))
      continue;
    const bool of_job = place.count(short_host(report.host)) > 0;
    out.of_rank(
        report.rank, node,
        different("host", planned, report.host,
                  of_job
                      ? "the launcher uses another order of nodes, or distributes ranks otherwise"
                      : "the ranks run on a node outside of the plan, or its name differs",
                  of_job ? "use the job's own list of nodes, or a host file in the launcher's order"
                         : "compare the host list with the job's; hpclaunch plan shows it"));
  }
}

void compare_nodes(const Plan& plan, const Topology& node, const Observed& seen,
                   const std::vector<Seat>& seats, Differences& out) {
  std::set<std::string> of_first;
  std::vector<int> class_of;
  for (const NodeRun& run : plan.layout)
    class_of.insert(class_of.end(), static_cast<std::size_t>(run.nodes), run.node_class);
  for (const RankReport& report : seen.reports)
    if (report.facts && report.rank == 0) of_first = addresses_of(*report.facts);
  for (const RankReport& report : seen.reports) {
    if (!report.facts || static_cast<std::size_t>(report.rank) >= seats.size()) continue;
    const NodeFacts& facts = *report.facts;
    const int at = seats[static_cast<std::size_t>(report.rank)].node;
    compare_master(plan, at, facts, of_first, out);
    if (at == 0 && !facts.port_problem.empty()) {
      const auto port = report.values.find("MASTER_PORT");
      out.of_node(
          at, different("master-port",
                        fmt::format("MASTER_PORT {} free",
                                    port == report.values.end() ? "" : port->second),
                        facts.port_problem, "another process listens on it",
                        "let hpclaunch choose the port, or name a free one with --master-port"));
    }
    compare_interfaces(plan, report, at, out);
    compare_fabrics(node, at, facts, out);
    if (!facts.program_problem.empty())
      out.of_node(
          at,
          different("program", "the program", facts.program_problem,
                    "its file system is not mounted there, or the file exists on this node only",
                    "install it where every node sees it, or exclude the node"));
    compare_room(facts, at, out);
    const int node_class = class_of[static_cast<std::size_t>(at)];
    compare_make(plan, node, node_class, at, facts, out);
    compare_addresses(plan, node, node_class, at, facts, out);
    compare_node_cpus(plan, at, node_class, report, seen.one_per_node, out);
    if (seen.one_per_node)
      compare_devices(plan, node, seen.env, {at, node_class, 0, 1}, report, out);
  }
  compare_clocks(seen, seats, out);
}

}  // namespace hpclaunch::check
