#pragma once
// What the ranks and the launcher have said of their ends, and what follows from it. Pure.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/sys.h"
#include "sys/supervised/record.h"

namespace hpclaunch::sys::supervised {

/// How the launcher itself ended.
struct LauncherEnd {
  int exit_status = 0;  ///< when `signal` is 0
  int signal = 0;
  int status() const { return signal != 0 ? 128 + signal : exit_status; }
};

struct Circumstances {
  double started = 0;        ///< UNIX time
  int passed_on = 0;         ///< last signal that the user sent and we passed on; 0: none
  bool user_ends = false;    ///< one of them ends programs
  bool ended_by_us = false;  ///< the other ranks got TERM from us after the first failure
  bool stuck = false;        ///< we had to end the launcher, because it did not end
  TimeLimitSignal notice;
};

struct Verdict {
  Ending ending;
  std::string report;  ///< for stderr, whole lines; "" when there is nothing to say
};

/// Crashes explain exits that came so much earlier (seconds), as under the local launcher. It also
/// covers clocks of nodes that differ by milliseconds.
inline constexpr double kSettleSeconds = 0.05;

/// The status of a job in which a rank never said how it ended: only KILL, or the loss of its node,
/// keeps a shim from saying it, so 128 + 9.
inline constexpr int kSilenceStatus = 137;

class Ledger {
 public:
  explicit Ledger(const Plan& plan);

  /// False: it cannot be true (a rank on another node than planned, a second end): show it as text.
  /// `now`: UNIX time here. A time in a record that lies before the start or after `now` comes from a
  /// clock that is wrong; `now` is taken instead.
  bool add(const Record& record, double started, double now);

  int failures() const { return failures_; }
  bool all_ended() const { return heard_ == ranks_; }
  int begun() const { return begun_nodes_; }  ///< nodes of which some rank has spoken
  bool all_begun() const { return begun_nodes_ == static_cast<int>(hosts_.size()); }
  std::string not_begun() const;  ///< "ranks 4-5 on n3, ranks 6-7 on n4"; of many the first ones
  Verdict judge(const LauncherEnd& launcher, const Circumstances& all) const;

 private:
  struct End {
    bool heard = false;
    bool core = false;
    unsigned char signal = 0;
    unsigned char exit_status = 0;
    int pid = 0;
    double at = 0;
  };
  int node_of(int rank) const;
  int first_rank_of(int node) const;
  std::optional<int> first_failure() const;
  bool begin(const Record& record);
  int end_of(int node) const;  ///< the rank behind its last one
  RankFailure failure(int rank, double started) const;
  std::vector<SilentRanks> silent() const;
  std::string story(const Ending& ending, const Circumstances& all) const;
  std::string silence(const Ending& ending, const LauncherEnd& launcher,
                      const Circumstances& all) const;
  std::string of_launcher(const Ending& ending, const LauncherEnd& launcher,
                          const Circumstances& all) const;

  struct Run {
    int first_node;
    int first_rank;
    int ranks_per_node;
  };
  std::string launcher_;
  std::vector<std::string> hosts_;
  std::vector<Run> runs_;
  std::vector<End> ends_;
  std::vector<bool> has_begun_;           // by node
  std::map<int, std::string> said_host_;  // of failed ranks, where it is not the planned one
  std::map<int, std::vector<std::string>> tails_;  // of ranks that failed
  std::size_t tail_bytes_ = 0;
  int ranks_ = 0;
  int heard_ = 0;
  int failures_ = 0;
  int begun_nodes_ = 0;
};

}  // namespace hpclaunch::sys::supervised
