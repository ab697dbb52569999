#pragma once
// The launcher's TCP connections to its helpers on other nodes. The kernel probes them, so that a node that falls
// silent ends its connection as one that crashes does, and nothing wakes up while all is well.
#include <sys/types.h>

#include <string>
#include <vector>

#include "hpclaunch/sys.h"
#include "sys/supervised/lost_node.h"

namespace hpclaunch::sys::supervised {

class Links {
 public:
  Links() = default;
  Links(const Links&) = delete;
  Links& operator=(const Links&) = delete;
  ~Links() { drop(); }

  /// Copies the connections that process `pid` has now. None without Linux 5.6 and the right to trace `pid`.
  void watch(pid_t pid);
  int fd() const { return events_; }  ///< readable when one has ended; -1: none is watched
  void take_ended();
  /// Closes the copies, when the launcher has ended: until then its connections outlive it.
  void drop();

  /// Of nodes whose ranks are all silent the one whose connection ended first, at `at` (UNIX time); nullptr: none, or
  /// all connections had ended by the time of drop(), since the launcher has shut its helpers down.
  const SilentRanks* lost_among(const std::vector<SilentRanks>& silent, double& at) const;

 private:
  struct Ended {
    std::string address;  // of the other node
    double at = 0;
  };
  struct Link {
    int fd;
    std::string address;
  };
  std::vector<Link> links_;
  std::vector<Ended> ended_;
  int events_ = -1;
  bool left_ = false;
};

/// The node that the launcher names, else the one whose connection ended first, at `at` (UNIX time); nullptr: neither is
/// among `silent`.
const SilentRanks* first_lost(const LostNode& named, const Links& links,
                              const std::vector<SilentRanks>& silent, double& at);

}  // namespace hpclaunch::sys::supervised
