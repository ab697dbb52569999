#pragma once
// Which rank failed first, and the report about it on stderr. Pure; for the local and the supervised
// launcher.
#include <algorithm>
#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/sys.h"

namespace hpclaunch::sys {

/// The last bytes that a rank wrote, on both streams together.
class Tail {
 public:
  static constexpr std::size_t kBytes = 32 * 1024;
  static constexpr std::ptrdiff_t kMostLines = 100;

  void add(std::string_view bytes);
  std::string_view bytes() const {
    return std::string_view(bytes_).substr(bytes_.size() - std::min(bytes_.size(), kBytes));
  }

  /// The last `count` lines of the last kBytes, oldest first; from the last Python traceback on, with those
  /// that led to it, where that is more. Of more than kMostLines the first and the last ones. Of a line that
  /// a progress bar has rewritten, only its last text; without blank lines at the end.
  std::vector<std::string> lines(std::size_t count) const;

 private:
  std::string bytes_;
};

/// Of a job that ended well, but whose output could not be written.
inline constexpr int kOutputLostStatus = 125;

/// How a child ended, as waitid(2) has it.
RankExit exit_of(const siginfo_t& info);

/// Milliseconds in which a crash explains exits before it, and in which failures are one event.
inline constexpr long kSettle = 50;

/// An unexpected end: KILL, SEGV, ABRT, BUS, ILL, FPE, SYS, TRAP, XCPU.
bool is_crash(const RankExit& end);

/// A crash that neither another process nor the program itself asks for: SEGV, BUS, ILL, FPE, SYS.
bool is_fault(const RankExit& end);

/// About a rank that ended so after it had been signalled. `first`: nullptr when no rank failed before.
std::string late_crash_text(const RankExit& end, const RankExit* first);

/// "interrupted (Ctrl-C)", "sent SIGTERM to the ranks"; SIGPIPE: the reader of our output has exited.
std::string forwarded_text(int signal);

/// The report on stderr about ending.first: several lines, ending with a newline. `forwarded`: last
/// signal that the ranks got from the user or before the time limit, 0 for none. `log`: the rank's log
/// file, "" for none.
std::string failure_report(const Ending& ending, int ranks, int forwarded,
                           std::string_view stopped_by = "hpclaunch", const std::string& log = "");

/// "ranks 4-5 on n3, rank 6 on n4"; of many nodes the first ones, and how many more.
std::string named(const std::vector<SilentRanks>& nodes);

/// DIRECTORY/rank-03.log, its number as wide as the last rank's.
std::string log_path(const std::string& directory, int rank, int ranks);

/// Of a log file that cannot be written; `error`: errno. `host`: "" for this one.
std::string lost_log(const std::string& path, int error, std::string_view host = "");

inline constexpr std::string_view kUnkillable =
    "hpclaunch: some processes did not end after SIGKILL (ps shows state D)\n";

}  // namespace hpclaunch::sys
