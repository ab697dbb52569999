#pragma once
// Signals on their way to the ranks.
#include <sys/signalfd.h>

#include <vector>

#include "hpclaunch/events.h"
#include "sys/supervised/channel.h"
#include "sys/verdict.h"

namespace hpclaunch::sys::supervised {

class RankSignals {
 public:
  RankSignals(Channel& channel, const Verdict& verdict, int ranks)
      : channel_(channel), verdict_(verdict), ranks_(ranks) {}

  /// To ranks that run and have not got it from somebody else; to those that begin later where it ends programs.
  void send(int signal);
  /// The same once the batch system has had its time for it: a handler must not be interrupted by the same signal.
  void send_later(int signal, long now);
  void keep() { later_at_ = kNever; }  ///< what has not been sent
  void begun(int rank);
  void has_got(int signal, int rank);  ///< from somebody else
  long deadline() const { return later_at_; }
  void advance(long now);

 private:
  Channel& channel_;
  const Verdict& verdict_;
  int ranks_;
  std::vector<int> got_;  // by rank: the last one from somebody else; empty: none has
  int pending_ = 0;       // for ranks that begin only now
  int later_ = 0;
  long later_at_ = kNever;
};

}  // namespace hpclaunch::sys::supervised
