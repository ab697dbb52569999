#pragma once
// A message for the user: what is wrong or worth knowing, and a fix.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch {

enum class Severity { note, warning, error };

std::string_view to_string(Severity severity);  ///< "note", "warning", "error"

/// `warning` for any other text.
Severity severity_from(std::string_view name);

struct Diagnostic {
  std::string id;  ///< kebab-case noun; never changes once released (docs/reference)
  Severity severity = Severity::warning;
  std::string message;                  ///< one line: what is wrong, then what is accepted
  std::string fix = {};                 ///< what to type; may be empty
  std::optional<SourceRef> where = {};  ///< file, line and column, where there is one
  friend bool operator==(const Diagnostic&, const Diagnostic&) = default;
};

/// Whether one of them is at least that severe.
bool any_from(Severity least, const std::vector<Diagnostic>& diagnostics);

}  // namespace hpclaunch
