#pragma once
// Nodes that do not start: for how long, and what to say about it.
#include <string>

#include "hpclaunch/plan.h"

namespace hpclaunch::sys::supervised {

/// In ms; kNever: it may take any time.
long start_limit(const Plan& plan);

/// For ranks to end by themselves, in ms; short where none has started, since nothing is to be saved then.
long grace_of(const Plan& plan, bool some_started);

/// After the first Ctrl-C.
std::string stopping_text(const Plan& plan);

struct Waiting {
  const Plan& plan;
  const std::string& program;  ///< of the launcher
  std::string who;             ///< "ranks 0-3 on n1"
  bool some_started = false;

  /// What the batch system says of launches that wait, where it can be asked; `whole`: after who waits, and with what to do.
  /// `said`: the launcher has printed messages; the batch system's answer counts as one.
  std::string text(bool whole, bool& said) const;
};

}  // namespace hpclaunch::sys::supervised
