#pragma once
// The commands and their options as data, for completions and the manual page.
#include <string>
#include <vector>

namespace hpclaunch::cli {

struct OptionInfo {
  std::vector<std::string> short_names;  ///< without "-"
  std::vector<std::string> long_names;   ///< without "--"
  std::string value_name;                ///< "" for a flag
  std::string description;
  std::string default_text;              ///< "" when it has none to show
  std::string group;
  std::vector<std::string> choices;      ///< the values it takes, when they are a closed list
  bool positional = false;
  bool repeatable = false;
};

struct CommandTree {
  std::string name;
  std::string summary;
  std::string usage;
  std::string footer;
  std::vector<OptionInfo> options;  ///< in the order of --help
};

/// Every command that is not hidden.
std::vector<CommandTree> option_tree();

}  // namespace hpclaunch::cli
