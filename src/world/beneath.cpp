// What a rank asks that another launcher has started.
#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/text.h"
#include "world/platforms.h"
#include "world/site.h"

namespace hpclaunch::job {

namespace {

std::string first_of(const HostNames& hosts, int nodes) {
  return std::ssize(hosts) == nodes ? hosts.front() : std::string();
}

}  // namespace

std::string first_host(const World& world, int nodes) {
  for (const Launcher& one : launchers())
    for (const IdentityVariables& row : one.identity)
      if (row.what == Identity::hosts)
        for (const std::string_view name : split(row.names, ' '))
          if (const auto hosts = expand_hostlist(world.env.get(name)))
            if (std::string first = first_of(*hosts, nodes); !first.empty()) return first;
  const Result<HostList> job = find_hosts(Request(), world, find_batch(world.env));
  return job ? first_of(job->names, nodes) : std::string();
}

std::optional<std::pair<int, int>> listed_node(const World& world, int first, int size, int ranks) {
  const Result<HostList> job = find_hosts(Request(), world, find_batch(world.env));
  if (!job || job->invented || job->slots.size() != job->names.size()) return std::nullopt;
  std::optional<int> own;
  int before = 0, nodes = 0;
  for (; before < ranks && nodes < std::ssize(job->slots); ++nodes) {
    const auto at = static_cast<std::size_t>(nodes);
    const int here = std::min(job->slots[at], ranks - before);
    if (is_here(job->names[at], world) && before == first && here == size) own = nodes;
    before += here;
  }
  if (!own || before < ranks) return std::nullopt;
  return std::pair(*own, nodes);
}

std::optional<std::pair<int, int>> pod_place(const World& world) {
  for (const Platform& row : rows<Platform>())
    if (!row.step && row.node == "RANK" && counts_nodes(row) && holds(row, world))
      if (const Result<EachNode> found = read_platform(row, {}, world))
        return std::pair(found->own, found->nodes);
  return std::nullopt;
}

Result<std::vector<std::string>> program_words(const Request& request, const World& world) {
  Diagnostics none;
  Result<Request> spelled = spelled_out(request, world, none);
  if (!spelled) return spelled.error();
  const auto found = world.program(spelled->command.front());
  if (!found) return found.error();
  spelled->command.front() = *found;
  return std::move(spelled->command);
}

}  // namespace hpclaunch::job
