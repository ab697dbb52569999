#pragma once
// What a launcher does with signals, and what we therefore send it. Pure. docs/supervise.md has the table.
#include <string>
#include <string_view>
#include <vector>

namespace hpclaunch::sys::supervised {

struct Conduct {
  std::string_view launcher;
  /// For a launcher that shall end now with everything it has started: in this order.
  struct Step {
    int signal;
    long wait;  ///< ms, for it to end, before the next step
  };
  std::vector<Step> ending;
  int when_we_die = 0;  ///< what the kernel sends it when hpclaunch is killed
  /// "NAME=value" for its environment; "" for none.
  std::string variable;
};

/// For a launcher that is not in the table: signals pass as they are, TERM and then KILL end it.
Conduct conduct(std::string_view launcher);

/// What to send to the launcher so that its ranks get `signal`, or what comes nearest; 0: nothing that
/// we know of reaches them.
int passed_as(std::string_view launcher, int signal);

}  // namespace hpclaunch::sys::supervised
