#include "sys/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <utility>

#include "hpclaunch/events.h"
#include "hpclaunch/rank_report.h"
#include "hpclaunch/text.h"
#include "hpclaunch/traceback.h"

namespace hpclaunch::sys {
namespace {

std::string cause(const RankExit& end) {
  if (end.signal == 0) return fmt::format("exit status {}", end.exit_status);
  return fmt::format("{} (signal {}{})", signal_name(end.signal), end.signal,
                     end.core ? ", core dumped" : "");
}

constexpr std::size_t kNodesNamed = 8;  // in the text; the record has them all

int count(const std::vector<SilentRanks>& nodes) {
  int sum = 0;
  for (const SilentRanks& node : nodes) sum += node.count;
  return sum;
}

}  // namespace

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

void Tail::add(std::string_view bytes) {
  if (bytes.size() > kBytes) bytes.remove_prefix(bytes.size() - kBytes);
  if (bytes_.size() + bytes.size() > 2 * kBytes) bytes_.erase(0, bytes_.size() - kBytes);
  bytes_ += bytes;
}

std::vector<std::string> Tail::lines(std::size_t count) const {
  std::string_view rest = bytes_;
  if (rest.size() > kBytes) rest.remove_prefix(rest.size() - kBytes);
  while (!rest.empty() && std::strchr("\r\n \t", rest.back()) != nullptr) rest.remove_suffix(1);
  std::vector<std::string> found;
  if (rest.empty()) return found;
  const Traceback traceback = read_traceback(rest);
  for (std::string_view line : split(rest, '\n')) {
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    line.remove_prefix(line.rfind('\r') + 1);  // npos + 1 is 0
    found.emplace_back(line);
  }
  if (traceback.found()) found.resize(traceback.end);
  std::size_t from = found.size() - std::min(found.size(), count);
  if (traceback.found()) from = std::min(from, traceback.begin);
  found.erase(found.begin(), found.begin() + static_cast<std::ptrdiff_t>(from));
  if (std::ssize(found) <= kMostLines) return found;
  found[kMostLines / 2] = "...";
  found.erase(found.begin() + kMostLines / 2 + 1, found.end() - kMostLines / 2);
  return found;
}

RankExit exit_of(const siginfo_t& info) {
  RankExit end;
  end.pid = info.si_pid;
  (info.si_code == CLD_EXITED ? end.exit_status : end.signal) = info.si_status;
  end.core = info.si_code == CLD_DUMPED;
  return end;
}

bool is_crash(const RankExit& end) {
  constexpr std::array kCrashes = {SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGILL,
                                   SIGFPE,  SIGSYS,  SIGTRAP, SIGXCPU};
  return std::find(kCrashes.begin(), kCrashes.end(), end.signal) != kCrashes.end();
}

bool is_fault(const RankExit& end) {
  constexpr std::array kFaults = {SIGSEGV, SIGBUS, SIGILL, SIGFPE, SIGSYS};
  return std::find(kFaults.begin(), kFaults.end(), end.signal) != kFaults.end();
}

std::string late_crash_text(const RankExit& end, const RankExit* first) {
  return fmt::format(
      "hpclaunch: rank {} ended with {} after it was signalled to stop{}\n", end.rank,
      signal_name(end.signal),
      first == nullptr ? "" : fmt::format(": it may have failed before rank {}", first->rank));
}

bool ends_programs(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

std::string forwarded_text(int signal) {
  if (signal == SIGPIPE) return "the reader of standard output has exited (SIGPIPE)";
  if (signal == SIGINT) return "interrupted (Ctrl-C)";
  return fmt::format("sent {} to the ranks", signal_name(signal));
}

std::string log_path(const std::string& directory, int rank, int ranks) {
  return fmt::format("{}/rank-{:0{}}.log", directory, rank, std::to_string(ranks - 1).size());
}

std::string lost_log(const std::string& path, int error, std::string_view host) {
  return fmt::format("hpclaunch: cannot write {}{}{}: {}; the job continues without this log\n",
                     path, host.empty() ? "" : " on ", host, std::strerror(error));
}

std::string failure_report(const Ending& ending, int ranks, int forwarded,
                           std::string_view stopped_by, const std::string& log) {
  const RankFailure& first = *ending.first;
  std::string text =
      fmt::format("hpclaunch: rank {}{}: host {}, pid {}, {}, {:.1f} s after start\n", first.rank,
                  !ending.lost.empty() ? " failed after that"
                  : ranks == 1         ? " failed"
                                       : " failed first",
                  first.host, first.pid, cause(first), first.seconds);
  if (forwarded != 0) text += fmt::format("hpclaunch: {}\n", forwarded_text(forwarded));
  // The last lines of a single rank are right above; a signal from outside needs no evidence.
  const bool needs_lines = ranks > 1 && (forwarded == 0 || first.signal != forwarded);
  std::string last_lines;
  for (const std::string& line : first.last_lines)
    if (!line.starts_with(kReportMark)) last_lines += fmt::format("  | {}\n", line);
  if (needs_lines && last_lines.find_first_not_of(" |\n") != std::string::npos)
    text += fmt::format("hpclaunch: last output of rank {}:\n{}", first.rank, last_lines);
  if (!log.empty()) text += fmt::format("hpclaunch: full output of rank {}: {}\n", first.rank, log);
  if (ending.failed > 1)
    text += fmt::format("hpclaunch: {} also failed\n", counted(ending.failed - 1, "other rank"));
  if (ending.ended > 0)
    text += fmt::format("hpclaunch: {}stopped {}\n",
                        stopped_by == "hpclaunch" ? "" : fmt::format("{} ", stopped_by),
                        counted(ending.ended, "other rank"));
  return text;
}

}  // namespace hpclaunch::sys
