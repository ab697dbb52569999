// Findings for programs: JSON, SARIF 2.1.0, annotations of GitHub.
#include <fmt/format.h>

#include <nlohmann/json.hpp>
#include <set>

#include "hpclaunch/lint.h"
#include "hpclaunch/text.h"

namespace hpclaunch::lint {

namespace {

using nlohmann::ordered_json;

std::string written(const ordered_json& json) {
  return json.dump(2, ' ', false, ordered_json::error_handler_t::replace) + "\n";
}

ordered_json region_of(const Finding& one) {
  const SourceRef& where = *one.diagnostic.where;
  ordered_json region;
  region["startLine"] = std::max(where.line, 1);
  region["startColumn"] = std::max(where.column, 1);
  region["endLine"] = std::max(one.end_line, 1);
  region["endColumn"] = std::max(one.end_column, 1);
  return region;
}

std::string page_of(const Rule& rule) {
  return fmt::format("{}{}{}", rule.why, rule.fix.empty() ? "" : " Fix: ", rule.fix);
}

ordered_json sarif_rules() {
  ordered_json list = ordered_json::array();
  for (const Rule& rule : rows<Rule>()) {
    ordered_json one = {{"id", rule.code},
                        {"shortDescription", {{"text", rule.title}}},
                        {"fullDescription", {{"text", rule.why}}},
                        {"help", {{"text", page_of(rule)}}},
                        {"defaultConfiguration", {{"level", to_string(rule.severity)}}}};
    if (rule.source.starts_with("https://")) one["helpUri"] = rule.source;
    list.push_back(std::move(one));
  }
  return list;
}

ordered_json sarif_result(const Finding& one) {
  const SourceRef& where = *one.diagnostic.where;
  ordered_json artifact = {{"uri", where.file}};
  ordered_json result = {
      {"ruleId", one.diagnostic.id},
      {"level", to_string(one.diagnostic.severity)},
      {"message", {{"text", one.diagnostic.message}}},
      {"locations",
       {{{"physicalLocation", {{"artifactLocation", artifact}, {"region", region_of(one)}}}}}}};
  if (one.edits.empty()) return result;
  ordered_json replacements = ordered_json::array();
  for (const Edit& edit : one.edits)
    replacements.push_back(
        {{"deletedRegion", {{"byteOffset", edit.begin}, {"byteLength", edit.end - edit.begin}}},
         {"insertedContent", {{"text", edit.text}}}});
  result["fixes"] = {
      {{"description", {{"text", one.diagnostic.fix}}},
       {"artifactChanges", {{{"artifactLocation", artifact}, {"replacements", replacements}}}}}};
  return result;
}

}  // namespace

std::string as_json(const std::vector<LintedFile>& files) {
  ordered_json list = ordered_json::array();
  for (const LintedFile& file : files) {
    for (const Finding& one : file.findings) {
      const Rule* rule = find_rule(one.diagnostic.id);
      ordered_json edits = ordered_json::array();
      for (const Edit& edit : one.edits)
        edits.push_back({{"begin", edit.begin}, {"end", edit.end}, {"text", edit.text}});
      list.push_back({{"file", file.file},
                      {"line", one.diagnostic.where->line},
                      {"column", one.diagnostic.where->column},
                      {"end_line", one.end_line},
                      {"end_column", one.end_column},
                      {"code", one.diagnostic.id},
                      {"severity", to_string(one.diagnostic.severity)},
                      {"message", one.diagnostic.message},
                      {"fix", one.diagnostic.fix},
                      {"why", rule == nullptr ? "" : rule->why},
                      {"source", rule == nullptr ? "" : rule->source},
                      {"edits", edits},
                      {"certain", one.certain}});
    }
  }
  return written({{"schema", 1}, {"findings", list}});
}

std::string as_sarif(const std::vector<LintedFile>& files, std::string_view version) {
  ordered_json results = ordered_json::array();
  for (const LintedFile& file : files)
    for (const Finding& one : file.findings) results.push_back(sarif_result(one));
  ordered_json driver = {{"name", "hpclaunch"}, {"version", version}, {"rules", sarif_rules()}};
  ordered_json run = {
      {"tool", {{"driver", driver}}}, {"columnKind", "unicodeCodePoints"}, {"results", results}};
  return written({{"$schema", "https://json.schemastore.org/sarif-2.1.0.json"},
                  {"version", "2.1.0"},
                  {"runs", ordered_json::array({run})}});
}

std::string as_github(const std::vector<LintedFile>& files) {
  const auto data = [](std::string_view text) {
    return replaced(text, {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}});
  };
  const auto property = [](std::string_view text) {
    return replaced(text, {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}, {':', "%3A"}, {',', "%2C"}});
  };
  std::string text;
  for (const LintedFile& file : files)
    for (const Finding& one : file.findings) {
      const Diagnostic& d = one.diagnostic;
      const std::string_view kind = d.severity == Severity::note ? "notice" : to_string(d.severity);
      text +=
          fmt::format("::{} file={},line={},col={},endLine={},endColumn={},title={}::{}{}\n", kind,
                      property(file.file), std::max(d.where->line, 1), std::max(d.where->column, 1),
                      std::max(one.end_line, 1), std::max(one.end_column, 1), d.id, data(d.message),
                      d.fix.empty() ? "" : data("\nfix: " + d.fix));
    }
  return text;
}

}  // namespace hpclaunch::lint
