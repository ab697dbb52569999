#pragma once
// Flags of each launcher that decide what the plan decides.
#include <span>
#include <string_view>

namespace hpclaunch {

enum class Decides {
  ranks,      ///< how many in all
  per_node,   ///< how many on a node
  nodes,      ///< how many nodes
  hosts,      ///< which ones, by name
  host_file,  ///< which ones, by a file
  binding,    ///< on which CPUs
  step,       ///< the CPUs of the step: fewer than the node has
  order,      ///< which rank sits where
  devices,    ///< what a rank sees of the GPUs
  no_env,     ///< that variables are not passed on
  some_env,   ///< which ones are, by name, "ALL" for all
  one_env,    ///< the value of one
  failure,    ///< what one failing rank does to the others
  errors,     ///< where the ranks' standard error goes
  nothing,    ///< of the plan; named because it begins like a longer one
};

struct Flag {
  std::string_view name;  ///< without dashes where the launcher does not care how many there are
  Decides decides;
  int words = 1;                   ///< values that follow it
  std::string_view harmless = {};  ///< a value with which it agrees with every plan
  std::string_view key = {};       ///< only with "KEY=..." as its value (flux -o)
};

struct FlagTable {
  std::string_view launcher;
  /// True: words with one dash or two, "-n 3" or "-n=3". False: getopt, "-n3", "--ntasks=3".
  bool words = false;
  std::span<const Flag> flags;
  std::span<const Flag> family =
      {};  ///< what it has in common with others; looked up after `flags`
  /// Letters that take no value, so that others may follow: "-lN1". With them, getopt_long takes the
  /// beginning of a long name for the name. Empty: neither is known of this launcher.
  std::string_view switches = {};
};

/// nullptr for a launcher that takes no arguments.
const FlagTable* find_flags(std::string_view launcher);

}  // namespace hpclaunch
