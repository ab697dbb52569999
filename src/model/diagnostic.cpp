#include "hpclaunch/diagnostic.h"

namespace hpclaunch {

std::string_view to_string(Severity severity) {
  return severity == Severity::note ? "note" : severity == Severity::warning ? "warning" : "error";
}

Severity severity_from(std::string_view name) {
  for (const Severity severity : {Severity::note, Severity::error})
    if (name == to_string(severity)) return severity;
  return Severity::warning;
}

}  // namespace hpclaunch
