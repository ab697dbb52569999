#pragma once
// HPCLAUNCH_PLAN: how the plan reaches the shim. docs/reference/shim.md has the grammar, the directives and the reasons.
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/plan.h"

namespace hpclaunch {

/// Longest HPCLAUNCH_PLAN we send. Linux takes 131,072 bytes per string; launchers copy the
/// environment into messages of their own, so we stay far below.
inline constexpr int kMaxWireBytes = 32 * 1024;

/// What the shim has room for; a test compares these with src/shim/decode.h.
inline constexpr int kMaxWireClasses = 1024;   ///< node classes
inline constexpr int kMaxWireVariables = 256;  ///< variables set for one rank

/// Checks of hosts and constants are left out where the whole would grow beyond this. Three characters do not
/// distinguish more than so many nodes.
inline constexpr int kMaxCheckedWireBytes = 24 * 1024;
inline constexpr int kMaxWireHosts = 4096;

/// `size` characters (1..5) of A-Z a-z 0-9 - _ that stand for `text`: FNV-1a of 32 bits, six bits a
/// character. The shim computes the same.
std::string wire_mark(std::string_view text, int size);

/// Escaped as an item of the wire.
std::string wire_escape(std::string_view text);

/// What the shim has to know of the launcher. Names have letters, digits, underscores.
struct RankVariables {
  std::string rank;        ///< variable with the global rank
  std::string local_rank;  ///< "" when the launcher has none
  bool resets_masks =
      false;  ///< ranks may find other device masks than were exported, as srun's steps do
};

/// Encodes what differs by rank: binding, per-rank and rank-fact settings. Constants are not in it:
/// they travel by inheritance, but into a container, and device masks where `resets_masks`. Equal plans give equal bytes. A column whose items are all equal
/// becomes one item. `expect` is left out under Verify::off, because nothing would read it.
/// Errors: `unsupported` above kMaxWireBytes, with the size and what takes most of it, and above
/// kMaxWireClasses or kMaxWireVariables; `invalid` when a directory is no absolute path of at most 4,095 bytes.
/// What is not checked for want of room is named in `left_out`. `report`: fields of a report instead of checks.
Result<std::string> encode_wire(const Plan& plan, const RankVariables& names,
                                std::vector<std::string>* left_out = nullptr,
                                std::string_view report = {});

}  // namespace hpclaunch
