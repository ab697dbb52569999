#include "sys/verdict.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iterator>

#include "hpclaunch/events.h"
#include "hpclaunch/text.h"
#include "sys/report.h"

namespace hpclaunch::sys {
namespace {

constexpr std::size_t kMostTailBytes = 4 * 1024 * 1024;  // of all ranks
constexpr std::size_t kTailLines = 10;
constexpr double kOneEvent = kSettle / 1000.0;  // seconds
constexpr int kBySignal = 128;

// "4-7", "4": up to the rank before `end`.
std::string range(int begin, int end) {
  return end - begin == 1 ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, end - 1);
}

std::string end_text(const JobFacts& facts) {
  if (!facts.by_batch) return forwarded_text(facts.ended_by);
  if (facts.time_limit) return "the time limit of the job was reached";
  return fmt::format("the batch system ended the job: cancelled{} preempted{}",
                     facts.knows_limit ? " or" : ",",
                     facts.knows_limit ? "" : ", or at its time limit");
}

}  // namespace

Verdict::Verdict(const Plan& plan)
    : plan_(plan), ranks_(plan.world_size()), own_ranks_(plan.own_ranks().second) {
  first_ranks_ = {0};
  for (const NodeRun& run : plan.placement.layout) {
    const NodeClass& one = plan.placement.classes[run.node_class];
    for (int node = 0; node < run.nodes; ++node)
      first_ranks_.push_back(first_ranks_.back() + static_cast<int>(one.ranks.size()));
  }
  ends_.resize(static_cast<std::size_t>(ranks_));
  begun_.resize(static_cast<std::size_t>(ranks_));
  node_started_.resize(plan_.hosts.names.size());
}

int Verdict::node_of(int rank) const {
  const auto after = std::upper_bound(first_ranks_.begin(), first_ranks_.end(), rank);
  return static_cast<int>(after - first_ranks_.begin()) - 1;
}

void Verdict::begun(int rank, const std::string& host) {
  const int node = node_of(rank);
  gone_.erase(rank);
  if (host != plan_.hosts.names[node]) other_host_[rank] = host;
  if (!begun_[rank]) ++begun_ranks_;
  begun_[rank] = true;
  if (node_started_[node]) return;
  node_started_[node] = true;
  ++started_nodes_;
}

void Verdict::ended(const RankExit& end, std::string_view last_bytes) {
  std::optional<RankExit>& known = ends_[end.rank];
  if (known) return;
  known = end;
  gone_.erase(end.rank);
  ++ended_;
  if (!end.failed()) return;
  ++failures_;
  last_output(end.rank, last_bytes);
}

void Verdict::last_output(int rank, std::string_view bytes) {
  if (tail_bytes_ + bytes.size() > kMostTailBytes) return;
  tail_bytes_ += bytes.size();
  tails_[rank] = bytes;
}

void Verdict::gone(int rank, double at) {
  if (!ends_[rank]) gone_[rank] = at;
}

double Verdict::gone_since() const {
  double first = 0;
  for (const auto& [rank, at] : gone_) first = first == 0 ? at : std::min(first, at);
  return first;
}

bool Verdict::none_runs() const { return ended_ + static_cast<int>(gone_.size()) >= begun_ranks_; }

bool Verdict::all_over() const { return ended_ + static_cast<int>(gone_.size()) == own_ranks_; }

// Neither the launcher ended it, nor the user. Who signals all processes of a job reaches some of them before us: of
// what ended shortly before the user's signal counts what is no end by that signal.
bool Verdict::by_itself(const RankExit& end, const JobFacts& facts) const {
  if (end.sent != 0 || (facts.ended_by == SIGPIPE && end.signal == SIGPIPE)) return false;
  if (!facts.user_ends() || end.seconds < facts.ended_at - kOneEvent) return true;
  return end.seconds <= facts.ended_at && end.status() != kBySignal + facts.ended_by;
}

// The earliest; a crash shortly after it explains an exit (a peer that lost its connection). Of equally early ones the
// lower rank. What was signalled has not failed by itself, unless it exited later and nothing else explains the end of
// the job; nor has what ended because the user ended the job.
const RankExit* Verdict::first_failure(const JobFacts& facts) const {
  const auto earliest = [&](const auto& counts) {
    const RankExit* found = nullptr;
    for (const std::optional<RankExit>& end : ends_)
      if (end && end->failed() && counts(*end) &&
          (found == nullptr || end->seconds < found->seconds))
        found = &*end;
    return found;
  };
  const auto itself = [&](const RankExit& end) { return by_itself(end, facts); };
  const RankExit* first = earliest(itself);
  if (first == nullptr && facts.user_ends()) return nullptr;
  if (first == nullptr && gone_.empty() && !facts.timed_out && !facts.stalled)
    return earliest([](const RankExit& end) { return end.signal == 0; });
  const RankExit* crash =
      earliest([&](const RankExit& end) { return itself(end) && is_crash(end); });
  const bool explains = crash != nullptr && crash->seconds <= first->seconds + kOneEvent;
  return explains ? crash : first;
}

// Nodes whose connection ended before anything else explains it: a rank's failure, a signal, the end of the launcher.
// A launcher that gives up takes all ranks with it at once, so that only the first one counts then.
std::vector<SilentRanks> Verdict::first_lost(const RankExit& launcher,
                                             const JobFacts& facts) const {
  constexpr double kTakesAlong =
      1;  // seconds until a launcher that was killed has taken its ranks with it
  std::vector<SilentRanks> lost = silent(true);
  const RankExit* failed = first_failure(facts);
  const bool killed = launcher.signal == SIGKILL && !facts.launcher_stuck;
  const auto late = [&](const SilentRanks& node) {
    const auto after = [&](double time) { return time > 0 && node.gone_at > time; };
    return node.gone_at == 0 || after(facts.stopped_at) ||
           after(facts.launcher_at - (killed ? kTakesAlong : 0)) ||
           (facts.user_ends() && after(facts.ended_at - kOneEvent)) ||
           (failed != nullptr && after(failed->seconds + kOneEvent));
  };
  std::erase_if(lost, late);
  if (lost.empty()) return failed == nullptr ? fell_silent(facts) : lost;
  std::ranges::stable_sort(lost, {}, [](const SilentRanks& node) { return node.gone_at; });
  if (facts.launcher_at != 0 && facts.launcher_at <= lost.front().gone_at + kOneEvent)
    lost.resize(1);
  return lost;
}

// Nodes of which nothing was heard when the launcher had stopped the others: it noticed their loss before we did.
std::vector<SilentRanks> Verdict::fell_silent(const JobFacts& facts) const {
  const bool by_others = facts.user_ends() || facts.launcher_at == 0 ||
                         (facts.stopped_at != 0 && facts.stopped_at < facts.launcher_at);
  const auto stopped = [](const std::optional<RankExit>& end) { return end && end->sent != 0; };
  if (by_others || !gone_.empty() || std::ranges::none_of(ends_, stopped)) return {};
  std::vector<SilentRanks> nodes = silent();
  std::erase_if(nodes, [&](SilentRanks& node) {
    node.whole_node = node.connected && !(node.node == 0 && plan_.hosts.first_is_here) &&
                      node.count == first_ranks_[node.node + 1] - first_ranks_[node.node];
    return !node.whole_node;
  });
  return nodes;
}

RankFailure Verdict::failure(const RankExit& end, const JobFacts& facts) const {
  RankFailure first;
  static_cast<RankExit&>(first) = end;
  first.seconds = std::max(0.0, end.seconds - facts.started);
  first.node = node_of(end.rank);
  first.local_rank = end.rank - first_ranks_[first.node];
  first.host = host_of(end.rank);
  if (!facts.logs.empty()) first.log = log_path(facts.logs, end.rank, ranks_);
  if (const auto tail = tails_.find(end.rank); tail != tails_.end()) {
    Tail lines;
    lines.add(tail->second);
    first.last_lines = lines.lines(kTailLines);
    first.traceback = read_traceback(lines.bytes());
  }
  return first;
}

// Of each node the ranks for which `counts` holds.
template <class Counts>
std::vector<SilentRanks> Verdict::by_node(Counts counts) const {
  std::vector<SilentRanks> nodes;
  for (std::size_t node = 0; node < plan_.hosts.names.size(); ++node) {
    if (plan_.hosts.own >= 0 && static_cast<int>(node) != plan_.hosts.own) continue;
    const int last = first_ranks_[node + 1];
    SilentRanks here{std::string(plan_.hosts.names[node]), "", 0, static_cast<int>(node)};
    here.connected = node_started_[node];
    for (int rank = first_ranks_[node]; rank < last; ++rank) {
      const int begin = rank;
      while (rank < last && counts(rank)) ++rank;
      if (rank == begin) continue;
      here.count += rank - begin;
      here.ranks += (here.ranks.empty() ? "" : ",") + range(begin, rank);
    }
    if (here.count > 0) nodes.push_back(std::move(here));
  }
  return nodes;
}

std::vector<SilentRanks> Verdict::silent(bool gone_only) const {
  std::vector<SilentRanks> nodes =
      by_node([&](int rank) { return gone_only ? gone_.contains(rank) : !ends_[rank]; });
  for (SilentRanks& node : nodes) {
    int gone = 0;
    int open = 0;
    double last_end = 0;
    for (int rank = first_ranks_[node.node]; rank < first_ranks_[node.node + 1]; ++rank) {
      if (const auto& end = ends_[rank]) last_end = std::max(last_end, end->seconds);
      open += ends_[rank] ? 0 : 1;
      const auto at = gone_.find(rank);
      if (at != gone_.end())
        node.gone_at = gone++ == 0 ? at->second : std::min(node.gone_at, at->second);
    }
    const bool ours = node.node == 0 && plan_.hosts.first_is_here;  // it is there
    node.whole_node = gone > 0 && gone == open && last_end <= node.gone_at && !ours;
  }
  return nodes;
}

std::string Verdict::host_of(int rank) const {
  const auto other = other_host_.find(rank);
  return other != other_host_.end() ? other->second : std::string(plan_.hosts.names[node_of(rank)]);
}

std::string Verdict::running() const { return named(silent()); }

std::string Verdict::not_started() const {
  return named(by_node([&](int rank) { return !begun_[rank]; }));
}

std::string Verdict::failed_ranks(const Ending& ending, const JobFacts& facts) const {
  const int signal = ending.first->signal;
  int forwarded = 0;
  if (signal != 0 && signal == plan_.supervision.time_limit_signal.signal) forwarded = signal;
  if (facts.user_ends())
    forwarded = facts.ended_by;
  else if (facts.forwarded != 0 && signal == facts.forwarded)
    forwarded = facts.forwarded;
  const bool by_us = facts.stopped_at != 0 || facts.launcher_stuck;
  return failure_report(ending, own_ranks_, forwarded, by_us ? "hpclaunch" : "the launcher",
                        ending.first->log);
}

std::string Verdict::silent_ranks(const Ending& ending, const RankExit& launcher,
                                  const JobFacts& facts) const {
  if (ending.silent.empty() || facts.ended_by == SIGPIPE || facts.where.empty()) return {};
  if (started_nodes_ == 0 && facts.all_can_connect &&
      (launcher.failed() || facts.user_ends() || facts.launcher_stuck)) {
    std::string hint;
    if (launcher.exit_status != 0 && plan_.placement.bind_via == BindVia::launcher)
      hint = "hpclaunch: try: --bind-via shim, where the launcher refuses the CPUs of a rank\n";
    return fmt::format("hpclaunch: no rank has started\n{}", hint);
  }
  std::vector<SilentRanks> unheard, others;
  for (const SilentRanks& node : ending.silent) {
    const auto same = [&](const SilentRanks& lost) { return lost.node == node.node; };
    if (std::ranges::none_of(ending.lost, same))
      (node.connected ? others : unheard).push_back(node);
  }
  std::string text;
  if (!others.empty())
    text += fmt::format("hpclaunch: no exit status from {}: killed later, or node lost\n",
                        named(others));
  if (!unheard.empty())
    text += fmt::format(
        "hpclaunch: no connection from {}: not started, or connections to {} are refused or "
        "dropped\n",
        named(unheard), facts.where);
  return text;
}

std::string Verdict::user_end(const JobFacts& facts) const {
  const long killed = std::ranges::count_if(ends_, [&](const std::optional<RankExit>& end) {
    return end && end->signal == SIGKILL && end->sent == SIGKILL;
  });
  if (killed == 0) return fmt::format("hpclaunch: {}; no rank failed before\n", end_text(facts));
  return fmt::format("hpclaunch: {}; killed {}{}\n", end_text(facts), counted(killed, "rank"),
                     facts.killed_at_once ? ""
                                          : fmt::format(" that still ran {:g} s later",
                                                        plan_.supervision.output.grace_seconds));
}

std::string Verdict::causes(const Ending& ending, const RankExit& launcher,
                            const JobFacts& facts) const {
  std::string text;
  for (const SilentRanks& lost : ending.lost) {
    if (lost.whole_node)
      text += fmt::format("hpclaunch: node {} failed first: its connection {}, with {} running\n",
                          lost.host, lost.gone_at != 0 ? "ended" : "is silent", named({lost}));
    else
      text += fmt::format("hpclaunch: {} failed first: killed, with the monitor beside it\n",
                          named({lost}));
  }
  if (facts.timed_out)
    text +=
        fmt::format("hpclaunch: ended {} that stayed after the others had ended (--end-timeout)\n",
                    counted(ending.ended, "rank"));
  if (facts.stalled)
    text += fmt::format(
        "hpclaunch: ended {} that stood still{} (--on-stall)\n", counted(ending.ended, "rank"),
        facts.stalled_rank < 0 ? ""
                               : fmt::format(", as a fault of rank {} on {}", facts.stalled_rank,
                                             host_of(facts.stalled_rank)));
  if (ending.first)
    text += failed_ranks(ending, facts);
  else if (facts.user_ends() && (ending.status != 0 || facts.by_batch))
    text += user_end(facts);
  else if (ending.ended > 0 && !facts.timed_out && !facts.stalled)
    text += fmt::format("hpclaunch: {}stopped {}{}\n", facts.stopped_at != 0 ? "" : "the launcher ",
                        counted(ending.ended, "rank"),
                        ending.lost.empty() ? "; no rank failed before" : "");
  if (ending.first.has_value() != facts.user_ends()) text += late_crash(facts);
  return text + silent_ranks(ending, launcher, facts);
}

// The connections of a rank end when it crashes, its process only when its core file is written: meanwhile others fail,
// and the launcher tells it to stop.
std::string Verdict::late_crash(const JobFacts& facts) const {
  const RankExit* first = first_failure(facts);
  const auto crashed = [&](const std::optional<RankExit>& end) {
    return end && &*end != first && !by_itself(*end, facts) && is_fault(*end);
  };
  const auto found = std::ranges::find_if(ends_, crashed);
  if (found == ends_.end() || (first != nullptr && is_crash(*first))) return {};
  return late_crash_text(**found, first);
}

std::string Verdict::launcher_end(const Ending& ending, const RankExit& launcher,
                                  const JobFacts& facts) const {
  if (!ending.lost.empty()) return {};
  if (facts.launcher_stuck)
    return fmt::format("hpclaunch: {} did not exit; stopped it\n", plan_.launch.launcher);
  if (launcher.signal != 0 && !facts.user_ends())
    return fmt::format("hpclaunch: {} was stopped by {} (signal {})\n", plan_.launch.launcher,
                       signal_name(launcher.signal), launcher.signal);
  if (ending.first || launcher.exit_status == 0 || facts.user_ends()) return {};
  return fmt::format("hpclaunch: {} exited with status {}{}\n", plan_.launch.launcher,
                     launcher.exit_status,
                     ending.ok == own_ranks_ ? ", but all ranks exited with 0" : "");
}

Summary Verdict::summary(const RankExit& launcher, const JobFacts& facts) const {
  Summary summary;
  Ending& ending = summary.ending;
  ending.passed_on = facts.forwarded;
  ending.interrupted_by = facts.ended_by;
  ending.time_limit = facts.by_batch && facts.time_limit;
  ending.stalled = facts.stalled;
  ending.stall = facts.stall;
  ending.stacks = facts.stacks;
  (launcher.signal != 0 ? ending.launcher_signal : ending.launcher_exit) =
      launcher.signal != 0 ? launcher.signal : launcher.exit_status;
  const RankExit* first = first_failure(facts);
  if (first != nullptr) ending.first = failure(*first, facts);
  for (const std::optional<RankExit>& end : ends_) {
    if (!end) continue;
    const bool stopped = &*end != first && !by_itself(*end, facts);
    ++(!end->failed() ? ending.ok : stopped ? ending.ended : ending.failed);
  }
  ending.silent = silent();
  ending.lost = first_lost(launcher, facts);
  ending.status = status(ending, launcher, facts);
  if (facts.start_seconds > 0)
    summary.report = fmt::format(
        "hpclaunch: {} did not start within {} s; stopped {}\n"
        "hpclaunch: try: read the launcher's messages, run hpclaunch verify, or --start-timeout "
        "SECONDS\n",
        not_started(), facts.start_seconds, plan_.launch.launcher);
  else
    summary.report = causes(ending, launcher, facts) + launcher_end(ending, launcher, facts);
  return summary;
}

int Verdict::status(const Ending& ending, const RankExit& launcher, const JobFacts& facts) const {
  if (facts.start_seconds > 0) return kNotStartedStatus;
  if (!ending.lost.empty()) return kSilenceStatus;
  if (ending.first) return ending.first->status();
  if (facts.timed_out || facts.stalled) return kTimedOutStatus;
  if (facts.launcher_stuck && ending.ok == own_ranks_) return 0;
  const auto heard = [](const SilentRanks& node) { return node.connected; };
  const bool well =
      !launcher.failed() && ending.ended == 0 && std::ranges::none_of(ending.silent, heard);
  if (!well && facts.user_ends()) return kBySignal + facts.ended_by;
  if (launcher.failed() && started_nodes_ == 0 && facts.all_can_connect) return kNotStartedStatus;
  if (launcher.failed()) return launcher.status();
  return well ? 0 : kSilenceStatus;
}

}  // namespace hpclaunch::sys
