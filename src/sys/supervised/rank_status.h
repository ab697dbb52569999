#pragma once
// What the ranks and the launcher reported of their ends, and the job's result that follows. Pure.
#include <map>
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/sys.h"
#include "sys/supervised/record.h"

namespace hpclaunch::sys::supervised {

struct JobFacts {
  double started = 0;           ///< UNIX time
  int forwarded = 0;            ///< last signal of the user that was forwarded; 0: none
  int ended_by = 0;             ///< the first of them that ends programs, or SIGPIPE: the reader of
                                ///< stdout has exited; 0: none
  double ended_at = 0;          ///< UNIX time at which it came
  bool stopped_by_us = false;   ///< the other ranks got TERM from us after the first failure
  bool launcher_stuck = false;  ///< we had to stop the launcher, because it did not exit
  bool launcher_said = false;   ///< something on its standard error, beside records
  long start_seconds = 0;       ///< the limit within which some nodes did not start; 0: none such
  std::string
      lost_host;  ///< the first node whose connection to the launcher ended, all its ranks silent
  double lost_at = 0;  ///< UNIX time

  bool user_ends() const { return ended_by != 0; }
};

struct Summary {
  Ending ending;
  std::string report;  ///< for stderr, whole lines; "" when there is nothing to report
};

/// The status of a job in which a rank did not report its end: only KILL, or the loss of its node,
/// keeps a shim from reporting it, so 128 + 9.
inline constexpr int kSilenceStatus = 137;

/// Of a job that never was complete, as of one that did not start.
inline constexpr int kNotStartedStatus = 125;

class RankStatus {
 public:
  explicit RankStatus(const Plan& plan);

  /// A record that comes twice or late adds nothing.
  /// `now`: UNIX time here. A time in a record that lies before the start or after `now` comes from a
  /// clock that is wrong; `now` is taken instead.
  void add(const Record& record, double started, double now);

  int failures() const { return failures_; }
  bool all_ended() const { return ended_ == ranks_; }
  int started_nodes() const { return started_nodes_; }  ///< of which some rank has reported
  bool all_started() const { return started_nodes_ == plan_.nodes(); }
  std::string not_started() const;  ///< "ranks 4-5 on n3, ranks 6-7 on n4"; of many the first ones
  std::vector<SilentRanks> silent() const;
  /// `launcher`: how the launcher itself ended.
  Summary summary(const RankExit& launcher, const JobFacts& facts) const;

 private:
  struct End : RankExit {  // with UNIX time
    double known_at = 0;   // here
  };
  int node_of(int rank) const;
  bool by_itself(const End& end, const JobFacts& facts) const;
  const End* first_failure(const JobFacts& facts) const;
  void start_node(int node);
  RankFailure failure(const RankExit& end, double started) const;
  int status(const Ending& ending, const RankExit& launcher, const JobFacts& facts) const;
  std::string failed_ranks(const Ending& ending, const JobFacts& facts) const;
  std::string silent_ranks(const Ending& ending, const RankExit& launcher,
                           const JobFacts& facts) const;
  bool node_first(const Ending& ending, const JobFacts& facts) const;
  std::string causes(const Ending& ending, const RankExit& launcher, const JobFacts& facts) const;
  std::string late_crash(const JobFacts& facts) const;
  std::string launcher_end(const Ending& ending, const RankExit& launcher,
                           const JobFacts& facts) const;

  const Plan& plan_;
  std::vector<int> first_ranks_;  // of each node, and behind the last one
  std::vector<std::optional<End>> ends_;
  std::vector<bool> node_started_;
  std::map<int, std::string> other_host_;  // of failed ranks, where it is not the planned one
  std::map<int, std::vector<std::string>> tails_;  // of ranks that failed
  std::size_t tail_bytes_ = 0;
  int ranks_ = 0;
  int ended_ = 0;
  int failures_ = 0;
  int started_nodes_ = 0;
};

}  // namespace hpclaunch::sys::supervised
