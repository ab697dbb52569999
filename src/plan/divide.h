#pragma once
// Cores that several sets claim, divided among them.
#include <vector>

#include "plan/quotas.h"

namespace hpclaunch {

/// Makes sets nest or be apart. One that cuts none, and lies in none that does, stays as it is; of the others
/// each gets a part of what it was, so that they are apart: of all ways that in which the ranks of
/// these sets have cores as evenly as can be, so that as few as can be have none. `ranks`: of each set; a set
/// without ranks gets nothing that another one claims. Equal input, equal output.
std::vector<CoreSet> divide(std::vector<CoreSet> sets, const std::vector<int>& ranks);

/// Neither is apart from the other nor holds it.
bool cut_one_another(const CoreSet& a, const CoreSet& b);

/// No set of one crowd cuts one of another.
bool nest(const std::vector<Crowd>& crowds);

/// The same crowds with what they are near to divided, so that all sets nest or are apart. A farther set
/// that near cores of another crowd cut is no place to draw from: the one before stands in its place.
std::vector<Crowd> divided(std::vector<Crowd> crowds, const std::vector<int>& ranks);

}  // namespace hpclaunch
