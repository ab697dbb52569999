#pragma once
// The options that run, plan, env and explain share: they are prefixes of one another.
#include <memory>
#include <optional>
#include <string>
#include <vector>

#include "cli/parser.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/result.h"

namespace hpclaunch::cli {

/// As typed; nothing here has looked at the machine.
struct LaunchArgs {
  std::optional<int> nodes;
  std::optional<int> ranks;
  std::optional<int> ranks_per_node;
  std::optional<int> ranks_per_device;
  std::optional<int> devices_per_rank;
  std::optional<int> het_group;
  std::optional<int> cores_per_rank;
  std::string profile;
  std::string stack;
  std::string node_type;
  std::string device_mode;
  std::string gpu_view;
  std::string local_rank;
  bool oversubscribe = false;
  std::string hostfile;
  std::string topology;
  std::string launcher;
  std::vector<std::string> launcher_args;
  std::string bind_via;
  std::string verify = "warn";
  std::string on_drift;  ///< "" not typed
  std::vector<std::string> set;
  std::vector<std::string> unset;
  std::string master_addr;
  std::optional<int> master_port;
  bool label = false;
  std::string log_dir;
  double grace_seconds = 30;
  bool supervise = false;
  bool no_supervise = false;
  std::string report;
  std::string signal;
  std::string ends_in;
  std::vector<std::string> command;
};

/// A check for CLI11: --hostfile "$HOSTS" with HOSTS unset must not quietly mean "this machine".
std::string not_empty(const std::string& value);

void declare_launch_options(Parser& parser, LaunchArgs& args);

/// Errors: `usage` for "--set NAME" without a value.
Result<std::vector<std::pair<std::string, std::string>>> assignments(
    const std::vector<std::string>& set);

/// nullopt when neither was typed. Errors: `usage` for both.
Result<std::optional<bool>> supervise_from(const LaunchArgs& args);

std::optional<BindVia> bind_via_from(const std::string& name);  ///< nullopt for ""
Verify verify_from(const std::string& name);

}  // namespace hpclaunch::cli
