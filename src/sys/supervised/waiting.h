#pragma once
// Nodes that do not start and ranks that do not end: for how long, and what to say about it.
#include <string>

#include "hpclaunch/events.h"
#include "hpclaunch/plan.h"
#include "sys/verdict.h"

namespace hpclaunch::sys::supervised {

/// In ms; kNever: it may take any time.
long start_limit(const Plan& plan);

/// For ranks to end by themselves, in ms; short where none has started, since nothing is to be saved then.
long grace_of(const Plan& plan, bool some_started);

/// After the first Ctrl-C.
std::string stopping_text(const Plan& plan);

/// Says what it waits for, once.
class Waiting {
 public:
  Waiting(const Plan& plan, const Verdict& verdict) : plan_(plan), verdict_(verdict) {}

  /// `program`: of the launcher; `where`: we listen.
  void start(const std::string& program, const std::string& where);
  /// Lines for stderr, mostly "". `ending`: nothing is waited for any more; `held`: ranks that stay are not ended now.
  std::string advance(long now, bool ending, bool held);
  long stayers_end_at() const;  ///< kNever: nothing ends them
  long deadline() const;
  bool is_too_late() const { return too_late_; }  ///< no node has started in time
  bool ranks_stay_too_long() const { return stay_too_long_; }

 private:
  std::string nodes(long now, bool ending);
  std::string stayers(long now, bool ending);
  std::string missing(bool whole) const;

  const Plan& plan_;
  const Verdict& verdict_;
  std::string program_, where_;
  int started_ = 0;           // ranks
  long name_at_ = kNever;     // those that have not begun
  long start_by_ = kNever;    // when it is too late for all
  long first_ok_ = kNever;    // the first rank ended with 0
  long stay_until_ = kNever;  // for those that stay
  bool stay_said_ = false, held_ = false;
  bool too_late_ = false, stay_too_long_ = false;
};

}  // namespace hpclaunch::sys::supervised
