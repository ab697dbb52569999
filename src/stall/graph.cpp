// Who waits for whom, and who is behind.
#include <fmt/format.h>

#include <iterator>

#include "hpclaunch/text.h"
#include "judge.h"

namespace hpclaunch::stacks {

namespace {

// An address of this node is another one on each node.
std::string endpoint(const std::string& host, std::string_view address) {
  const bool local =
      address.starts_with("127.") || address.starts_with("[::1]") || address.starts_with("::1");
  return (local ? host + " " : "") + std::string(address);
}

struct Ends {
  std::string peer, own;
};

// "tcp 10.0.0.2:4711 10.0.0.1:5000"
Ends ends_of(const Thread* thread) {
  if (thread == nullptr || !thread->waits_for.starts_with("tcp ")) return {};
  const std::string rest = thread->waits_for.substr(4);
  const std::size_t blank = rest.find(' ');
  return {rest.substr(0, blank), blank == rest.npos ? "" : rest.substr(blank + 1)};
}

}  // namespace

std::map<int, int> waits_for(const std::vector<Seen>& all, const Sequences& sequences) {
  std::map<std::string, int> owner;      // of an end of a connection
  std::map<std::string, int> listening;  // by host and port; -1: several ranks
  for (const Seen& one : all) {
    const std::string& host = one.rank->host;
    for (const Process& process : one.rank->processes) {
      for (const auto& [own, peer] : process.sockets) {
        owner[endpoint(host, own)] = one.rank->rank;
        if (peer.empty()) {
          const auto [at, fresh] =
              listening.try_emplace(own.substr(own.rfind(':') + 1), one.rank->rank);
          if (!fresh && at->second != one.rank->rank) at->second = -1;
        }
      }
      for (const Thread& thread : process.threads)
        if (const Ends ends = ends_of(&thread); !ends.own.empty())
          owner[endpoint(host, ends.own)] = one.rank->rank;
    }
  }
  std::map<int, int> edges;
  for (const Seen& one : all) {
    if (!waits_for_one(one.place.wait)) continue;
    const int rank = one.rank->rank;
    for (const GroupProgress& group : sequences)
      if (const auto at = group.peer.find(rank); at != group.peer.end()) edges[rank] = at->second;
    const Ends ends = ends_of(one.place.thread);
    if (ends.peer.empty() || edges.contains(rank)) continue;
    if (const auto at = owner.find(endpoint(one.rank->host, ends.peer)); at != owner.end()) {
      if (at->second != rank) edges[rank] = at->second;
    } else if (const auto server = listening.find(ends.peer.substr(ends.peer.rfind(':') + 1));
               server != listening.end() && server->second >= 0 && server->second != rank) {
      edges[rank] = server->second;
    }
  }
  return edges;
}

std::vector<int> circle(const std::map<int, int>& edges) {
  std::set<int> done;
  for (const auto& [start, unused] : edges) {
    std::vector<int> path;
    std::set<int> on_path;
    int at = start;
    while (edges.contains(at) && !done.contains(at)) {
      done.insert(at);
      on_path.insert(at);
      path.push_back(at);
      at = edges.at(at);
      if (!on_path.contains(at)) continue;
      path.erase(path.begin(), std::ranges::find(path, at));
      return path;
    }
  }
  return {};
}

std::map<int, int> ends_of_chains(const std::map<int, int>& edges) {
  std::map<int, int> ends;
  for (const auto& [start, unused] : edges) {
    std::vector<int> path;
    std::set<int> on_path;
    int at = start;
    while (edges.contains(at) && !ends.contains(at) && on_path.insert(at).second) {
      path.push_back(at);
      at = edges.at(at);
    }
    const bool round = on_path.contains(at);
    const int end = ends.contains(at) ? ends.at(at) : at;
    for (const int rank : path) ends[rank] = round ? rank : end;
  }
  return ends;
}

std::string spot(const Place& place, int width) {
  if (place.user == nullptr)  // no frames: all that is known
    return place.thread == nullptr ? "" : fmt::format("{} ({})", place.process->name, doing(place));
  const std::string where = frame_text(*place.user, width);
  return place.operation.empty() ? where : place.operation + " at " + where;
}

std::vector<int> ranks_of(const Group& group) {
  std::vector<int> ranks;
  for (const Seen* one : group) ranks.push_back(one->rank->rank);
  std::ranges::sort(ranks);
  return ranks;
}

std::string named(const std::vector<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + ranges(ranks, 8);
}

std::optional<Counted> by_numbers(const std::vector<Seen>& all, const Sequences& now,
                                  const Sequences& before) {
  std::optional<Counted> victims;  // behind, and in a wait themselves
  for (const GroupProgress& group : now) {
    if (group.launched.size() < 2) continue;
    const auto stood = [&](const GroupProgress& old) {
      return old.group == group.group && old.launched == group.launched;
    };
    if (std::ranges::none_of(before, stood)) continue;  // it moves, or was seen once
    const auto number = [](const auto& one) { return one.second; };
    const long least = std::ranges::min_element(group.launched, {}, number)->second;
    const long most = std::ranges::max_element(group.launched, {}, number)->second;
    // Else the operations may be of different numbers.
    const std::map<int, long>& at = group.current.empty() ? group.completed : group.current;
    const bool together = !at.empty() && std::ranges::all_of(at, [&](const auto& one) {
      return one.second == at.begin()->second;
    });
    std::map<std::string, int> operations;
    for (const auto& [rank, name] : group.operation) ++operations[name];
    const auto usual = std::ranges::max_element(operations, {}, number);
    Group behind, outside, other;
    for (const Seen& one : all) {
      const auto count = group.launched.find(one.rank->rank);
      const auto name = group.operation.find(one.rank->rank);
      if (count != group.launched.end() && count->second == least) behind.push_back(&one);
      if (name != group.operation.end() && name->second != usual->first) other.push_back(&one);
    }
    std::ranges::copy_if(behind, std::back_inserter(outside),
                         [](const Seen* one) { return !waits_for_ranks(one->place.wait); });
    if (least < most && !behind.empty()) {
      Counted found{outside.empty() ? behind : outside, false, ""};
      found.reason = fmt::format("group {}: {} started {} collectives, others {}", group.group,
                                 named(ranks_of(found.ranks)), least, most);
      if (!outside.empty()) return found;
      if (!victims) victims = std::move(found);
    } else if (least == most && together && !other.empty()) {
      return Counted{other, true,
                     fmt::format("group {}, collective {}: {} in {}, others in {}", group.group,
                                 most, named(ranks_of(other)),
                                 group.operation.at(other[0]->rank->rank), usual->first)};
    }
  }
  return victims;
}

}  // namespace hpclaunch::stacks
