#pragma once
// The launcher as a process: started, signalled, and asked to end in the steps of its TerminationPolicy.
#include <unistd.h>

#include <cstddef>
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/sys.h"
#include "sys/start.h"
#include "sys/supervised/relay.h"

namespace hpclaunch::sys::supervised {

class LauncherProcess {
 public:
  explicit LauncherProcess(const TerminationPolicy& policy) : policy_(policy) {}

  /// The limit of open files from now on is for us alone.
  void keep_limits() { getrlimit(RLIMIT_NOFILE, &files_); }
  /// Errors: as start_program.
  Status start(const std::vector<std::string>& argv, const EnvSnapshot& env, const Relay& relay);

  pid_t pid() const { return pid_; }
  const std::string& program() const { return program_; }
  /// In our process group a terminal's signals reach it without us; in one of its own it could not read from there.
  bool shares_group() const { return shares_group_; }
  const std::optional<RankExit>& end() const { return end_; }
  void ended(const RankExit& end) { end_ = end; }

  void signal(int number) const;
  /// The next step of the policy, its last one again and again. ms until the one after it.
  long next_step();

 private:
  const TerminationPolicy& policy_;
  const bool shares_group_ = isatty(STDIN_FILENO) != 0;
  rlimit files_{};
  pid_t pid_ = 0;
  std::string program_;
  std::optional<RankExit> end_;
  std::size_t steps_ = 0;
};

}  // namespace hpclaunch::sys::supervised
