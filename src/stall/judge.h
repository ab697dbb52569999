#pragma once
// Parts of a verdict.
#include <algorithm>
#include <optional>

#include "place.h"

namespace hpclaunch::stacks {

struct Seen {
  const Rank* rank = nullptr;
  const Rank* before = nullptr;  ///< nullptr: there was one look only
  Place place, was;
  bool still = false;
  Change changed;
};
using Group = std::vector<const Seen*>;

// What to do next.
inline constexpr const char* kLook =
    "look at that line, and at all threads: hpclaunch stacks --all-threads";
inline constexpr const char* kNetwork =
    "check the network between the nodes and the devices: hpclaunch verify, hpclaunch doctor";
inline constexpr const char* kTurns = "let one of them send while the other one receives";
inline constexpr const char* kWorkers =
    "look for what ended that process (memory, dmesg); start with fewer workers";
inline constexpr const char* kSameOrder =
    "let all ranks of a group call the same collectives in the same order";

/// "all_reduce at /home/ann/train.py:41 step"
std::string spot(const Place& place, int width = 70);

std::vector<int> ranks_of(const Group& group);
std::string named(const std::vector<int>& ranks);  ///< "ranks 0-3,7"

/// The groups that `of` makes, the largest first.
template <class Of>
std::vector<Group> grouped(const Group& all, Of of) {
  std::map<std::string, Group> by;
  for (const Seen* one : all) by[of(*one)].push_back(one);
  std::vector<Group> groups;
  groups.reserve(by.size());
  for (auto& [key, group] : by) groups.push_back(std::move(group));
  std::ranges::stable_sort(groups,
                           [](const Group& a, const Group& b) { return a.size() > b.size(); });
  return groups;
}

/// Which rank each waits for, of those that wait for one: by the peers of sockets and by the flight recorder.
std::map<int, int> waits_for(const std::vector<Seen>& all, const Sequences& sequences);

/// The ranks of a circle, in its order; empty: there is none.
std::vector<int> circle(const std::map<int, int>& edges);

/// Of each rank that waits, the last one of its chain; itself where that leads into a circle.
std::map<int, int> ends_of_chains(const std::map<int, int>& edges);

/// Ranks of a group that have started fewer collectives than others, or another one with the same number.
struct Counted {
  Group ranks;
  bool mismatch = false;
  std::string reason;
};
/// Of numbers that are the same in both answers, where there are two.
std::optional<Counted> by_numbers(const std::vector<Seen>& all, const Sequences& now,
                                  const Sequences& before);

}  // namespace hpclaunch::stacks
