#pragma once
#include <functional>
#include <span>

#include "cli/parser.h"
#include "cli/session.h"

namespace hpclaunch::cli {

/// What a parsed command does; returns the exit status.
using Runner = std::function<int(Session&)>;

/// One subcommand. `declare` adds its options to `parser` and returns what to do once parsing is over:
/// parsing never acts, acting never parses.
struct Command {
  const char* name;
  const char* summary;  ///< one line for `hpclaunch --help`
  const char* usage;    ///< what follows the name in the usage line
  ExitRules exit_rules;
  bool hidden;  ///< for programs, not for people: left out of help and completion
  Runner (*declare)(Parser& parser);
};

/// In the order of `hpclaunch --help`.
std::span<const Command> commands();

Runner declare_run(Parser& parser);
Runner declare_plan(Parser& parser);
Runner declare_env(Parser& parser);
Runner declare_explain(Parser& parser);
Runner declare_topo(Parser& parser);
Runner declare_profile(Parser& parser);
Runner declare_completion(Parser& parser);
Runner declare_launch_local(Parser& parser);
Runner declare_rank_report(Parser& parser);
Runner declare_verify(Parser& parser);
Runner declare_man(Parser& parser);

}  // namespace hpclaunch::cli
