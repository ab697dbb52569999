#include "sys/supervised/rank_status.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <iterator>

#include "hpclaunch/events.h"
#include "hpclaunch/text.h"
#include "sys/report.h"

namespace hpclaunch::sys::supervised {
namespace {

constexpr std::size_t kMostTailBytes = 4 * 1024 * 1024;  // of all ranks
constexpr std::size_t kTailLines = Tail::kMostLines + 1;
constexpr int kBySignal = 128;
constexpr std::size_t kNodesNamed = 8;  // in the text; the record has them all

int count(const std::vector<SilentRanks>& nodes) {
  int sum = 0;
  for (const SilentRanks& node : nodes) sum += node.count;
  return sum;
}

// "4-7", "4": up to the rank before `end`.
std::string range(int begin, int end) {
  return end - begin == 1 ? fmt::format("{}", begin) : fmt::format("{}-{}", begin, end - 1);
}

std::string named(const std::vector<SilentRanks>& nodes) {
  std::string where;
  for (std::size_t i = 0; i < std::min(kNodesNamed, nodes.size()); ++i) {
    const SilentRanks& node = nodes[i];
    where += fmt::format("{}{} {} on {}", i == 0 ? "" : ", ", node.count == 1 ? "rank" : "ranks",
                         node.ranks, node.host);
  }
  if (nodes.size() > kNodesNamed) {
    where += fmt::format(
        ", and {} on {}",
        counted(count(nodes) - count({nodes.begin(), nodes.begin() + kNodesNamed}), "rank"),
        counted(static_cast<long>(nodes.size() - kNodesNamed), "node"));
  }
  return where;
}

}  // namespace

RankStatus::RankStatus(const Plan& plan) : plan_(plan), ranks_(plan.world_size()) {
  first_ranks_ = {0};
  for (const NodeRun& run : plan.placement.layout) {
    const NodeClass& one = plan.placement.classes[run.node_class];
    for (int node = 0; node < run.nodes; ++node)
      first_ranks_.push_back(first_ranks_.back() + static_cast<int>(one.ranks.size()));
  }
  ends_.resize(static_cast<std::size_t>(ranks_));
  node_started_.resize(plan_.hosts.names.size());
}

int RankStatus::node_of(int rank) const {
  const auto after = std::upper_bound(first_ranks_.begin(), first_ranks_.end(), rank);
  return static_cast<int>(after - first_ranks_.begin()) - 1;
}

void RankStatus::start_node(int node) {
  if (node_started_[node]) return;
  node_started_[node] = true;
  ++started_nodes_;
}

void RankStatus::add(const Record& record, double started, double now) {
  if (record.rank < 0 || record.rank >= ranks_ || record.node != node_of(record.rank)) return;
  std::optional<End>& end = ends_[record.rank];
  if (end) return;
  start_node(record.node);
  if (record.is_begin || record.log_error != 0) return;
  if (record.is_tail) {
    std::vector<std::string>& tail = tails_[record.rank];
    if (tail_bytes_ + record.tail.size() > kMostTailBytes || tail.size() >= kTailLines) return;
    tail_bytes_ += record.tail.size();
    tail.push_back(record.tail);
    return;
  }
  end = End{record, now};
  const bool possible = end->seconds >= started && end->seconds <= now + kSettle / 1000.0;
  if (!possible) end->seconds = now;
  ++ended_;
  if (!end->failed()) return;
  ++failures_;
  if (record.host != plan_.hosts.names[record.node]) other_host_[record.rank] = record.host;
}

// Neither the launcher ended it, nor the user. Clocks differ, and who signals all processes of a job reaches some of
// them before us: shortly before the user's signal counts what was known by then, and is no end by that signal.
bool RankStatus::by_itself(const End& end, const JobFacts& facts) const {
  if (end.sent != 0 || (facts.ended_by == SIGPIPE && end.signal == SIGPIPE)) return false;
  if (!facts.user_ends() || end.seconds < facts.ended_at - kSettle / 1000.0) return true;
  const auto ends_so = [&](int signal) { return end.status() == kBySignal + signal; };
  return end.known_at <= facts.ended_at && !ends_so(facts.ended_by) &&
         !ends_so(plan_.supervision.termination.sent_for(facts.ended_by));
}

// The earliest; a crash shortly after it explains an exit (a peer that lost its connection), as under the
// local launcher. Of equally early ones the lower rank. What the launcher ended has not failed by itself,
// unless it exited later and nothing else explains the end of the job; nor has what ended because the user ended the
// job.
const RankStatus::End* RankStatus::first_failure(const JobFacts& facts) const {
  const auto earliest = [&](const auto& counts) {
    const End* found = nullptr;
    for (const std::optional<End>& end : ends_)
      if (end && end->failed() && counts(*end) &&
          (found == nullptr || end->seconds < found->seconds))
        found = &*end;
    return found;
  };
  const End* first = earliest([&](const End& end) { return by_itself(end, facts); });
  if (first == nullptr && facts.user_ends()) return nullptr;
  if (first == nullptr && all_started() && std::ranges::none_of(silent(), &SilentRanks::whole_node))
    return earliest([](const End& end) { return end.signal == 0; });
  const End* crash =
      earliest([&](const End& end) { return by_itself(end, facts) && is_crash(end); });
  const bool explains = crash != nullptr && crash->seconds <= first->seconds + kSettle / 1000.0;
  return explains ? crash : first;
}

RankFailure RankStatus::failure(const RankExit& end, double started) const {
  RankFailure first;
  static_cast<RankExit&>(first) = end;
  first.seconds = std::max(0.0, end.seconds - started);
  first.node = node_of(end.rank);
  first.local_rank = end.rank - first_ranks_[first.node];
  const auto other = other_host_.find(end.rank);
  first.host = other != other_host_.end() ? other->second : plan_.hosts.names[first.node];
  if (const auto tail = tails_.find(end.rank); tail != tails_.end())
    first.last_lines = tail->second;
  return first;
}

std::vector<SilentRanks> RankStatus::silent() const {
  std::vector<SilentRanks> nodes;
  for (std::size_t node = 0; node < plan_.hosts.names.size(); ++node) {
    const auto known = [&](int rank) { return ends_[rank].has_value(); };
    const int last = first_ranks_[node + 1];
    SilentRanks here{std::string(plan_.hosts.names[node]), "", 0};
    for (int rank = first_ranks_[node]; rank < last; ++rank) {
      const int begin = rank;
      while (rank < last && !known(rank)) ++rank;
      if (rank == begin) continue;
      here.count += rank - begin;
      here.ranks += (here.ranks.empty() ? "" : ",") + range(begin, rank);
    }
    here.whole_node = node_started_[node] && here.count == last - first_ranks_[node];
    if (here.count > 0) nodes.push_back(std::move(here));
  }
  return nodes;
}

std::string RankStatus::not_started() const {
  std::vector<SilentRanks> nodes;
  for (std::size_t node = 0; node < plan_.hosts.names.size(); ++node) {
    if (node_started_[node]) continue;
    const int first = first_ranks_[node];
    const int end = first_ranks_[node + 1];
    nodes.push_back({std::string(plan_.hosts.names[node]), range(first, end), end - first});
  }
  return named(nodes);
}

std::string RankStatus::failed_ranks(const Ending& ending, const JobFacts& facts) const {
  const int signal = ending.first->signal;
  int forwarded = 0;
  if (signal != 0 && signal == plan_.supervision.time_limit_signal.signal) forwarded = signal;
  if (facts.user_ends())
    forwarded = facts.ended_by;
  else if (facts.forwarded != 0 && signal == facts.forwarded)
    forwarded = facts.forwarded;
  const std::string& logs = plan_.supervision.output.log_dir;
  return failure_report(ending, ranks_, forwarded,
                        facts.stopped_by_us ? "hpclaunch" : "the launcher",
                        logs.empty() ? "" : log_path(logs, ending.first->rank, ranks_),
                        facts.forwarded != 0 ? plan_.supervision.termination.at_stop : "");
}

std::string RankStatus::silent_ranks(const Ending& ending, const RankExit& launcher,
                                     const JobFacts& facts) const {
  if (ending.silent.empty() || facts.ended_by == SIGPIPE) return {};
  const bool all = count(ending.silent) == ranks_;
  std::string why = "node lost, or killed with the launcher";
  std::string hint;
  if (ended_ == 0 && started_nodes_ == 0 && launcher.status() == 0) {
    why = "the launcher may redirect standard error";
  } else if (all && started_nodes_ == 0 && launcher.exit_status != 0 && !facts.user_ends() &&
             !facts.launcher_stuck) {
    why = "the launcher may not have started them";
    if (plan_.placement.bind_via == BindVia::launcher)
      hint = "hpclaunch: try: --bind-via shim, where the launcher refuses the CPUs of a rank\n";
  } else if (all && all_started() && !facts.user_ends() && !facts.launcher_stuck) {
    why =
        "a node was lost, or the launcher failed; hpclaunch verify names nodes that do not answer";
  } else if (ending.first || facts.user_ends() || facts.launcher_stuck) {
    why = "killed later, or node lost";
  }
  return fmt::format("hpclaunch: no exit status from {}: {}\n{}", named(ending.silent), why, hint);
}

// A lost connection says which node, and when. Else nodes that fell silent as a whole before the launcher stopped
// ranks elsewhere: what it reacted to. After a rank's own failure silence says less: many launchers stop ranks in a
// way that leaves no record.
bool RankStatus::node_first(const Ending& ending, const JobFacts& facts) const {
  if (!facts.lost_host.empty() && !facts.user_ends())
    return !ending.first ||
           facts.lost_at <= facts.started + ending.first->seconds + kSettle / 1000.0;
  const auto whole = std::ranges::count_if(ending.silent, &SilentRanks::whole_node);
  if (whole == 0 || ending.ended == 0 || facts.user_ends()) return false;
  return !ending.first ||
         (plan_.supervision.termination.stop_is_recorded && whole == std::ssize(ending.silent));
}

std::string RankStatus::causes(const Ending& ending, const RankExit& launcher,
                               const JobFacts& facts) const {
  std::string text;
  if (ending.node_first) {
    std::vector<SilentRanks> lost;
    std::ranges::copy_if(ending.silent, std::back_inserter(lost), [&](const SilentRanks& node) {
      return facts.lost_host.empty() ? node.whole_node : node.host == facts.lost_host;
    });
    const std::string nodes =
        lost.size() == 1 ? "node " + lost[0].host
                         : (plan_.supervision.termination.stop_is_recorded ? "" : "one of ") +
                               counted(lost.size(), "node");
    text = fmt::format("hpclaunch: {} failed first: no exit status from {}\n", nodes, named(lost));
  }
  if (ending.first)
    text += failed_ranks(ending, facts);
  else if (facts.user_ends() && ending.status != 0)
    text += fmt::format("hpclaunch: {}; no rank failed before\n",
                        forwarded_text(facts.ended_by, plan_.supervision.termination.at_stop));
  else if (ending.ended > 0)
    text += fmt::format("hpclaunch: the launcher stopped {}{}\n", counted(ending.ended, "rank"),
                        ending.node_first ? "" : "; no rank failed before");
  if (ending.first.has_value() != facts.user_ends()) text += late_crash(facts);
  return ending.node_first ? text : text + silent_ranks(ending, launcher, facts);
}

// The connections of a rank end when it crashes, its process only when its core file is written: meanwhile others fail,
// and the launcher tells it to stop.
std::string RankStatus::late_crash(const JobFacts& facts) const {
  const End* first = first_failure(facts);
  const auto crashed = [&](const std::optional<End>& end) {
    return end && &*end != first && !by_itself(*end, facts) && is_fault(*end);
  };
  const auto found = std::ranges::find_if(ends_, crashed);
  if (found == ends_.end() || (first != nullptr && is_crash(*first))) return {};
  return late_crash_text(**found, first);
}

std::string RankStatus::launcher_end(const Ending& ending, const RankExit& launcher,
                                     const JobFacts& facts) const {
  if (facts.launcher_stuck)
    return fmt::format("hpclaunch: {} did not exit; stopped it\n", plan_.launch.launcher);
  if (launcher.signal != 0 && !facts.user_ends())
    return fmt::format("hpclaunch: {} was stopped by {} (signal {})\n", plan_.launch.launcher,
                       signal_name(launcher.signal), launcher.signal);
  if (ending.first || launcher.exit_status == 0 || facts.user_ends()) return {};
  return fmt::format("hpclaunch: {} exited with status {}{}\n", plan_.launch.launcher,
                     launcher.exit_status,
                     ending.ok == ranks_ ? ", but all ranks exited with 0" : "");
}

Summary RankStatus::summary(const RankExit& launcher, const JobFacts& facts) const {
  Summary summary;
  Ending& ending = summary.ending;
  ending.passed_on = facts.forwarded;
  ending.interrupted_by = facts.ended_by;
  (launcher.signal != 0 ? ending.launcher_signal : ending.launcher_exit) =
      launcher.signal != 0 ? launcher.signal : launcher.exit_status;
  const End* first = first_failure(facts);
  if (first != nullptr) ending.first = failure(*first, facts.started);
  for (const std::optional<End>& end : ends_) {
    if (!end) continue;
    const bool stopped = &*end != first && !by_itself(*end, facts);
    ++(!end->failed() ? ending.ok : stopped ? ending.ended : ending.failed);
  }
  ending.silent = silent();
  ending.node_first = node_first(ending, facts);
  ending.status = status(ending, launcher, facts);
  if (facts.start_seconds > 0)
    summary.report = fmt::format(
        "hpclaunch: {} did not start within {} s; stopped {}\n"
        "hpclaunch: try: {}, or --start-timeout SECONDS\n",
        not_started(), facts.start_seconds, plan_.launch.launcher,
        facts.launcher_said ? "read the launcher's messages above" : "run hpclaunch verify");
  else
    summary.report = causes(ending, launcher, facts) + launcher_end(ending, launcher, facts);
  return summary;
}

int RankStatus::status(const Ending& ending, const RankExit& launcher,
                       const JobFacts& facts) const {
  if (facts.start_seconds > 0) return kNotStartedStatus;
  if (ending.first) return ending.first->status();
  if (facts.launcher_stuck && ending.ok == ranks_) return 0;
  const bool well = !launcher.failed() && ending.silent.empty() && ending.ended == 0;
  if (!well && facts.user_ends()) return kBySignal + facts.ended_by;
  if (launcher.failed()) return launcher.status();
  return well ? 0 : kSilenceStatus;
}

}  // namespace hpclaunch::sys::supervised
