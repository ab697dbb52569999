#pragma once
#include <functional>
#include <span>

#include "cli/session.h"

namespace CLI {
class App;
}

namespace hpclaunch::cli {

/// What a parsed command does; returns the exit status.
using Runner = std::function<int(Session&)>;

/// One subcommand. `declare` adds its options to `app` and returns what to do once parsing is over:
/// parsing never acts, acting never parses.
struct Command {
  const char* name;
  const char* summary;       ///< one line for `hpclaunch --help`
  const char* usage;         ///< what follows the name in the usage line
  ExitRules exit_rules;
  bool hidden;               ///< for programs, not for people: left out of help and completion
  Runner (*declare)(CLI::App& app);
};

/// In the order of `hpclaunch --help`.
std::span<const Command> commands();

Runner declare_run(CLI::App& app);
Runner declare_plan(CLI::App& app);
Runner declare_env(CLI::App& app);
Runner declare_explain(CLI::App& app);
Runner declare_topo(CLI::App& app);
Runner declare_completion(CLI::App& app);
Runner declare_launch_local(CLI::App& app);
Runner declare_man(CLI::App& app);

}  // namespace hpclaunch::cli
