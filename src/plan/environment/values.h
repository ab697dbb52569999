#pragma once
// A profile's value for every rank of a plan.
#include "hpclaunch/plan.h"
#include "hpclaunch/profile.h"
#include "plan/devices/units.h"

namespace hpclaunch {

/// A constant where every rank gets the same, else one value per rank.
/// Errors: `invalid`, naming the fact that is not set.
Result<Value> evaluate(const Template& value, const Facts& job, const Units& units,
                       const Plan& plan);

}  // namespace hpclaunch
