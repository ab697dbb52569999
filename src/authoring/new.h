#pragma once
// The parts of the file that `hpclaunch profile new` writes, comments included. A comment is prose (starts
// with a letter) or a suggestion: a commented-out line, which starts with a quote or a bracket. With all
// suggestions enabled the file is still a valid profile.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/prepared.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::authoring {

/// What is known about the new profile.
struct Fresh {
  std::string name;                             ///< of the profile
  std::string host;                             ///< of the node; never empty
  std::string from;                             ///< where the node was seen, for people
  std::string scheduler;                        ///< of this job; "" outside of one
  std::optional<job::ChosenLauncher> launcher;  ///< what would start a job on several nodes here
  Topology node;
  bool in_mig = false;  ///< a device is cut into instances, whose names belong to this node
  /// Intel's devices of several tiles, which builtin profile "intel-max" knows.
  bool has_tiles = false;
};

// ---- text ----------------------------------------------------------------------------------------------

/// One line; longer texts are cut, since names of things are short.
std::string short_text(const std::string& text);

/// The same as a JSON string.
std::string json_text(const std::string& text);

/// A comment, wrapped at 100 columns. `text` starts with a letter.
std::string prose(std::string_view text, int indent);

// ---- the node ------------------------------------------------------------------------------------------

/// A node model as written in a profile.
struct NodeText {
  std::string lines;                  ///< the key "topology", in the format of `topo --json`
  std::vector<std::string> left_out;  ///< interfaces that no job would use: "\"eno1\" (down)"
};
NodeText node_model_text(Topology node);

// ---- the file --------------------------------------------------------------------------------------------

/// profiles/new/profile.txt.
extern const char* const kNewProfile;

/// The file up to "expect", which needs a profile to plan with.
std::string unfinished_profile(const Fresh& fresh, const EnvSnapshot& env);

}  // namespace hpclaunch::authoring
