#pragma once
// The parts of find_drift().
#include <fmt/format.h>

#include <cstdint>
#include <vector>

#include "hpclaunch/check.h"

namespace hpclaunch::check {

/// A planned node, a found one, and where their differences go.
struct Drift {
  const Topology& planned;
  const Topology& found;
  DriftScope scope = {};
  CpuSet common = planned.all_pus() & found.all_pus();
  std::vector<Diagnostic> out = {};

  template <class... Values>
  void add(const char* kind, fmt::format_string<Values...> text, Values&&... values) {
    out.push_back({kind, Severity::warning, fmt::format(text, std::forward<Values>(values)...)});
  }
  /// Both are known, and differ in the CPUs of both nodes.
  bool differ(const CpuSet& a, const CpuSet& b) const {
    return !a.empty() && !b.empty() && (a & common) != (b & common);
  }
};

/// Both are known (not "", or `lowest` at least), and differ.
inline bool differ(const std::string& a, const std::string& b) {
  return !a.empty() && !b.empty() && a != b;
}
inline bool differ(int a, int b, int lowest) { return a >= lowest && b >= lowest && a != b; }

/// True within an eighth of what was planned, and where one is unknown (0).
bool near_size(std::uint64_t planned, std::uint64_t found);

/// Devices and their links.
void drift_of_devices(Drift& nodes);
void drift_of_nics(Drift& nodes);

}  // namespace hpclaunch::check
