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
  /// Adds a difference where both are known, which `unknown` is not, and differ; `text` of `who`, the found and the
  /// planned value. True: added.
  template <class Value>
  bool differ(const char* kind,
              fmt::format_string<const std::string&, const Value&, const Value&> text,
              const std::string& who, const Value& wanted, const Value& got,
              const Value& unknown = {}) {
    if (wanted == unknown || got == unknown || wanted == got) return false;
    out.push_back({kind, Severity::warning, fmt::format(text, who, got, wanted)});
    return true;
  }
  /// The same of CPUs, as far as both nodes have them; empty: unknown.
  void differ_in_cpus(const char* kind, const std::string& who, const CpuSet& wanted,
                      const CpuSet& got) {
    if (!wanted.empty() && !got.empty() && (wanted & common) != (got & common))
      add(kind, "{} is near CPUs {}, planned {}", who, got.to_list(), wanted.to_list());
  }
};

/// True within an eighth of what was planned, and where one is unknown (0).
bool near_size(std::uint64_t planned, std::uint64_t found);

/// Devices and their links.
void drift_of_devices(Drift& nodes);
void drift_of_nics(Drift& nodes);

}  // namespace hpclaunch::check
