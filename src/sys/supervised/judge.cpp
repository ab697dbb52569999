#include "sys/supervised/judge.h"

#include <fmt/format.h>

#include <algorithm>
#include <csignal>

#include "hpclaunch/text.h"
#include "sys/local/report.h"

namespace hpclaunch::sys::supervised {
namespace {

using local::Death;

constexpr std::size_t kMostTailBytes = 4 * 1024 * 1024;  // of all ranks
constexpr std::size_t kTailLines = 10;
constexpr std::size_t kNodesNamed = 8;  // in the text; the record has them all

bool ended_by_others(const Death& death) {
  const int signal = death.signal != 0 ? death.signal : death.exit_status - 128;
  return signal == SIGTERM || signal == SIGKILL || signal == SIGINT;
}

Death death_of(const RankFailure& failure) {
  Death death;
  death.rank = failure.rank;
  death.pid = failure.pid;
  death.exit_status = failure.exit_status;
  death.signal = failure.signal;
  death.core = failure.core;
  death.seconds = failure.seconds;
  return death;
}

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

Ledger::Ledger(const Plan& plan)
    : launcher_(plan.launcher), hosts_(plan.hosts), ranks_(plan.world_size()) {
  Run next{0, 0, 0};
  for (const NodeRun& run : plan.layout) {
    const NodeClass& one = plan.classes[static_cast<std::size_t>(run.node_class)];
    next.ranks_per_node = static_cast<int>(one.ranks.size());
    runs_.push_back(next);
    next.first_node += run.nodes;
    next.first_rank += run.nodes * next.ranks_per_node;
  }
  ends_.resize(static_cast<std::size_t>(ranks_));
  has_begun_.resize(hosts_.size());
}

int Ledger::node_of(int rank) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), rank,
                                      [](int r, const Run& run) { return r < run.first_rank; });
  const Run& run = *(after - 1);
  return run.first_node + (rank - run.first_rank) / run.ranks_per_node;
}

int Ledger::first_rank_of(int node) const {
  const auto after = std::upper_bound(runs_.begin(), runs_.end(), node,
                                      [](int n, const Run& run) { return n < run.first_node; });
  const Run& run = *(after - 1);
  return run.first_rank + (node - run.first_node) * run.ranks_per_node;
}

int Ledger::end_of(int node) const {
  return node + 1 < static_cast<int>(hosts_.size()) ? first_rank_of(node + 1) : ranks_;
}

// False: this node has said so before.
bool Ledger::begin(const Record& record) {
  const auto node = static_cast<std::size_t>(record.node);
  if (has_begun_[node]) return false;
  has_begun_[node] = true;
  ++begun_nodes_;
  return true;
}

bool Ledger::add(const Record& record, double started, double now) {
  if (record.rank < 0 || record.rank >= ranks_ || record.node != node_of(record.rank)) return false;
  if (record.is_begin) return record.rank == first_rank_of(record.node) && begin(record);
  End& end = ends_[static_cast<std::size_t>(record.rank)];
  if (end.heard) return false;
  begin(record);  // or it would not end
  if (record.is_tail) {
    std::vector<std::string>& tail = tails_[record.rank];
    if (tail_bytes_ + record.tail.size() > kMostTailBytes || tail.size() >= kTailLines) return true;
    tail_bytes_ += record.tail.size();
    tail.push_back(record.tail);
    return true;
  }
  end.heard = true;
  end.core = record.core;
  end.signal = static_cast<unsigned char>(record.signal);
  end.exit_status = static_cast<unsigned char>(record.exit_status);
  end.pid = record.pid;
  const bool possible = record.at >= started && record.at <= now + kSettleSeconds;
  end.at = possible ? record.at : now;
  ++heard_;
  if (record.signal != 0 || record.exit_status != 0) {
    ++failures_;
    const std::string& planned = hosts_[static_cast<std::size_t>(record.node)];
    if (record.host != planned) said_host_[record.rank] = record.host;
  }
  return true;
}

// The earliest; a crash shortly after it explains an exit (a peer that lost its connection), as under the
// local launcher. Of equally early ones the lower rank.
std::optional<int> Ledger::first_failure() const {
  std::optional<int> first;
  const auto at = [&](int rank) { return ends_[static_cast<std::size_t>(rank)].at; };
  const auto death = [&](int rank) {
    const End& end = ends_[static_cast<std::size_t>(rank)];
    Death found;
    found.rank = rank;
    found.signal = end.signal;
    found.exit_status = end.exit_status;
    return found;
  };
  const auto failed = [&](int rank) {
    return ends_[static_cast<std::size_t>(rank)].heard && death(rank).failed();
  };
  for (int rank = 0; rank < ranks_; ++rank) {
    if (failed(rank) && (!first || at(rank) < at(*first))) first = rank;
  }
  if (!first) return first;
  const double limit = at(*first) + kSettleSeconds;
  for (int rank = 0; rank < ranks_; ++rank) {
    if (!failed(rank) || !local::is_crash(death(rank)) || at(rank) > limit) continue;
    if (!local::is_crash(death(*first)) || at(rank) < at(*first)) first = rank;
  }
  return first;
}

RankFailure Ledger::failure(int rank, double started) const {
  const End& end = ends_[static_cast<std::size_t>(rank)];
  RankFailure first;
  first.rank = rank;
  first.node = node_of(rank);
  first.local_rank = rank - first_rank_of(first.node);
  const auto said = said_host_.find(rank);
  first.host =
      said != said_host_.end() ? said->second : hosts_[static_cast<std::size_t>(first.node)];
  first.pid = end.pid;
  first.exit_status = end.exit_status;
  first.signal = end.signal;
  first.core = end.core;
  first.seconds = std::max(0.0, end.at - started);
  if (const auto tail = tails_.find(rank); tail != tails_.end()) first.last_lines = tail->second;
  return first;
}

std::vector<SilentRanks> Ledger::silent() const {
  std::vector<SilentRanks> nodes;
  int rank = 0;
  for (int node = 0; node < static_cast<int>(hosts_.size()); ++node) {
    const int last = end_of(node);
    SilentRanks here;
    here.host = hosts_[static_cast<std::size_t>(node)];
    while (rank < last) {
      if (ends_[static_cast<std::size_t>(rank)].heard) {
        ++rank;
        continue;
      }
      const int begin = rank;
      while (rank < last && !ends_[static_cast<std::size_t>(rank)].heard) ++rank;
      here.count += rank - begin;
      if (!here.ranks.empty()) here.ranks += ',';
      here.ranks += range(begin, rank);
    }
    if (here.count > 0) nodes.push_back(std::move(here));
  }
  return nodes;
}

std::string Ledger::not_begun() const {
  std::vector<SilentRanks> nodes;
  for (int node = 0; node < static_cast<int>(hosts_.size()); ++node) {
    if (has_begun_[static_cast<std::size_t>(node)]) continue;
    const int first = first_rank_of(node);
    const int end = end_of(node);
    nodes.push_back({hosts_[static_cast<std::size_t>(node)], range(first, end), end - first});
  }
  return named(nodes);
}

std::string Ledger::story(const Ending& ending, const Circumstances& all) const {
  local::Story story;
  story.host = ending.first->host;
  story.ranks = ranks_;
  story.first = death_of(*ending.first);
  story.also_failed = ending.failed - 1;
  story.ended = ending.ended;
  story.ended_by = all.ended_by_us ? "hpclaunch" : "the launcher";
  const bool of_user =
      all.passed_on != 0 && (all.user_ends || ending.first->signal == all.passed_on);
  const bool of_notice = all.notice.signal != 0 && ending.first->signal == all.notice.signal;
  if (of_user || of_notice) story.passed_on = of_user ? all.passed_on : all.notice.signal;
  const bool obvious = ranks_ == 1 || (story.passed_on != 0 && !local::is_crash(story.first));
  if (!obvious) story.last_lines = ending.first->last_lines;
  return local::failure_report(story);
}

std::string Ledger::silence(const Ending& ending, const LauncherEnd& launcher,
                            const Circumstances& all) const {
  if (ending.silent.empty()) return {};
  std::string why = "node lost, or killed with the launcher";
  if (heard_ == 0 && launcher.status() == 0) {
    why = "does the launcher send standard error elsewhere?";
  } else if (count(ending.silent) == ranks_ && launcher.signal == 0 && launcher.exit_status != 0 &&
             !all.user_ends && !all.stuck) {
    why = "the launcher may not have started them";
  } else if (ending.first || all.user_ends || all.stuck) {
    why = "killed after that, or node lost";
  }
  return fmt::format("hpclaunch: no word from {}: {}\n", named(ending.silent), why);
}

std::string Ledger::of_launcher(const Ending& ending, const LauncherEnd& launcher,
                                const Circumstances& all) const {
  if (all.stuck) {
    return fmt::format("hpclaunch: {} did not end by itself; hpclaunch ended it\n", launcher_);
  }
  if (launcher.signal != 0 && !all.user_ends) {
    return fmt::format("hpclaunch: {} itself was ended by {} (signal {})\n", launcher_,
                       local::signal_name(launcher.signal), launcher.signal);
  }
  if (ending.first || launcher.exit_status == 0) return {};
  const bool well = ending.ok == ranks_;
  return fmt::format("hpclaunch: {} itself ended with status {}{}\n", launcher_,
                     launcher.exit_status, well ? ", though all ranks ended with 0" : "");
}

Verdict Ledger::judge(const LauncherEnd& launcher, const Circumstances& all) const {
  Verdict verdict;
  Ending& ending = verdict.ending;
  ending.passed_on = all.passed_on;
  if (launcher.signal != 0) {
    ending.launcher_signal = launcher.signal;
  } else {
    ending.launcher_exit = launcher.exit_status;
  }
  const std::optional<int> first = first_failure();
  if (first) ending.first = failure(*first, all.started);
  for (int rank = 0; rank < ranks_; ++rank) {
    const End& end = ends_[static_cast<std::size_t>(rank)];
    if (!end.heard) continue;
    Death death;
    death.signal = end.signal;
    death.exit_status = end.exit_status;
    if (!death.failed()) {
      ++ending.ok;
    } else if (rank != *first && ended_by_others(death)) {
      ++ending.ended;
    } else {
      ++ending.failed;
    }
  }
  ending.silent = silent();
  if (ending.first) {
    ending.status = death_of(*ending.first).status();
  } else if (all.stuck && ending.ok == ranks_) {
    ending.status = 0;
  } else if (launcher.status() != 0) {
    ending.status = launcher.status();
  } else if (!ending.silent.empty()) {
    ending.status = all.user_ends ? 128 + all.passed_on : kSilenceStatus;
  }
  if (ending.first) verdict.report += story(ending, all);
  if (!ending.first && all.user_ends && ending.status != 0) {
    verdict.report += fmt::format("hpclaunch: {} had been passed on to the ranks\n",
                                  local::signal_name(all.passed_on));
  }
  verdict.report += silence(ending, launcher, all);
  verdict.report += of_launcher(ending, launcher, all);
  return verdict;
}

}  // namespace hpclaunch::sys::supervised
