#pragma once
// What a process makes ready in itself before it starts others and waits for them.
#include <csignal>

namespace hpclaunch::sys::local {

/// Takes 0, 1 and 2 where they are free, or a pipe of ours would get such a number.
void fill_standard_files();

bool is_ignored(int signal);

/// kPassedOn without what this process ignores: under nohup, HUP stays without effect.
sigset_t signals_to_pass_on();

/// While it lives, children leave exit statuses: with SIGCHLD ignored the kernel keeps none.
class ExitStatuses {
 public:
  ExitStatuses();
  ~ExitStatuses();
  ExitStatuses(const ExitStatuses&) = delete;
  ExitStatuses& operator=(const ExitStatuses&) = delete;

 private:
  struct sigaction before_ {};
};

/// While it lives, orphans below this process become its children. Not where a shell that execs us has left
/// us children of its own: their orphans would come to us too, and look like ours.
class Subreaper {
 public:
  Subreaper();
  ~Subreaper();
  Subreaper(const Subreaper&) = delete;
  Subreaper& operator=(const Subreaper&) = delete;

  /// Every child that this process has from now on belongs to what it starts.
  bool alone() const { return alone_; }

 private:
  bool alone_;
  int before_ = 0;
};

}  // namespace hpclaunch::sys::local
