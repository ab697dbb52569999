#pragma once
// The launcher's stdout and stderr, where ours are files: launchers lose what they cannot write, and return 0. And where
// somebody wants to know whether ranks write.
#include <utility>

#include "hpclaunch/events.h"
#include "hpclaunch/result.h"
#include "sys/screen.h"

namespace hpclaunch::sys::supervised {

class Relay {
 public:
  /// `one_target`: both of ours are the same, so that one pipe keeps the order.
  /// `always`: also where ours are never full
  Status open(bool one_target, bool always);
  int output() const;  ///< of the launcher, ours where nothing is relayed
  int errors() const;
  void started();  ///< the launcher has its ends
  void wait_for(Wait& wait) const;
  bool has_output() const { return relays_output_; }
  /// False: nothing now. `last`: no process of the job lives, so that nothing now is the end.
  bool read(bool last, Pieces& to);
  /// Was the last line of its stderr without an end? From now on it counts as ended.
  bool end_open_line() { return std::exchange(open_line_, false); }
  bool ended() const { return pipes_[0].read_end < 0 && pipes_[1].read_end < 0; }

 private:
  Pipe pipes_[2];
  bool joined_ = false;
  bool relays_output_ = false;
  bool open_line_ = false;
};

}  // namespace hpclaunch::sys::supervised
