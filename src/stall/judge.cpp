// Which rank holds up the job. The rules in their order, the surest first; docs/hangs.md has them for people.
#include "judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <functional>
#include <iterator>

#include "hpclaunch/text.h"

namespace hpclaunch::stacks {

namespace {

using Kind = Verdict::Kind;
using Sure = Verdict::Sure;

// "in all_reduce at train.py:41 step"
std::string waits_at(const Place& place) {
  const std::string where = spot(place);
  return where.empty() ? "" : (place.operation.empty() ? "at " : "in ") + where;
}

std::string spot_of(const Seen& one) { return spot(one.place, 400); }
bool receives(const Seen* one) { return one->place.wait == Wait::receive; }

class Judge {
 public:
  Judge(const Snapshot& before, const Snapshot& now, const Sequences& sequences,
        const Sequences& sequences_before)
      : sequences_(sequences), sequences_before_(sequences_before), twice_(!before.ranks.empty()) {
    std::map<int, const Rank*> earlier;
    for (const Rank& rank : before.ranks) earlier[rank.rank] = &rank;
    for (const Rank& rank : now.ranks) {
      Seen seen{&rank, nullptr, place_of(rank), {}, false, {}};
      if (const auto at = earlier.find(rank.rank); at != earlier.end()) {
        seen.before = at->second;
        seen.was = place_of(*at->second);
        seen.still = is_still(*at->second, seen.was, rank, seen.place);
        seen.changed = change(*at->second, seen.was, rank, seen.place);
      }
      all_.push_back(seen);
    }
    for (const Seen& one : all_) {
      const Wait wait = one.place.wait;
      if (!one.rank->missing.empty() || wait == Wait::dead)
        lost_.push_back(&one);
      else if (wait == Wait::stopped)
        stopped_.push_back(&one);
      else if (waits_for_ranks(wait))
        waiters_.push_back(&one);
      else
        outside_.push_back(&one);
    }
    // A device works for its rank alone where others wait in a collective.
    const auto on_device = [](const Seen* one) { return one->place.wait == Wait::device; };
    if (const auto end =
            std::stable_partition(waiters_.begin(), waiters_.end(), std::not_fn(on_device));
        end != waiters_.begin() && end != waiters_.end()) {
      outside_.insert(outside_.end(), end, waiters_.end());
      waiters_.erase(end, waiters_.end());
    }
    if (waiters_.empty())
      take_waiters([](const Seen& one) { return one.place.wait == Wait::socket; });
    edges_ = waits_for(all_, sequences);
    verdict_.waiters = ranks_of(waiters_);
    if (!waiters_.empty()) verdict_.waiting = waits_at(grouped(waiters_, spot_of)[0][0]->place);
  }

  Verdict run() {
    if (lost() || stopped() || in_kernel() || numbers() || in_circle() || majority() || outside())
      return verdict_;
    inside();
    return verdict_;
  }

 private:
  template <class Is>
  void take_waiters(Is is) {
    const auto others = std::stable_partition(outside_.begin(), outside_.end(),
                                              [&](const Seen* one) { return !is(*one); });
    waiters_.assign(others, outside_.end());
    outside_.erase(others, outside_.end());
  }

  bool say(Kind kind, Sure sure, const Group& culprits, std::string advice) {
    verdict_.kind = kind;
    verdict_.sure = sure;
    verdict_.culprits = ranks_of(culprits);
    std::erase_if(verdict_.waiters,
                  [&](int rank) { return std::ranges::binary_search(verdict_.culprits, rank); });
    verdict_.advice = std::move(advice);
    if (!culprits.empty()) {
      const Place& place = culprits[0]->place;
      if (verdict_.place.empty() && place.user != nullptr)
        verdict_.place = frame_text(*place.user, 400);
      if (verdict_.doing.empty()) verdict_.doing = doing(place);
      std::set<std::string> hosts;
      for (const Seen* one : culprits)
        if (!one->rank->host.empty() && hosts.insert(one->rank->host).second)
          verdict_.hosts.push_back(one->rank->host);
    }
    return true;
  }
  void because(std::string reason) { verdict_.evidence.push_back(std::move(reason)); }

  // Who is neither lost nor stopped has not moved between two looks.
  bool rest_stands() const {
    const auto still = [](const Seen* one) { return one->still; };
    return twice_ && std::ranges::all_of(outside_, still) && std::ranges::all_of(waiters_, still);
  }

  bool lost() {
    Group away, ended, dead;
    for (const Seen* one : lost_) {
      if (one->rank->missing == kNoAnswer) away.push_back(one);
      if (one->rank->missing == kEnded) ended.push_back(one);
      if (one->place.wait == Wait::dead) dead.push_back(one);
    }
    const bool alone = lost_.size() == all_.size();
    if (!away.empty() && !alone) {
      because(std::string(kNoAnswer));
      verdict_.doing = "does not answer";
      return say(Kind::gone, rest_stands() && !waiters_.empty() ? Sure::certain : Sure::likely,
                 away, "hpclaunch run --max-restarts 1 starts again without a lost node");
    }
    Group& gone = dead.empty() ? ended : dead;
    if (gone.empty() || alone || waiters_.empty() || (twice_ && !rest_stands())) return false;
    because(dead.empty() ? std::string(kEnded) : "its process has died");
    verdict_.doing = "has ended";
    return say(Kind::gone, twice_ ? Sure::certain : Sure::likely, gone,
               "look at the last output of the rank that ended");
  }

  bool stopped() {
    if (stopped_.empty()) return false;
    because("its process is in state T");
    return say(Kind::stopped, Sure::certain, stopped_,
               fmt::format("on its node: kill -CONT {}", stopped_[0]->place.process->pid));
  }

  bool in_kernel() {
    Group held;
    for (const Seen* one : outside_)
      if (one->place.wait == Wait::disk && (one->still || !twice_)) held.push_back(one);
    if (held.empty()) return false;
    because(fmt::format("its process is in state D{}", twice_ ? ", twice in the same place" : ""));
    const bool sure = twice_ && held.size() * 2 < all_.size() && held.size() == outside_.size() &&
                      !waiters_.empty();
    return say(
        Kind::driver, sure ? Sure::certain : Sure::likely, held,
        "look at the file system and the devices of its node (dmesg); a signal does not end it");
  }

  bool numbers() {
    const std::optional<Counted> found = by_numbers(all_, sequences_, sequences_before_);
    if (!found) return false;
    because(found->reason);
    if (found->mismatch) return say(Kind::mismatch, Sure::certain, found->ranks, kSameOrder);
    // Who waits in another group is behind because of that one.
    const bool sure = twice_ && std::ranges::all_of(found->ranks, [](const Seen* one) {
                        return one->still && !waits_for_ranks(one->place.wait);
                      });
    return say(Kind::outside, sure ? Sure::certain : Sure::likely, found->ranks, kLook);
  }

  bool in_circle() {
    const std::vector<int> ranks = circle(edges_);
    if (ranks.empty()) return false;
    const std::set<int> members(ranks.begin(), ranks.end());
    Group group;
    for (const Seen& one : all_) {
      if (!members.contains(one.rank->rank)) continue;
      if (twice_ && !one.still) return false;
      group.push_back(&one);
    }
    std::string chain;
    for (const int rank : ranks) chain += fmt::format("{} -> ", rank);
    because(fmt::format("who waits for whom: {}{}", ranks.size() > 8 ? "" : chain, ranks[0]));
    return say(Kind::deadlock, Sure::likely, group, kTurns);
  }

  // Calls into C, as of mpi4py, have no frame: then most ranks at one line are the ones that wait.
  bool majority() {
    if (!waiters_.empty() || outside_.size() < 4) return false;
    const std::vector<Group> groups = grouped(outside_, spot_of);
    if (groups.size() < 2 || groups[0].size() * 4 < outside_.size() * 3) return false;
    const auto stays = [&](const Seen* one) {
      return !twice_ || !one->changed.line ||
             (one->place.user == nullptr && one->was.wait == one->place.wait);
    };
    if (!std::ranges::all_of(groups[0], stays)) return false;
    const std::string most = spot_of(*groups[0][0]);
    take_waiters([&](const Seen& one) { return spot_of(one) == most; });
    verdict_.waiters = ranks_of(waiters_);
    verdict_.waiting = waits_at(waiters_[0]->place);
    return outside();
  }

  bool outside() {
    if (outside_.empty() || waiters_.empty()) return false;
    Group persons, moving, standing;
    for (const Seen* one : outside_) {
      const Change& changed = one->changed;
      const bool moves = one->before != nullptr && !one->still &&
                         (changed.function || changed.bytes || changed.threads || changed.children);
      const bool person = one->place.wait == Wait::serve || one->place.wait == Wait::terminal;
      (person ? persons : moves ? moving : standing).push_back(one);
    }
    because(fmt::format("{} of {} ranks wait {}", waiters_.size(), all_.size(), verdict_.waiting));
    if (standing.empty() && !moving.empty()) {
      because(
          "it was at another place at the second look, or reads, writes or has processes that "
          "compute");
      return say(Kind::moves, Sure::unknown, moving, "wait, or ask again");
    }
    if (standing.empty())
      return say(Kind::serving, Sure::likely, persons,
                 "nothing to do where requests or input are missing");
    // Who waits for another one that stands as well is not the first.
    const std::map<int, int> ends = ends_of_chains(edges_);
    const std::vector<int> numbers = ranks_of(standing);
    Group first;
    for (const Seen* one : standing) {
      const auto end = ends.find(one->rank->rank);
      if (end == ends.end() || end->second == one->rank->rank ||
          !std::ranges::binary_search(numbers, end->second))
        first.push_back(one);
      else if (verdict_.evidence.size() < 3)
        because(fmt::format("rank {} waits for rank {}", one->rank->rank, end->second));
    }
    if (first.empty()) first = standing;
    return child_of(first) || blame(first);
  }

  bool child_of(const Group& first) {
    for (const Seen* one : first) {
      const std::optional<Place> child = busy_child(*one->rank, one->place);
      if (!child) continue;
      const std::string who =
          fmt::format("its process {} ({})", child->process->pid, child->process->name);
      if (child->wait == Wait::dead) {
        because(who + " has died, and it waits for it");
        return say(Kind::dead_worker, Sure::likely, {one}, kWorkers);
      }
      because(fmt::format("it waits for {}, which {}", who, doing(*child)));
      if (child->user != nullptr) verdict_.place = frame_text(*child->user, 400);
      return say(Kind::outside, Sure::likely, {one}, kLook);
    }
    // A worker that was waited for leaves no trace, but that the others have more.
    const auto workers = [](const Rank& rank) { return rank.processes.size(); };
    for (const Seen* one : first) {
      const bool fewer = std::ranges::all_of(
          waiters_, [&](const Seen* of) { return workers(*of->rank) > workers(*one->rank); });
      const bool lost = one->before != nullptr && workers(*one->before) > workers(*one->rank);
      if (one->place.wait != Wait::queue || (!fewer && !lost)) continue;
      because(lost ? "it waits for a process that is no longer there"
                   : "the other ranks have more processes: one of its workers is gone");
      return say(Kind::dead_worker, Sure::likely, {one}, kWorkers);
    }
    return false;
  }

  bool blame(const Group& first) {
    const Seen& one = *first[0];
    const bool busy = one.place.wait == Wait::running || (one.before != nullptr && !one.still);
    const bool scattered = first.size() > waiters_.size() && grouped(first, spot_of).size() > 1;
    if (busy)
      because(twice_ ? "it is busy, but in the same function at both looks"
                     : "it was busy at the only look");
    else if (twice_)
      because("it has not moved between two looks");
    const Sure sure = scattered || (busy && !twice_) ? Sure::unknown : Sure::likely;
    return say(Kind::outside, sure, first, kLook);
  }

  void inside() {
    Group all = waiters_;
    all.insert(all.end(), outside_.begin(), outside_.end());
    if (all.empty()) return static_cast<void>(say(Kind::unknown, Sure::unknown, {}, "ask again"));
    if (twice_ && std::ranges::any_of(all, [](const Seen* one) { return !one->still; })) return;
    Group unseen;
    std::ranges::copy_if(lost_, std::back_inserter(unseen), [](const Seen* one) {
      return !one->rank->missing.empty() && one->rank->missing != kEnded;
    });
    const std::vector<Group> groups = grouped(all, spot_of);
    if (!unseen.empty()) return not_seen(unseen, groups[0][0]->place);
    const Place& most = groups[0][0]->place;
    if (edges_.empty() && all.size() > 1 && std::ranges::all_of(all, receives)) {
      because("all ranks are in a receive, and none sends");
      return static_cast<void>(say(Kind::deadlock, Sure::likely, all, kTurns));
    }
    if (groups.size() == 1 || waiters_.empty()) return same_place(groups);
    const std::vector<Group> operations =
        grouped(all, [](const Seen& one) { return one.place.operation; });
    if (!waits_for_ranks(most.wait)) {  // plain sockets
      Group few;
      for (std::size_t i = 1; i < groups.size(); ++i)
        few.insert(few.end(), groups[i].begin(), groups[i].end());
      return static_cast<void>(last_of_chains() || no_chain(few));
    }
    Group pairs;  // of all, those that wait for one rank each
    std::ranges::copy_if(all, std::back_inserter(pairs),
                         [](const Seen* one) { return waits_for_one(one->place.wait); });
    if (!pairs.empty())
      return static_cast<void>(last_of_chains() || beside_collective(pairs, all) || no_chain({}));
    const bool differ = operations.size() > 1;
    const std::vector<Group>& by = differ ? operations : groups;
    const bool tie = by[0].size() == by[1].size();
    Group other;
    for (std::size_t i = tie ? 0 : 1; i < by.size(); ++i)
      other.insert(other.end(), by[i].begin(), by[i].end());
    for (std::size_t i = 0; i < by.size() && i < 4; ++i)
      because(fmt::format("{} {} {}", named(ranks_of(by[i])), by[i].size() == 1 ? "is" : "are",
                          waits_at(by[i][0]->place)));
    const bool few = other.size() * 4 <= all.size();
    say(Kind::mismatch, differ || few ? Sure::likely : Sure::unknown, other, kSameOrder);
  }

  // All wait for one rank each: the last ones of the chains are not waited for by chance.
  bool last_of_chains() {
    std::set<int> ends;
    for (const auto& [rank, end] : ends_of_chains(edges_)) ends.insert(end);
    Group last;
    for (const Seen& one : all_)
      if (ends.contains(one.rank->rank) && !edges_.contains(one.rank->rank)) last.push_back(&one);
    if (last.empty()) return false;
    because(fmt::format("the other ranks wait for {}, by their sockets or the flight recorder",
                        named(ranks_of(last))));
    return say(Kind::outside, Sure::likely, last, kLook);
  }
  // Few receive, for whom nobody sends, and the rest have gone on to a collective.
  bool beside_collective(const Group& pairs, const Group& all) {
    if (pairs.size() * 4 > all.size() || !std::ranges::all_of(pairs, receives)) return false;
    const bool one = pairs.size() == 1;
    because(fmt::format("{} of {} ranks wait {}", all.size() - pairs.size(), all.size(),
                        verdict_.waiting));
    because(fmt::format("{} in a receive, and no rank sends", one ? "it is" : "they are"));
    return say(one ? Kind::outside : Kind::deadlock, Sure::likely, pairs, one ? kLook : kTurns);
  }
  bool no_chain(const Group& few) {
    because("all ranks wait for another one, and for which one is not known");
    return say(Kind::unknown, Sure::unknown, few, kLook);
  }

  void stands_at(const Place& place) {
    verdict_.doing = doing(place);
    if (place.user != nullptr) verdict_.place = frame_text(*place.user, 400);
  }
  // Nobody of whom something is known is elsewhere.
  void not_seen(const Group& unseen, const Place& own) {
    const Group first = grouped(unseen, [](const Seen& one) { return one.rank->missing; })[0];
    const std::string& missing = first[0]->rank->missing;
    because(fmt::format("of {} nothing is known: {}", named(ranks_of(first)), missing));
    verdict_.doing = "has not started";
    const bool away = missing == kElsewhere;
    if (away) stands_at(own);
    if (missing == kNotStarted)
      say(Kind::outside, Sure::likely, first, "look at its node and at its first output");
    else
      say(Kind::unknown, Sure::unknown, away ? Group() : first,
          away ? "on that node: hpclaunch stacks" : "ask again");
  }

  void same_place(const std::vector<Group>& groups) {
    if (groups.size() > 1) {
      because(fmt::format("the ranks are at {} places", groups.size()));
      return static_cast<void>(say(Kind::unknown, Sure::unknown, {}, kLook));
    }
    const Place& place = groups[0][0]->place;
    verdict_.waiters = ranks_of(groups[0]);
    verdict_.waiting = waits_at(place);
    stands_at(place);
    if (place.wait == Wait::serve || place.wait == Wait::terminal) {
      say(Kind::serving, Sure::likely, {}, "nothing to do where requests or input are missing");
    } else {
      const bool network =
          waits_for_ranks(place.wait) || place.wait == Wait::socket || place.wait == Wait::connect;
      because("no rank is elsewhere");
      say(Kind::same_place, twice_ ? Sure::likely : Sure::unknown, {}, network ? kNetwork : kLook);
    }
  }

  const Sequences &sequences_, &sequences_before_;
  bool twice_;
  std::vector<Seen> all_;
  Group lost_, stopped_, waiters_, outside_;
  std::map<int, int> edges_;
  Verdict verdict_;
};

}  // namespace

Verdict judge(const Snapshot& before, const Snapshot& now, const Sequences& sequences,
              const Sequences& sequences_before) {
  return Judge(before, now, sequences, sequences_before).run();
}

}  // namespace hpclaunch::stacks
