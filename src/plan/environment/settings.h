#pragma once
// Decisions about variables, collected in any order and resolved by layer.
#include <map>
#include <string>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/result.h"

namespace hpclaunch {

/// Set for batch system variables that the launcher must not see; the user did not cause them.
inline const SourceRef kBatchSystem{"launcher"};

/// A decision of the user or of hpclaunch itself: its source follows from the layer.
Decision decided(Layer layer, Value value, std::string why);

/// A part of the plan, and what there is to say about it.
template <class Part>
struct Made {
  Part part;
  Explanation said;
};

/// A choice about which one decision was made.
Setting choice(std::string name, Layer layer, Value value, std::string why);

/// What was typed cannot be planned.
Error request_error(std::string message, std::string hint, ErrorKind kind = ErrorKind::usage);

/// What to type in place of an unknown `name` of `option`: the nearest one, else all.
std::string suggest(const char* option, const std::string& name,
                    const std::vector<std::string>& known);

/// `item` of each rank, by class of nodes.
template <class Item>
PerRank per_rank(const Placement& placement, Item item) {
  PerRank values;
  for (const NodeClass& one : placement.classes) {
    values.items.emplace_back();
    for (const RankPlan& rank : one.ranks) values.items.back().push_back(item(rank));
  }
  return values;
}

/// True when one item does for every rank of every class.
bool same_everywhere(const PerRank& values);

/// One text where every rank has the same.
Value constant_or_per_rank(PerRank values);

class EnvSettings {
 public:
  /// `of_batch`: which of them the batch system set, and why (set_by_batch).
  EnvSettings(const EnvSnapshot& env, const std::map<std::string, std::string>& of_batch)
      : env_(env), of_batch_(of_batch) {}

  void add(const std::string& name, Layer layer, Value value, std::string why);
  void add(const std::string& name, Decision decision);

  /// Adds what the user exported to the plan, also without another decision about it.
  void keep_export(const std::string& name);

  /// Exported, typed or decided by something.
  bool has(const std::string& name) const { return env_.has(name) || settings_.contains(name); }

  /// The value typed, or after the profile's rules so far; what was exported when they have not touched it;
  /// nullptr when it has no text.
  const std::string* so_far(const std::string& name) const;

  /// The settings, ascending name, with what the user exported in its place between the layers.
  std::vector<Setting> finish() &&;
  std::vector<Setting> finish() const&;

 private:
  Decision exported_as(const std::string& name, const std::string& value) const;

  const EnvSnapshot& env_;
  const std::map<std::string, std::string>& of_batch_;
  std::map<std::string, std::vector<Decision>> settings_;
};

}  // namespace hpclaunch
