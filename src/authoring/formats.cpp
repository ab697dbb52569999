// Results of `validate` and `test` as text, JSON, JUnit XML and GitHub annotations.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "authoring/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

using Json = nlohmann::ordered_json;
template <class Visit>
void each_diagnostic(const std::vector<Suite>& suites, Visit visit) {
  for (const Suite& suite : suites)
    for (const Check& check : suite.checks)
      for (const Diagnostic& one : check.diagnostics) visit(suite, one);
}

bool clean(const std::vector<Suite>& suites) {
  return std::ranges::none_of(
      suites, [](const Suite& one) { return std::ranges::any_of(one.checks, &Check::failed); });
}

std::string as_text(const std::vector<Suite>& suites, const std::string& totals) {
  std::string text;
  for (const Suite& suite : suites) {
    each_diagnostic({suite}, [&](const Suite&, const Diagnostic& one) {
      const std::string place = printable(place_text(one.where));
      text += fmt::format("{}{}{}: {} [{}]\n", place, place.empty() ? "" : ": ",
                          to_string(one.severity), printable(one.message), one.id);
      if (!one.fix.empty()) text += fmt::format("  try: {}\n", printable(one.fix));
    });
    text += fmt::format("{}: {}\n", printable(suite.name), suite.summary);
  }
  return text + totals + "\n";
}

Json as_object(const SourceRef& where) {
  Json place = Json::object();
  if (!where.file.empty()) place["file"] = where.file;
  if (where.line > 0) place["line"] = where.line;
  if (where.column > 0) place["column"] = where.column;
  if (!where.pointer.empty()) place["pointer"] = where.pointer;
  return place;
}

std::string as_json(const std::string& action, const std::vector<Suite>& suites) {
  Json profiles = Json::array();
  for (const Suite& suite : suites) {
    Json one = {{"name", suite.name}, {"file", suite.file}};
    if (action == "test") {
      one["cases"] = suite.cases;
      one["invariants"] = suite.invariants;
    }
    one["diagnostics"] = Json::array();
    for (const Check& check : suite.checks)
      for (const Diagnostic& diagnostic : check.diagnostics)
        one["diagnostics"].push_back(
            {{"id", diagnostic.id},
             {"severity", to_string(diagnostic.severity)},
             {"check", check.name},
             {"message", diagnostic.message},
             {"fix", diagnostic.fix},
             {"where", as_object(diagnostic.where.value_or(SourceRef()))}});
    profiles.push_back(std::move(one));
  }
  const Json document = {{"schema", 1},
                         {"action", action},
                         {"clean", clean(suites)},
                         {"profiles", std::move(profiles)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

// XML 1.0 has no form for most control characters, not even escaped: printable() removes them.
std::string xml(const std::string& text) {
  return replaced(printable(text), {{'&', "&amp;"}, {'<', "&lt;"}, {'>', "&gt;"}, {'"', "&quot;"}});
}

std::string xml_case(const Suite& suite, const Check& check) {
  std::string text = fmt::format("    <testcase classname=\"{}.{}\" name=\"{}\"", xml(suite.name),
                                 check.kind, xml(check.name));
  if (!check.where.file.empty()) text += fmt::format(" file=\"{}\"", xml(check.where.file));
  if (check.where.line > 0) text += fmt::format(" line=\"{}\"", check.where.line);
  if (!check.failed()) return text + "/>\n";
  // Readers show one failure per test case: all diagnostics go into one.
  std::string body;
  const Diagnostic* first = nullptr;
  for (const Diagnostic& one : check.diagnostics) {
    if (one.severity == Severity::note) continue;
    if (first == nullptr) first = &one;
    const std::string place = place_text(one.where);
    body += fmt::format("{}{}{}{}\n", xml(place), place.empty() ? "" : ": ", xml(one.message),
                        one.fix.empty() ? "" : xml("; try: " + one.fix));
  }
  return text + fmt::format(
                    ">\n      <failure type=\"{}\" message=\"{}\">{}</failure>\n"
                    "    </testcase>\n",
                    xml(first->id), xml(first->message), body);
}

std::string as_junit(const std::string& action, const std::vector<Suite>& suites) {
  std::string body;
  std::size_t tests = 0;
  std::ptrdiff_t failures = 0;
  for (const Suite& suite : suites) {
    const auto failed = std::ranges::count_if(suite.checks, &Check::failed);
    body += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n",
                        xml(suite.name), suite.checks.size(), failed);
    for (const Check& check : suite.checks) body += xml_case(suite, check);
    body += "  </testsuite>\n";
    tests += suite.checks.size();
    failures += failed;
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"hpclaunch profile {}\" tests=\"{}\" failures=\"{}\">\n{}</testsuites>\n",
      action, tests, failures, body);
}

// Workflow commands of GitHub Actions, escaped as its toolkit does.
std::string as_github(const std::vector<Suite>& suites) {
  const auto message = [](const std::string& raw) {
    return replaced(raw, {{'%', "%25"}, {'\r', "%0D"}, {'\n', "%0A"}});
  };
  std::string text;
  each_diagnostic(suites, [&](const Suite& suite, const Diagnostic& one) {
    const SourceRef where = one.where.value_or(SourceRef());
    std::string properties;
    const auto add = [&](const char* name, const std::string& value) {
      properties += fmt::format("{}{}={}", properties.empty() ? " " : ",", name,
                                replaced(message(value), {{':', "%3A"}, {',', "%2C"}}));
    };
    if (!where.file.empty()) add("file", where.file);
    if (where.line > 0) add("line", std::to_string(where.line));
    if (where.column > 0) add("col", std::to_string(where.column));
    add("title", fmt::format("{}: {}", suite.name, one.id));
    const bool note = one.severity == Severity::note;
    text += fmt::format("::{}{}::{}\n", note ? "notice" : to_string(one.severity), properties,
                        message(one.fix.empty() ? one.message : one.message + "\ntry: " + one.fix));
  });
  return text;
}

}  // namespace

bool Check::failed() const { return any_from(Severity::warning, diagnostics); }

int print_suites(const Args& args, const std::vector<Suite>& suites, const std::string& totals,
                 Session& session) {
  const std::string text = args.format == "json"     ? as_json(args.action, suites)
                           : args.format == "junit"  ? as_junit(args.action, suites)
                           : args.format == "github" ? as_github(suites)
                                                     : as_text(suites, totals);
  if (!print(session, text)) return exit_status(ErrorKind::system, session.exit_rules);
  return clean(suites) ? 0 : 1;
}

std::string json_document(const char* key, Json list) {
  const Json document = {{"schema", 1}, {key, std::move(list)}};
  return document.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

std::string node_text(const NodeModel& node) {
  const Topology& t = node.topology;
  std::string text = counts({{t.packages.size(), "package"},
                             {t.numa_nodes.size(), "NUMA node"},
                             {t.cores.size(), "core"},
                             {static_cast<std::size_t>(t.all_pus().count()), "hardware thread"}});
  if (!t.devices.empty())
    text += fmt::format(
        ", {} ({})", counted(t.devices.size(), "device"),
        t.devices.front().model.empty() ? t.devices.front().vendor : t.devices.front().model);
  if (!t.nics.empty()) text += fmt::format(", {}", counted(t.nics.size(), "NIC"));
  return text;
}

std::string share_text(const std::optional<Share>& share) {
  if (!share) return "";
  std::string text;
  if (share->cores > 0)
    text = fmt::format("{}{} with each device", counted(share->cores, "core"),
                       share->memory_mb > 0 ? fmt::format(", {} MiB", share->memory_mb) : "");
  if (share->core_memory_mb > 0)
    text += fmt::format("{}{} MiB with each core of a job without devices",
                        text.empty() ? "" : "; ", share->core_memory_mb);
  if (!share->counts.empty()) text += fmt::format("; {} devices", fmt::join(share->counts, " or "));
  return text;
}

}  // namespace hpclaunch::authoring
