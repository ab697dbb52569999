#pragma once
// Which rank failed first, and the report about it on stderr. Pure; for the local and the supervised
// launcher.
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/sys.h"

namespace hpclaunch::sys {

/// The last bytes that a rank wrote, on both streams together.
class Tail {
 public:
  static constexpr std::size_t kBytes = 16 * 1024;

  void add(std::string_view bytes);

  /// At most `count` lines, oldest first, of the last kBytes. Of a line that a progress bar has
  /// rewritten, only its last text; without blank lines at the end.
  std::vector<std::string> lines(std::size_t count) const;

 private:
  std::string bytes_;
};

/// An unexpected end: KILL, SEGV, ABRT, BUS, ILL, FPE, SYS, TRAP, XCPU.
bool is_crash(const RankExit& end);

/// Both seen in the same short while: does `later` explain it better than `first`? A crash explains
/// the exit statuses of the ranks that lost their connection to it; then the lower rank.
bool explains_better(const RankExit& later, const RankExit& first);

/// INT, TERM, HUP, QUIT: the ranks are expected to end.
bool ends_programs(int signal);

struct FailureReport {
  RankFailure first;
  int ranks = 1;
  int also_failed = 0;  ///< of the others, on their own
  int stopped = 0;      ///< of the others, by `stopped_by`
  std::string stopped_by = "hpclaunch";
  int forwarded =
      0;  ///< last signal that the ranks got from the user or before the time limit; 0: none
  std::string log = {};  ///< its log file; "" for none

  /// Its last lines stand right above with one rank; a signal from outside needs no evidence.
  bool needs_lines() const { return ranks > 1 && (forwarded == 0 || is_crash(first)); }
};

/// "interrupted (Ctrl-C)", "sent SIGTERM to the ranks".
std::string forwarded_text(int signal);

/// The report on stderr, several lines, ending with a newline.
std::string failure_report(const FailureReport& report);

inline constexpr std::string_view kUnkillable =
    "hpclaunch: some processes did not end after SIGKILL (ps shows state D)\n";

}  // namespace hpclaunch::sys
