#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "authoring/command.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

std::string remark_text(const Remark& remark) {
  const std::string place = place_text(remark.where);
  std::string text = fmt::format("{}{}{}: {} [{}]\n", plain(place), place.empty() ? "" : ": ",
                                 to_string(remark.severity), plain(remark.message), remark.rule);
  if (!remark.fix.empty()) text += fmt::format("  try: {}\n", plain(remark.fix));
  return text;
}

std::string as_text(const std::vector<Suite>& suites, const std::string& totals) {
  std::string text;
  for (const Suite& suite : suites) {
    for (const Check& check : suite.checks)
      for (const Remark& remark : check.remarks) text += remark_text(remark);
    text += fmt::format("{}: {}\n", plain(suite.name), suite.summary);
  }
  return text + totals + "\n";
}

nlohmann::ordered_json as_object(const SourceRef& where) {
  nlohmann::ordered_json place = nlohmann::ordered_json::object();
  if (!where.file.empty()) place["file"] = where.file;
  if (where.line > 0) place["line"] = where.line;
  if (where.column > 0) place["column"] = where.column;
  if (!where.pointer.empty()) place["pointer"] = where.pointer;
  return place;
}

std::string as_json(const std::string& action, const std::vector<Suite>& suites) {
  nlohmann::ordered_json document = {{"schema", 1}, {"action", action}};
  document["clean"] = clean(suites);
  auto profiles = nlohmann::ordered_json::array();
  for (const Suite& suite : suites) {
    nlohmann::ordered_json one = {{"name", suite.name}, {"file", suite.file}};
    if (action == "test") {
      one["cases"] = suite.cases;
      one["laws"] = suite.laws;
    }
    one["findings"] = nlohmann::ordered_json::array();
    for (const Check& check : suite.checks)
      for (const Remark& remark : check.remarks)
        one["findings"].push_back({{"rule", remark.rule},
                                      {"severity", to_string(remark.severity)},
                                      {"check", check.name},
                                      {"message", remark.message},
                                      {"fix", remark.fix},
                                      {"where", as_object(remark.where)}});
    profiles.push_back(std::move(one));
  }
  document["profiles"] = std::move(profiles);
  constexpr int kIndent = 2;
  return document.dump(kIndent, ' ', false, nlohmann::ordered_json::error_handler_t::replace) +
         "\n";
}

// XML 1.0 has no place for most control characters, not even escaped; plain() has taken them away.
std::string xml(const std::string& text) {
  std::string out;
  for (const char c : plain(text)) {
    switch (c) {
      case '&':
        out += "&amp;";
        break;
      case '<':
        out += "&lt;";
        break;
      case '>':
        out += "&gt;";
        break;
      case '"':
        out += "&quot;";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string xml_case(const Suite& suite, const Check& check) {
  std::string text = fmt::format("    <testcase classname=\"{}.{}\" name=\"{}\"", xml(suite.name),
                                 check.kind, xml(check.name));
  if (!check.where.file.empty()) text += fmt::format(" file=\"{}\"", xml(check.where.file));
  if (check.where.line > 0) text += fmt::format(" line=\"{}\"", check.where.line);
  if (!check.failed()) return text + "/>\n";
  text += ">\n";
  // Readers show one failure for each test case: all of its remarks go into one.
  std::string body;
  const Remark* first = nullptr;
  for (const Remark& remark : check.remarks) {
    if (remark.severity == Severity::note) continue;
    if (first == nullptr) first = &remark;
    const std::string place = place_text(remark.where);
    body += fmt::format("{}{}{}{}\n", xml(place), place.empty() ? "" : ": ", xml(remark.message),
                        remark.fix.empty() ? "" : xml("; try: " + remark.fix));
  }
  return text +
         fmt::format("      <failure type=\"{}\" message=\"{}\">{}</failure>\n    </testcase>\n",
                     xml(first->rule), xml(first->message), body);
}

std::string as_junit(const std::string& action, const std::vector<Suite>& suites) {
  std::string body;
  long tests = 0;
  long failures = 0;
  for (const Suite& suite : suites) {
    const auto failed = std::count_if(suite.checks.begin(), suite.checks.end(),
                                      [](const Check& check) { return check.failed(); });
    body += fmt::format("  <testsuite name=\"{}\" tests=\"{}\" failures=\"{}\" errors=\"0\">\n",
                        xml(suite.name), suite.checks.size(), failed);
    for (const Check& check : suite.checks) body += xml_case(suite, check);
    body += "  </testsuite>\n";
    tests += static_cast<long>(suite.checks.size());
    failures += failed;
  }
  return fmt::format(
      "<?xml version=\"1.0\" encoding=\"UTF-8\"?>\n"
      "<testsuites name=\"hpclaunch profile {}\" tests=\"{}\" failures=\"{}\">\n{}</testsuites>\n",
      action, tests, failures, body);
}

// As the toolkit of GitHub Actions escapes workflow commands: messages, and more of it in properties.
std::string annotation(const std::string& text, bool property) {
  std::string out;
  for (const char c : text) {
    switch (c) {
      case '%':
        out += "%25";
        break;
      case '\r':
        out += "%0D";
        break;
      case '\n':
        out += "%0A";
        break;
      case ':':
        out += property ? "%3A" : ":";
        break;
      case ',':
        out += property ? "%2C" : ",";
        break;
      default:
        out += c;
    }
  }
  return out;
}

std::string as_github(const std::vector<Suite>& suites) {
  std::string text;
  for (const Suite& suite : suites)
    for (const Check& check : suite.checks)
      for (const Remark& remark : check.remarks) {
        const bool note = remark.severity == Severity::note;
        std::string properties;
        const auto add = [&](const char* name, const std::string& value) {
          properties +=
              fmt::format("{}{}={}", properties.empty() ? " " : ",", name, annotation(value, true));
        };
        if (!remark.where.file.empty()) add("file", remark.where.file);
        if (remark.where.line > 0) add("line", std::to_string(remark.where.line));
        if (remark.where.column > 0) add("col", std::to_string(remark.where.column));
        add("title", fmt::format("{}: {}", suite.name, remark.rule));
        const std::string message =
            remark.fix.empty() ? remark.message : remark.message + "\ntry: " + remark.fix;
        text += fmt::format("::{}{}::{}\n", note ? "notice" : to_string(remark.severity),
                            properties, annotation(message, false));
      }
  return text;
}

}  // namespace

bool Check::failed() const {
  return std::any_of(remarks.begin(), remarks.end(),
                     [](const Remark& remark) { return remark.severity != Severity::note; });
}

long count(const Suite& suite, Severity severity) {
  long found = 0;
  for (const Check& check : suite.checks)
    for (const Remark& remark : check.remarks) found += remark.severity == severity ? 1 : 0;
  return found;
}

bool clean(const std::vector<Suite>& suites) {
  for (const Suite& suite : suites)
    for (const Check& check : suite.checks)
      if (check.failed()) return false;
  return true;
}

std::string as_format(const std::string& format, const std::string& action,
                      const std::vector<Suite>& suites, const std::string& totals) {
  if (format == "json") return as_json(action, suites);
  if (format == "junit") return as_junit(action, suites);
  if (format == "github") return as_github(suites);
  return as_text(suites, totals);
}

std::string grouped(long number) {
  std::string text = std::to_string(number);
  constexpr std::size_t kDigits = 3;
  for (std::size_t at = text.size(); at > kDigits; at -= kDigits) text.insert(at - kDigits, ",");
  return text;
}

std::string plain(const std::string& text) { return text.empty() ? text : value_text(Value(text)); }

std::string place_text(const SourceRef& where) {
  std::string text = where.file;
  if (where.line > 0) text += fmt::format(":{}", where.line);
  if (where.line > 0 && where.column > 0) text += fmt::format(":{}", where.column);
  return text;
}

}  // namespace hpclaunch::cli
