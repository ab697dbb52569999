#pragma once
// The ends of ranks and launcher, and the result of the job that follows from them. Pure.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/sys.h"
#include "sys/report.h"

namespace hpclaunch::sys {

struct JobFacts {
  double started = 0;  ///< UNIX time, as all times here
  int forwarded = 0;   ///< last signal of the user that was forwarded; 0: none
  /// The first of them that ends programs, or SIGPIPE: the reader of stdout has exited; 0: none. And when it came.
  int ended_by = 0;
  double ended_at = 0;
  bool by_batch = false;     ///< it came from the batch system,
  bool time_limit = false;   ///< because the time of the job was over
  bool knows_limit = false;  ///< when it is over
  double stopped_at = 0;   ///< the others got TERM from us after the first failure; 0: they did not
  double launcher_at = 0;  ///< when the launcher ended
  bool launcher_stuck = false;  ///< we had to stop it, because it did not exit
  bool killed_at_once = false;  ///< at the second Ctrl-C
  bool timed_out = false;   ///< some ranks stayed too long after others had ended (--end-timeout)
  bool stalled = false;     ///< --on-stall has ended the job, as a fault of
  int stalled_rank = -1;    ///< this rank; -1: of nobody
  std::string stall = {};   ///< StallStep::record of the last one
  std::string stacks = {};  ///< of LastLook
  long start_seconds = 0;   ///< the limit within which no node started; 0: none such
  bool all_can_connect = false;  ///< a rank that has not connected has not run
  std::string where = {};  ///< we listen: "10.0.0.1 port 4711"; "": ranks are our own children
  std::string logs = {};   ///< their folder; "" for none

  bool user_ends() const { return ended_by != 0; }
  /// The batch system has sent what ends the job, whose time is over at `limit`; 0: unknown.
  void batch_ends(double limit) {
    constexpr double kEarly = 10;  // s
    by_batch = true;
    knows_limit = limit != 0;
    time_limit = knows_limit && wall_clock() >= limit - kEarly;
  }
};

struct Summary {
  Ending ending;
  std::string report;  ///< for stderr, whole lines; "" when there is nothing to report
};

/// The status of a job in which a rank did not report its end: only KILL, or the loss of its node, keeps a monitor from
/// reporting it, so 128 + 9.
inline constexpr int kSilenceStatus = 137;

/// Of a job in which no rank has run.
inline constexpr int kNotStartedStatus = 125;

/// Of one whose last ranks had to be ended (--end-timeout), as of timeout(1).
inline constexpr int kTimedOutStatus = 124;

class Verdict {
 public:
  explicit Verdict(const Plan& plan);

  void begun(int rank, const std::string& host);
  /// `seconds` is UNIX time here. What comes twice adds nothing.
  void ended(const RankExit& end, std::string_view last_bytes);
  /// Of a rank that failed, where it comes after the end.
  void last_output(int rank, std::string_view bytes);
  /// Its connection ended before it did. It may begin again: with another monitor of its node.
  void gone(int rank, double at);

  std::string host_of(int rank) const;  ///< as the rank has it, else the planned one
  bool has_begun(int rank) const { return begun_[rank]; }
  bool is_gone(int rank) const { return gone_.contains(rank); }
  bool has_ended(int rank) const { return ends_[rank].has_value(); }
  int ranks() const { return ranks_; }
  bool is_ours(int rank) const { return plan_.hosts.own < 0 || node_of(rank) == plan_.hosts.own; }
  int failures() const { return failures_; }
  int ok() const { return ended_ - failures_; }
  bool all_ended() const { return ended_ == own_ranks_; }
  /// The one that counts as the cause, as far as it is known; nullptr: none.
  const RankExit* first_failure(const JobFacts& facts) const;
  double gone_since() const;  ///< of the first of those that are gone; 0: none
  bool all_over() const;      ///< all have ended or are gone
  bool none_runs() const;     ///< the same of those that have begun
  int started_nodes() const { return started_nodes_; }  ///< of which some rank has connected
  int begun_ranks() const { return begun_ranks_; }
  std::string not_started() const;  ///< "ranks 4-5 on n3, ranks 6-7 on n4"; of many the first ones
  std::string running() const;      ///< the same, of ranks without an end
  std::vector<SilentRanks> silent(bool gone_only = false) const;  ///< ranks without an end
  /// `launcher`: how the launcher itself ended.
  Summary summary(const RankExit& launcher, const JobFacts& facts) const;

 private:
  bool by_itself(const RankExit& end, const JobFacts& facts) const;
  std::vector<SilentRanks> first_lost(const RankExit& launcher, const JobFacts& facts) const;
  std::vector<SilentRanks> fell_silent(const JobFacts& facts) const;
  int node_of(int rank) const;
  template <class Counts>
  std::vector<SilentRanks> by_node(Counts counts) const;
  RankFailure failure(const RankExit& end, const JobFacts& facts) const;
  int status(const Ending& ending, const RankExit& launcher, const JobFacts& facts) const;
  std::string user_end(const JobFacts& facts) const;
  std::string failed_ranks(const Ending& ending, const JobFacts& facts) const;
  std::string silent_ranks(const Ending& ending, const RankExit& launcher,
                           const JobFacts& facts) const;
  std::string causes(const Ending& ending, const RankExit& launcher, const JobFacts& facts) const;
  std::string late_crash(const JobFacts& facts) const;
  std::string launcher_end(const Ending& ending, const RankExit& launcher,
                           const JobFacts& facts) const;

  const Plan& plan_;
  std::vector<int> first_ranks_;  // of each node, and behind the last one
  std::vector<std::optional<RankExit>> ends_;
  std::map<int, double> gone_;  // by rank
  std::vector<bool> begun_;     // ranks
  std::vector<bool> node_started_;
  std::map<int, std::string> other_host_;  // where it is not the planned one
  std::map<int, std::string> tails_;       // of ranks that failed
  std::size_t tail_bytes_ = 0;
  int ranks_ = 0;
  int own_ranks_ = 0;  // that this hpclaunch starts: all, or those of Hosts::own
  int ended_ = 0;
  int failures_ = 0;
  int started_nodes_ = 0;
  int begun_ranks_ = 0;
};

}  // namespace hpclaunch::sys
