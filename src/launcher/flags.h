#pragma once
// Flags of a launcher that decide what the plan decides.
#include <optional>
#include <span>
#include <string>
#include <string_view>

namespace hpclaunch {

enum class Decides {
  ranks,      ///< the number of ranks
  per_node,   ///< the number of ranks on a node
  nodes,      ///< the number of nodes
  hosts,      ///< which nodes, by name
  host_file,  ///< which nodes, by a file
  binding,    ///< the CPUs of a rank
  step,       ///< the CPUs of the step: fewer than the node has
  order,      ///< the node of each rank
  devices,    ///< which GPUs a rank sees
  node_gpus,  ///< which GPUs the step has on a node: "4", "a100:4"
  node_gres,  ///< the same as "gpu:4", "gpu:a100:4", "nic:1,gpu:4"
  no_env,     ///< that variables are not passed on
  some_env,   ///< which variables are passed on, by name; "ALL" for all
  one_env,    ///< the value of one variable
  edit_env,   ///< the same; with a '-' in front, a pattern of variables that are not passed on
  failure,    ///< what one failed rank does to the others
  nothing,    ///< of the plan; listed because it is the beginning of a longer flag
};

struct Flag {
  Decides decides;
  std::string_view names;  ///< "--ntasks -n"; without dashes where the launcher accepts one or two
  int words = 1;           ///< values that follow it; 0: none, or one that is joined to it
  std::string_view harmless = {};  ///< a value that agrees with every plan
  std::string_view key = {};       ///< only with "KEY=..." as its value (flux -o)
};

struct FlagTable {
  /// True: words with one dash or two, "-n 3" or "-n=3". False: getopt, "-n3", "--ntasks=3".
  bool words = false;
  std::span<const Flag> flags = {};
  const FlagTable* family = nullptr;  ///< more flags, shared with other launchers
  /// Letters without a value, so that others may follow: "-lN1". With them, getopt_long accepts an
  /// unambiguous beginning of a long name. Empty: unknown for this launcher.
  std::string_view switches = {};
  bool sorts_hosts = false;  ///< takes "n[1-2]", and orders nodes by itself
  bool strict_step = false;  ///< does not start ranks with CPUs outside of the step
};

/// "-n", "-n3", "--ntasks=3": the name and what is joined to it.
struct SplitFlag {
  std::string name;  ///< with its dashes; without where the launcher takes `words`
  std::optional<std::string> joined;
};

/// `arg` begins with '-' and has more. `words` and `switches` as in FlagTable.
SplitFlag split_flag(const std::string& arg, bool words, std::string_view switches = {});

/// `value` is "KEY" or "KEY=...".
bool has_key(std::string_view value, std::string_view key);

}  // namespace hpclaunch
