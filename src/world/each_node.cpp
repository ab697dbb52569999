// Which node this is, where somebody else starts hpclaunch on each: what was typed, and what the platform says.
#include "world/each_node.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"
#include "world/platforms.h"

namespace hpclaunch::job {

namespace {

constexpr int kPortOfTorchrun = 29500;
constexpr const char* kAllTyped = "--node-rank R --nodes N --master-addr HOST";

// Several tasks, started by an ordinary step: an interactive shell on the first node starts all nodes.
bool is_real_step(const Platform& row, const EnvSnapshot& env) {
  const bool one = parse_natural(env.get(row.nodes)).value_or(0) < 2;
  return !one && std::ranges::all_of(launchers(), [&](const Launcher& launcher) {
    return std::ranges::count(row.set, launcher.traits.step_var) == 0 ||
           launcher.traits.inside_step(env);
  });
}

const Platform* first_that_holds(const World& world, bool step) {
  for (const Platform& row : rows<Platform>())
    if (row.step == step && holds(row, world) && (!step || is_real_step(row, world.env)))
      return &row;
  return nullptr;
}

// In a job the batch system's own numbers count, of the step that this process is a task of.
const Platform* choose_platform(const Request& request, const World& world, bool in_job) {
  const Platform* step = first_that_holds(world, true);
  const Platform* outer = first_that_holds(world, false);
  if (outer != nullptr && !counts_nodes(*outer) && request.nodes.value_or(1) < 2) outer = nullptr;
  const bool wanted = request.node_rank || request.static_nodes || (in_job && outer != nullptr);
  if (in_job) return wanted ? step : nullptr;
  return outer != nullptr ? outer : wanted ? step : nullptr;
}

// torchrun, Azure ML, mpirun: this process is to be one rank, also where a platform has started its node. LOCAL_RANK of
// MindCluster is a list.
bool is_single_rank(const Request& request, const World& world, bool in_job,
                    Diagnostics& diagnostics) {
  const EnvSnapshot& env = world.env;
  const long all = parse_natural(env.get("WORLD_SIZE")).value_or(0);
  const bool rank = all > 1 && parse_natural(env.get("RANK")).value_or(all) < all &&
                    parse_natural(env.get("LOCAL_RANK"));
  if (!rank || in_job || request.node_rank || request.static_nodes || request.agent ||
      !request.hostfile.empty() || world.made_up())
    return false;
  diagnostics.push_back(
      {"inside-a-rank", Severity::error,
       fmt::format("this process is one rank already: RANK={}, LOCAL_RANK={} of WORLD_SIZE={}",
                   env.get("RANK"), env.get("LOCAL_RANK"), env.get("WORLD_SIZE")),
       "hpclaunch bind -- PROGRAM places this one rank; unset LOCAL_RANK where it is left over"});
  return true;
}

Error beyond(const EachNode& found, int nodes) {
  return Error{ErrorKind::usage,
               fmt::format("{}: there is no node {} among {}, which are numbered from 0", found.why,
                           found.own, nodes),
               fmt::format("--nodes {}, or --node-rank 0 to {}", found.own + 1, nodes - 1)};
}

void say(Diagnostics& diagnostics, Severity severity, std::string message, std::string fix) {
  diagnostics.push_back({"node-rank", severity, std::move(message), std::move(fix)});
}

// What was typed counts, and differences are said.
void take_typed(const Request& request, EachNode& found, Diagnostics& diagnostics) {
  const bool told = found.own >= 0;
  const std::string by = found.by.empty() ? "" : " of " + found.by;
  if (request.node_rank && (!told || *request.node_rank != found.own)) {
    if (told)
      say(diagnostics, Severity::warning,
          fmt::format("--node-rank {}, but {}{}", *request.node_rank, found.why, by),
          "omit --node-rank");
    found.own = *request.node_rank;
    found.why = fmt::format("--node-rank {}", found.own);
  }
  if (!request.nodes || *request.nodes == found.nodes) return;
  if (told && found.nodes > 1)
    say(diagnostics, Severity::warning,
        *request.nodes == 1
            ? fmt::format("{} starts {} nodes ({}), and this line is for one: a world of its own",
                          found.by, found.nodes, found.why)
            : fmt::format("--nodes {}, but {} starts {}", *request.nodes, found.by, found.nodes),
        fmt::format("--nodes {}{}", found.nodes,
                    request.static_nodes ? ", without --standalone" : ""));
  const auto nodes = static_cast<std::size_t>(*request.nodes);
  found.nodes = *request.nodes;
  found.names = found.names.size() > nodes ? found.names.first(nodes) : HostNames();
  const std::vector<int> told_slots = std::move(found.slots);
  found.slots = {};
  for (std::size_t node = 0; node < nodes && !told_slots.empty(); ++node) {
    const std::size_t at = nodes == 1 && told ? static_cast<std::size_t>(found.own) : node;
    const bool alike = std::ranges::count(told_slots, told_slots.front()) == std::ssize(told_slots);
    if (at < told_slots.size() || alike)
      found.slots.push_back(at < told_slots.size() ? told_slots[at] : told_slots.front());
  }
  if (found.slots.size() != nodes) found.slots.clear();
}

bool counts_ranks(const Request& request) {
  return request.ranks || request.ranks_per_node || request.ranks_per_device ||
         !request.ranks_by.empty();
}

// One node: hpclaunch starts it as everywhere, with as many ranks as were told.
EachNode alone_with(EachNode found) {
  EachNode alone;
  alone.slots = std::move(found.slots);
  alone.slots_why = std::move(found.slots_why);
  alone.ranks_by = std::move(found.ranks_by);
  return alone;
}

// Where the ranks meet: typed, exported, told, or the first host. In a job the port follows from its id.
Status find_head(const Request& request, const World& world, bool in_job, EachNode& found) {
  const EnvSnapshot& env = world.env;
  if (!request.head.empty()) {
    found.address = request.head;
    found.address_why = "the endpoint of the command line";
  }
  if (const std::string exported = env.get("MASTER_ADDR");
      found.address.empty() && !exported.empty() && !request.static_nodes) {
    found.address = exported;
    found.address_why = "exported";
  }
  if (found.address.empty() && !found.names.empty()) {
    found.address = found.names.front();
    found.address_why = fmt::format("the first host{}", found.by.empty() ? "" : " of " + found.by);
  }
  if (found.address.empty() && request.master_addr.empty())
    return Error{
        ErrorKind::usage,
        fmt::format("node {} of {}: where do the ranks meet? The address of node 0 is not known",
                    found.own, found.nodes),
        fmt::format("--node-rank {} --nodes {} --master-addr HOST, with node 0's name or address",
                    found.own, found.nodes)};
  if (found.port == 0 && !in_job) {
    found.port = kPortOfTorchrun;
    found.port_why = "as torchrun has it: every node needs the same";
  }
  return Done{};
}

}  // namespace

Result<EachNode> find_each_node(const Request& asked, const World& world,
                                Diagnostics& diagnostics) {
  const BatchJob batch = find_batch(world.env);
  const bool in_job = batch.scheduler != nullptr;
  Request request = asked;
  // torchrun --standalone, which alone leaves the number open: this node, outside of a job.
  if (asked.static_nodes && !asked.nodes && !in_job && asked.hostfile.empty()) request.nodes = 1;
  const bool listed = in_job && names_hosts(*batch.scheduler, world.env);
  EachNode none;
  if (!request.hostfile.empty() && (!request.node_rank || request.static_nodes)) return none;
  const Platform* row = choose_platform(request, world, in_job);
  if ((row == nullptr || !row->step) && is_single_rank(request, world, in_job, diagnostics))
    return none;
  // torchrun's number of the node, in a job whose nodes hpclaunch starts itself.
  if (request.static_nodes && in_job && row == nullptr) return none;
  EachNode found;
  const bool refused = row != nullptr && !row->refuse.empty() && request.nodes != 1 &&
                       world.env.get(row->nodes) != "1";
  if (refused && !request.node_rank)
    return Error{ErrorKind::unsupported,
                 fmt::format("started by {} ({}={}): {}", row->title, row->nodes,
                             shown(world.env.get(row->nodes)), row->refuse),
                 std::string(row->instead)};
  if (row != nullptr && !refused) {
    Result<EachNode> read = read_platform(*row, request.nodes, world);
    if (!read && !(request.node_rank && request.nodes)) return read.error();
    if (read) found = *std::move(read);
    if (read && !row->says.empty() && found.nodes > 1)
      say(diagnostics, Severity::note, fmt::format("{}: {}", found.why, row->says), kAllTyped);
  }
  if (row == nullptr && !request.node_rank) return none;
  if (row == nullptr && listed)
    say(diagnostics, Severity::note,
        fmt::format("--node-rank {}: the other nodes of this {} job are left to others",
                    *request.node_rank, batch.scheduler->title),
        "omit --node-rank: hpclaunch starts all nodes");
  const bool told = found.own >= 0;
  if (told && row != nullptr && row->step && request.nodes == 1)
    return Error{ErrorKind::usage,
                 fmt::format("{} starts {} nodes ({}), and this line is for one: each would be a "
                             "world of its own",
                             found.by, found.nodes, found.why),
                 fmt::format("--nodes {0}; without {1} --nodes {0} starts them as well",
                             found.nodes, found.by)};
  take_typed(request, found, diagnostics);
  if (!told && !request.nodes) {
    if (!listed && request.hostfile.empty())
      return Error{ErrorKind::usage, fmt::format("--node-rank {}: of how many nodes?", found.own),
                   kAllTyped};
    found.nodes = 0;  // as many as the list has
    return found;
  }
  if (found.nodes < 2) return alone_with(std::move(found));
  if (found.own >= found.nodes) return beyond(found, found.nodes);
  if (listed || !request.hostfile.empty()) return found;
  if (const Status head = find_head(request, world, in_job, found); !head) return head.error();
  return found;
}

EnvSnapshot env_of_torchrun(const EnvSnapshot& env) {
  return env.with({{"MASTER_ADDR", {}}, {"MASTER_PORT", {}}});
}

Result<HostList> hosts_of_each(const Request& request, HostList known, const World& world,
                               EachNode& each) {
  HostList hosts;
  const bool same = std::ssize(known.names) == each.nodes || each.nodes == 0;
  if (same) hosts = std::move(known);
  const int nodes = each.nodes == 0 ? static_cast<int>(hosts.names.size()) : each.nodes;
  const std::set<std::string> once(each.names.begin(), each.names.end());
  if (!same && std::ssize(once) == nodes) hosts.names = each.names;
  const bool in_job = find_batch(world.env).scheduler != nullptr;
  if (each.own >= nodes) return beyond(each, nodes);
  // A part of the job's nodes, and which one is not told.
  if (std::ssize(hosts.names) < nodes && each.address.empty())
    if (const Status head = find_head(request, world, in_job, each); !head) return head.error();
  for (int node = static_cast<int>(hosts.names.size()); node < nodes; ++node)
    hosts.names.push_back(node == each.own && !world.host.empty() ? world.host
                                                                  : fmt::format("(node {})", node));
  hosts.own = each.own;
  hosts.why = fmt::format("node {} of {}, {}", each.own, nodes, each.reason());
  // In a step of one task per node they are that step's tasks.
  if (hosts.allocation) hosts.slots.clear();
  hosts.allocation = false;
  hosts.file.clear();
  if (!each.slots.empty()) {
    hosts.slots = each.slots;
    hosts.slots_why = each.slots_why;
    hosts.slots_are_cores = false;
  }
  return hosts;
}

Request for_each_node(Request request, const EachNode& each, Diagnostics& diagnostics) {
  if (!counts_ranks(request)) request.ranks_by = each.ranks_by;
  if (each.own < 0) return request;
  if (request.max_restarts.value_or(0) > 0)
    say(diagnostics, Severity::warning,
        fmt::format(
            "--max-restarts {}: no restart, since this hpclaunch cannot start the other nodes "
            "again",
            *request.max_restarts),
        "a restart policy of who starts the nodes");
  if (request.max_restarts) request.max_restarts = 0;
  request.least_nodes.reset();
  return request;
}

}  // namespace hpclaunch::job
