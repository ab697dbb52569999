#pragma once
// How rules report. A rule is a page in profiles/lint/rules.json, and a function of kChecks that finds its places.
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/lint.h"
#include "lint/script.h"

namespace hpclaunch::lint {

/// Collects what the checks of one file find.
class Findings {
 public:
  explicit Findings(const Script& script) : script_(script) {}

  /// Severity and advice are those of the rule's page, unless the finding has better ones. `code` is in the table.
  /// Returns the finding, to add edits to it.
  Finding& add(std::string_view code, Span span, std::string message, std::string fix = "");

  std::vector<Finding>& all() { return all_; }

 private:
  const Script& script_;
  std::vector<Finding> all_;
};

using Check = void (*)(const Script& script, Findings& findings);

// Each in a file of its own.
void check_variables(const Script& script,
                     Findings& findings);  ///< rules_variables.cpp: the catalogue
void check_catalogue(const Script& script,
                     Findings& findings);  ///< rules_catalogue.cpp: cautions, known issues
knowledge::Versions loaded_versions(const Script& script);  ///< by its modules; rules_catalogue.cpp
void check_assignments(const Script& script, Findings& findings);  ///< rules_assignments.cpp
void check_shell(const Script& script, Findings& findings);        ///< rules_shell.cpp
void check_directives(const Script& script, Findings& findings);   ///< rules_directives.cpp
void check_requests(const Script& script, Findings& findings);     ///< rules_requests.cpp
void check_pbs(const Script& script, Findings& findings);          ///< rules_pbs.cpp
void check_launches(const Script& script, Findings& findings);     ///< rules_launch.cpp
void check_settings(const Script& script, Findings& findings);     ///< rules_settings.cpp
void check_ranks(const Script& script, Findings& findings);        ///< rules_ranks.cpp
void check_places(const Script& script, Findings& findings);       ///< rules_places.cpp

/// Values of names like *_TOKEN are never printed: this, or "...".
std::string shown_value(std::string_view name, std::string_view value);

}  // namespace hpclaunch::lint
