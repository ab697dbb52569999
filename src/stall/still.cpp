// Has a rank moved, and does the whole job stand still.
#include <algorithm>
#include <utility>

#include "place.h"

namespace hpclaunch::stacks {

namespace {

// A receive with a time-out returns a few times in a second, to nothing.
bool more_than_a_poll(const Thread& old, const Thread& now, double seconds) {
  constexpr double kPolls = 4;  // in a second
  return static_cast<double>(now.switches - old.switches) > 1 + kPolls * seconds;
}

// The main thread waits for something of its own process, and another Python thread works for it.
bool threads_work(const Place& was, const Place& is, double seconds) {
  if (is.wait != Wait::lock && is.wait != Wait::queue && is.wait != Wait::child) return false;
  std::map<int, const Thread*> earlier;
  for (const Thread& one : was.process->threads) earlier[one.tid] = &one;
  return std::ranges::any_of(is.process->threads, [&](const Thread& one) {
    const auto at = earlier.find(one.tid);
    if (one.frames.empty() || one.tid == is.thread->tid || at == earlier.end()) return false;
    const Thread& old = *at->second;
    const Wait wait = kernel_wait(one);
    const bool fed = (wait == Wait::socket && more_than_a_poll(old, one, seconds)) ||
                     (wait == Wait::file && old.switches != one.switches);
    return fed || old.frames.empty() || old.frames.back() != one.frames.back();
  });
}

}  // namespace

Change change(const Rank& before, const Place& was, const Rank& now, const Place& is) {
  Change found;
  if (was.thread == nullptr || is.thread == nullptr) return found;
  const Thread &old = *was.thread, &thread = *is.thread;
  const bool same = was.process->pid == is.process->pid && old.tid == thread.tid;
  found.stack = !same || old.frames != thread.frames;
  found.line = !same || old.frames.empty() || thread.frames.empty() ||
               old.frames.back() != thread.frames.back();
  found.function = !same || was.user == nullptr || is.user == nullptr ||
                   was.user->function != is.user->function || was.user->file != is.user->file;
  found.fed = !same || more_than_a_poll(old, thread, std::max(0.0, now.at - before.at));
  found.ran = !same || old.cpu_ms != thread.cpu_ms || old.switches != thread.switches;

  const double seconds = std::max(0.0, now.at - before.at);
  std::map<int, const Process*> earlier;
  for (const Process& one : before.processes) earlier[one.pid] = &one;
  bool children = before.processes.size() != now.processes.size(), computed = false;
  long bytes = 0;
  for (const Process& one : now.processes) {
    const auto at = earlier.find(one.pid);
    if (at == earlier.end()) {
      children = true;
      continue;
    }
    const bool busy = static_cast<double>(one.cpu_ms - at->second->cpu_ms) > 20 + 10 * seconds;
    computed |= busy;
    children |= busy && one.pid != is.process->pid;
    if (one.bytes >= 0 && at->second->bytes >= 0) bytes += one.bytes - at->second->bytes;
  }
  found.threads = same && threads_work(was, is, seconds);
  found.computed = computed;
  found.children = children;
  found.bytes = static_cast<double>(bytes) > 1024 * seconds;
  return found;
}

bool is_still(const Change& changed, const Rank& before, const Place& was, const Rank& now,
              const Place& is) {
  if (!before.missing.empty() || !now.missing.empty())
    return before.missing == now.missing &&
           (now.missing == kNoAnswer || now.missing == kEnded || now.missing == kElsewhere);
  if (changed.stack) return false;
  const bool computes = is.wait == Wait::device && changed.ran;  // perhaps for itself alone
  if (waits_for_ranks(is.wait) && waits_for_ranks(was.wait) && !computes) return true;
  return !changed.ran && !changed.computed && !changed.threads && !changed.children &&
         !changed.bytes;
}

bool is_still(const Rank& before, const Place& was, const Rank& now, const Place& is) {
  return is_still(change(before, was, now, is), before, was, now, is);
}

bool is_still(const Rank& before, const Rank& now) {
  return is_still(before, place_of(before), now, place_of(now));
}

std::optional<Place> busy_child(const Rank& rank, const Place& place) {
  if (place.process == nullptr || (place.wait != Wait::child && place.wait != Wait::queue))
    return {};
  std::optional<Place> found;
  for (const Process& one : rank.processes) {
    if (one.parent != place.process->pid) continue;
    const Place there = place_in(one, main_thread(one));
    if (there.wait == Wait::dead) return there;
    if (!found && there.wait != Wait::queue && there.thread != nullptr) found = there;
  }
  return found;
}

bool Stall::add(const Snapshot& snapshot, double now, double output, const Sequences& sequences,
                bool dumps) {
  // Something shows that the job is not just seen at one line each time.
  bool anchored = false;
  for (const GroupProgress& group : sequences) {
    std::map<int, long>& last = launched_[group.group];
    anchored |= !last.empty() && last == group.launched;
    if (!last.empty() && last != group.launched) launched_since_ = now;
    last = group.launched;
  }
  const double floor = std::max(output, launched_since_);
  const auto lasts = [&](double since, double times) {
    return now - std::max(since, floor) >= times * limit_;
  };

  bool stands = !snapshot.ranks.empty();
  bool for_others = false;    // some rank does not wait for a clock, a worker or a request alone
  std::set<std::string> raw;  // places of those that wait for a socket
  bool only_raw = true, some = false;
  for (const Rank& rank : snapshot.ranks) {
    const Place place = place_of(rank);
    const auto [at, fresh] = seen_.try_emplace(rank.rank, Seen{rank, now, now, now});
    Seen& seen = at->second;
    if (!fresh) {
      const Place was = place_of(seen.last);
      Change changed = change(seen.last, was, rank, place);
      changed.bytes &= !dumps;
      const bool still = is_still(changed, seen.last, was, rank, place);
      if (!still) seen.still_since = now;
      if (!still || (rank.missing.empty() && changed.ran)) seen.quiet_since = now;
      // What comes over the network to a rank outside is work: a download.
      const bool fed = place.wait == Wait::socket && changed.fed;
      if (changed.line || changed.bytes || changed.children || changed.threads || fed)
        seen.line_since = now;
      seen.last = rank;
    }
    const std::optional<Place> child = busy_child(rank, place);
    const Wait wait = child && place.wait == Wait::child ? child->wait : place.wait;
    if (wait == Wait::serve || wait == Wait::terminal) stands = false;
    if (!lasts(seen.still_since, 1) && !lasts(seen.line_since, 3)) stands = false;
    anchored |= lasts(seen.quiet_since, 1);
    const bool idle =
        wait == Wait::sleep || wait == Wait::child ||
        (wait == Wait::queue && (!child || child->wait == Wait::sleep ||
                                 child->wait == Wait::serve || child->wait == Wait::running));
    for_others |=
        rank.missing.empty() ? !idle : (rank.missing == kNoAnswer || rank.missing == kElsewhere);
    some |= rank.missing.empty();
    only_raw &= place.user == nullptr || place.wait == Wait::socket;
    raw.insert(place.user == nullptr ? doing(place) : frame_text(*place.user, 400));
  }
  // Workers that are all at one receive wait for what to do; so may all that show nothing but the same wait.
  if (only_raw && raw.size() == 1 && snapshot.ranks.size() > 1) stands = false;
  if (!stands || !some || !anchored || !for_others) {
    told_ = false;
    return false;
  }
  return !std::exchange(told_, true);
}

}  // namespace hpclaunch::stacks
