#pragma once
// One row of profiles/programs/platforms.json, read in a world.
#include "hpclaunch/platforms.h"
#include "world/each_node.h"

namespace hpclaunch::job {

/// Its variables and files are there.
bool holds(const Platform& row, const World& world);

/// False: it says which node this is, and not how many there are.
bool counts_nodes(const Platform& row);

/// What it says. Errors: `usage` for what cannot be read.
Result<EachNode> read_platform(const Platform& row, std::optional<int> typed_nodes,
                               const World& world);

}  // namespace hpclaunch::job
