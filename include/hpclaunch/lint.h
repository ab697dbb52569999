#pragma once
// What is wrong in a script or an environment that people have: read, never run.
#include <optional>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/result.h"
#include "hpclaunch/rows.h"

namespace hpclaunch {

/// A value of a variable that makes a launch wrong beside one of these options or variables, or without all of them.
struct LaunchFault {
  Words launchers;                   ///< programs; empty: any
  std::string_view variable, value;  ///< "FLAT", "*PART"
  Words with, without;               ///< "--network", "--network=PART"
  std::string_view message;
};
void fields(LaunchFault& row, auto&& field) {
  field("launchers", row.launchers);
  field("variable", row.variable, Field::required);
  field("value", row.value, Field::required);
  field("with", row.with);
  field("without", row.without);
  field("message", row.message, Field::required);
}

/// The page of a rule: profiles/lint/rules.json.
struct LintRule {
  std::string_view code;
  Severity severity = Severity::warning;
  std::string_view title;
  std::string_view why;
  std::string_view fix;
  std::string_view source;
  std::span<const LaunchFault> launches;  ///< empty: C++ finds its places
};
void fields(LintRule& row, auto&& field) {
  constexpr std::string_view kSeverities[] = {"note", "warning", "error"};
  field("code", row.code, Field::unique);
  field("severity", row.severity, kSeverities, Field::required);
  field("title", row.title, Field::required);
  field("why", row.why, Field::required);
  field("fix", row.fix);
  field("source", row.source);
  field("launches", row.launches);
}
/// Ascending code.
template <>
std::span<const LintRule> rows<LintRule>();

/// What sites have taken out of service: the value of an option of a directive, or a module.
struct RetiredName {
  Words options;
  bool module = false;
  std::string_view name;
  std::string_view what;
  std::string_view now;
};
void fields(RetiredName& row, auto&& field) {
  field("options", row.options);
  field("module", row.module);
  field("name", row.name, Field::unique);
  field("what", row.what, Field::required);
  field("now", row.now, Field::required);
}
template <>
std::span<const RetiredName> rows<RetiredName>();

}  // namespace hpclaunch

namespace hpclaunch::lint {

/// A replacement of the bytes [begin, end) of the file.
struct Edit {
  std::size_t begin = 0;
  std::size_t end = 0;
  std::string text;
};

struct Finding {
  Diagnostic diagnostic;  ///< its `where` has file, line and column
  std::size_t begin = 0;  ///< offset of its place in the text
  int end_line = 0;
  int end_column = 0;            ///< behind the last byte
  std::vector<Edit> edits = {};  ///< empty: no fix that can be typed for the user
  bool certain = false;          ///< --fix may apply `edits`
  bool distinct = false;         ///< not the same as another one of its code at the same place
};

using Rule = LintRule;
const Rule* find_rule(std::string_view code);  ///< nullptr: there is none

/// Findings in the order of the text.
std::vector<Finding> check_text(std::string_view text, const std::string& file);
/// Of an environment; the file is "<environment>".
std::vector<Finding> check_environment(const EnvSnapshot& env);

/// The text with the certain edits, none of which overlap.
std::string fixed(std::string_view text, const std::vector<Finding>& findings);
/// Unified, with three lines of context; "" where they are equal.
std::string unified_diff(std::string_view before, std::string_view after, const std::string& file);

struct LintedFile {
  std::string file;
  std::vector<Finding> findings;
};
std::string as_json(const std::vector<LintedFile>& files);
std::string as_sarif(const std::vector<LintedFile>& files, std::string_view version);
std::string as_github(const std::vector<LintedFile>& files);

}  // namespace hpclaunch::lint
