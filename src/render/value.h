#pragma once
// What a setting's value looks like to people.
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/plan.h"

namespace hpclaunch::render {

/// Local ranks of one node class that share an item: "0", "2-5".
struct ItemRun {
  std::string local_ranks;
  std::string item;  ///< printable
};

/// Neighbours with equal items taken together.
std::vector<ItemRun> item_runs(const std::vector<std::string>& items);

/// value_text, or "<hidden>".
std::string shown_value(std::string_view name, const Decision& decision);

}  // namespace hpclaunch::render
