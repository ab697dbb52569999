#pragma once
// Counts every allocation of a test program: times are noise, counts are not.

namespace hpclaunch::test {

long allocations();  ///< calls of operator new since the program began, such as 1284

}  // namespace hpclaunch::test
