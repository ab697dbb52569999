#pragma once
// Opinions about variables, collected in any order and sorted by who holds them.
#include <map>
#include <string>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"

namespace hpclaunch {

inline const SourceRef kCommandLine{"<command line>"};
inline const SourceRef kEnvironment{"<environment>"};
inline const SourceRef kRule{"hpclaunch"};
/// The batch system's own variables that a launcher must not see; not the user's doing.
inline const SourceRef kBatchSystem{"launcher"};

/// A decision with what every one of them has.
Decision decided(Layer layer, Value value, SourceRef where, std::string why);

/// A choice about which one decision was made.
Setting choice(std::string name, Layer layer, std::string value, SourceRef where, std::string why);

class EnvSettings {
 public:
  explicit EnvSettings(const EnvSnapshot& env) : env_(env) {}

  void add(const std::string& name, Layer layer, Value value, SourceRef where, std::string why);
  void add(const std::string& name, Decision decision);

  /// What the user exported belongs to the plan although nobody else decides about it.
  void keep_export(const std::string& name);

  /// What the profile's rules have made of `name` so far; what was exported when they have not
  /// touched it; nullptr when it has no text.
  const std::string* so_far(const std::string& name) const;

  /// The settings, ascending name, with what the user exported in its place between the layers.
  std::vector<Setting> finish() const;

 private:
  const EnvSnapshot& env_;
  std::map<std::string, std::vector<Decision>> settings_;
};

}  // namespace hpclaunch
