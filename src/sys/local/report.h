#pragma once
// Which rank is to blame, and what to say about it. Pure.
#include <string>
#include <string_view>
#include <vector>

#include "sys/local/lines.h"

namespace hpclaunch::sys::local {

/// The last bytes that a rank wrote, on both streams together.
class Tail {
 public:
  static constexpr std::size_t kBytes = 16 * 1024;

  void add(std::string_view bytes);

  /// At most `count` lines, oldest first, of the last kBytes. Of a line that a progress bar has
  /// rewritten, only what stood last; without blank lines at the end.
  std::vector<std::string> lines(std::size_t count) const;

 private:
  std::string bytes_;
};

/// How a rank ended.
struct Death {
  int rank = 0;
  int pid = 0;
  int exit_status = 0;  ///< when `signal` is 0
  int signal = 0;       ///< 0: it exited
  bool core = false;    ///< left a core dump
  double seconds = 0;   ///< after the start of the job

  bool failed() const { return signal != 0 || exit_status != 0; }
  int status() const { return signal != 0 ? 128 + signal : exit_status; }
};

/// A death that nobody asked for: KILL, SEGV, ABRT, BUS, ILL, FPE, SYS, TRAP, XCPU.
bool is_crash(const Death& death);

/// Both seen in the same short while: does `later` explain it better than `first`? A crash explains
/// the exit statuses of the ranks that lost their connection to it; then the lower rank.
bool explains_better(const Death& later, const Death& first);

/// "SIGSEGV", "SIGRTMIN+3"; "signal 99" when it has no name.
std::string signal_name(int signal);

struct Story {
  std::string host;
  int ranks = 1;
  Death first;          ///< the rank to blame
  int also_failed = 0;  ///< of the others, on their own
  int ended = 0;        ///< of the others, by `ended_by`
  std::string ended_by = "hpclaunch";
  int passed_on = 0;  ///< last signal that the user sent and we passed on; 0: none
  std::vector<std::string> last_lines;
  std::string log;  ///< its log file; "" for none
};

/// The report on stderr, several lines, ending with a newline.
std::string failure_report(const Story& story);

}  // namespace hpclaunch::sys::local
