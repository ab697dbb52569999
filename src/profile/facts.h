#pragma once
// What parsing asks about facts and templates, beside profile.h.
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/profile.h"

namespace hpclaunch::profile {

/// nullptr for a name that no fact has; "env." alone is none.
const FactInfo* find_fact(std::string_view name);

/// One value per rank: values may use it, conditions may not.
bool is_rank_fact(const FactInfo& fact);

/// Names that `word` may have been meant to be; groups take over what stands behind its first dot.
std::vector<std::string> fact_candidates(std::string_view word);

/// Offset of a '$' that begins neither ${...} nor $$; npos when there is none.
std::size_t broken_dollar(std::string_view text);

}  // namespace hpclaunch::profile
