#include "sys/local/parent.h"

#include <fcntl.h>
#include <sys/prctl.h>
#include <unistd.h>

#include "sys/local/guard.h"
#include "sys/local/sweep.h"

namespace hpclaunch::sys::local {

void fill_standard_files() {
  int fd = 0;
  while (fd >= 0 && fd <= 2) fd = open("/dev/null", O_RDWR);
  if (fd > 2) close(fd);
}

bool is_ignored(int signal) {
  struct sigaction action {};
  return sigaction(signal, nullptr, &action) == 0 && action.sa_handler == SIG_IGN;
}

sigset_t signals_to_pass_on() {
  sigset_t set;
  sigemptyset(&set);
  for (const int signal : kPassedOn) {
    if (!is_ignored(signal)) sigaddset(&set, signal);
  }
  return set;
}

ExitStatuses::ExitStatuses() {
  struct sigaction standard {};
  standard.sa_handler = SIG_DFL;
  sigaction(SIGCHLD, &standard, &before_);
}

ExitStatuses::~ExitStatuses() { sigaction(SIGCHLD, &before_, nullptr); }

Subreaper::Subreaper() : alone_(no_children()) {
  prctl(PR_GET_CHILD_SUBREAPER, &before_);
  if (alone_) prctl(PR_SET_CHILD_SUBREAPER, 1);
}

Subreaper::~Subreaper() {
  if (alone_) prctl(PR_SET_CHILD_SUBREAPER, before_);
}

}  // namespace hpclaunch::sys::local
