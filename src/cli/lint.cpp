#include "hpclaunch/lint.h"

#include <fmt/format.h>

#include <algorithm>

#include "cli/command.h"
#include "hpclaunch/authoring.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

using lint::Finding;
using lint::LintedFile;

struct Args {
  std::vector<std::string> files;
  std::string format = "text";
  std::string explain;
  bool env = false;
  bool rules = false;
  bool fix = false;
  bool diff = false;
};

std::string list_text() {
  std::string text;
  for (const lint::Rule& rule : rows<lint::Rule>())
    text += fmt::format("{:<24} {:<8} {}\n", rule.code, to_string(rule.severity), rule.title);
  return text;
}

int explain_rule(const std::string& code, Session& session) {
  const lint::Rule* rule = lint::find_rule(code);
  if (rule == nullptr) {
    std::vector<std::string> codes;
    for (const lint::Rule& one : rows<lint::Rule>()) codes.emplace_back(one.code);
    const auto near = nearest(code, codes);
    return report(
        session,
        Error{ErrorKind::usage, fmt::format("there is no rule \"{}\"", render::printable(code)),
              near ? "hpclaunch lint --explain " + *near : "hpclaunch lint --rules"});
  }
  std::string text =
      fmt::format("{}: {} ({})\n", rule->code, rule->title, to_string(rule->severity));
  const std::pair<const char*, const std::string_view*> parts[] = {
      {"why", &rule->why}, {"fix", &rule->fix}, {"source", &rule->source}};
  for (const auto& [label, value] : parts)
    if (!value->empty()) text += entry(label, *value, 11, session.style);
  text += entry("silence",
                fmt::format("# hpclaunch: ignore {} REASON, on the line or above it", rule->code),
                11, session.style);
  return print_all(session, text);
}

Result<std::string> text_of(const std::string& file) {
  return sys::read_file(file == "-" ? "/dev/stdin" : file);
}

std::string finding_text(const Finding& one, const Style& style) {
  const Diagnostic& d = one.diagnostic;
  const char* color = !style.color                      ? ""
                      : d.severity == Severity::error   ? "\033[31m"
                      : d.severity == Severity::warning ? "\033[33m"
                                                        : "\033[36m";
  std::string text =
      fmt::format("{}: {}{}{}: {} [{}]\n", place_text(d.where), color, to_string(d.severity),
                  style.color ? "\033[0m" : "", render::printable(d.message), d.id);
  if (const lint::Rule* rule = lint::find_rule(d.id)) text += fmt::format("  why: {}\n", rule->why);
  if (!d.fix.empty()) text += fmt::format("  fix: {}\n", render::printable(d.fix));
  return text;
}

std::string text_report(const std::vector<LintedFile>& files, const Style& style) {
  std::string text;
  std::size_t count[3] = {};
  std::size_t certain = 0;
  for (const LintedFile& file : files)
    for (const Finding& one : file.findings) {
      text += finding_text(one, style);
      ++count[static_cast<std::size_t>(one.diagnostic.severity)];
      certain += one.certain ? 1 : 0;
    }
  const std::string all = counts({{count[2], "error"}, {count[1], "warning"}, {count[0], "note"}});
  text += fmt::format("{} in {}", all.empty() ? "no findings" : all, counted(files.size(), "file"));
  if (certain > 0) text += fmt::format("; hpclaunch lint --fix corrects {}", certain);
  return text + "\n";
}

// Shows what --fix changes; writes it unless only the difference is wanted.
Status apply(const LintedFile& file, const std::string& text, bool write, std::string& shown) {
  const std::string better = lint::fixed(text, file.findings);
  shown += lint::unified_diff(text, better, file.file);
  if (!write || better == text) return Done{};
  return sys::rewrite_file(file.file, better);
}

bool is_profile(const std::string& file, const std::string& text) {
  return file.ends_with(".json") && text.find("\"schema\"") != std::string::npos;
}

int run_lint(const Args& args, Session& session) {
  if (args.rules) return print_all(session, list_text());
  if (!args.explain.empty()) return explain_rule(args.explain, session);
  if (args.files.empty() == !args.env)
    return report(session,
                  Error{ErrorKind::usage, args.env ? "--env takes no FILE" : "no FILE to read",
                        "hpclaunch lint job.sh"});
  if ((args.fix || args.diff) && args.format != "text")
    return report(session, Error{ErrorKind::usage, "--fix and --diff show changes as text",
                                 "omit --format, or these"});
  std::vector<LintedFile> files;
  if (args.env) files.push_back({"<environment>", lint::check_environment(session.env)});
  std::string differences;
  int worst = 0;
  for (const std::string& name : args.files) {
    const Result<std::string> text = text_of(name);
    if (!text) return report(session, text.error());
    if (is_profile(name, *text)) {
      authoring::Args validate;
      validate.action = "validate";
      validate.names = {name};
      worst = std::max(worst, authoring::profile_validate(validate, session));
      continue;
    }
    const std::string shown = name == "-" ? "<stdin>" : name;
    files.push_back({shown, lint::check_text(*text, shown)});
    if (!args.fix && !args.diff) continue;
    const Status good = apply(files.back(), *text, args.fix && name != "-", differences);
    if (!good) return report(session, good.error());
    if (args.fix && name != "-")
      files.back().findings = lint::check_text(lint::fixed(*text, files.back().findings), shown);
  }
  std::string out;
  if (args.format == "json")
    out = lint::as_json(files);
  else if (args.format == "sarif")
    out = lint::as_sarif(files, HPCLAUNCH_VERSION);
  else if (args.format == "github")
    out = lint::as_github(files);
  else
    out = differences + (files.empty() ? "" : text_report(files, session.style));
  if (const int status = print_all(session, out); status != 0) return status;
  for (const LintedFile& file : files)
    for (const Finding& one : file.findings)
      if (one.diagnostic.severity != Severity::note) worst = std::max(worst, 1);
  return worst;
}

}  // namespace

Runner declare_lint(Parser& parser) {
  auto args = std::make_shared<Args>();
  parser.group("Options");
  parser.words(args->files, "FILE", "Script, .env file, output of env, or profile; - is stdin");
  parser.flag("--env", args->env, "Check the environment of this command");
  parser.choice("--format", args->format, "FORMAT", {"text", "json", "sarif", "github"},
                "Output format");
  parser.flag("--fix", args->fix,
              "Correct the files where the fix is certain, and show the changes");
  parser.flag("--diff", args->diff, "Show the changes only");
  parser.text("--explain", args->explain, "CODE", "Print what a rule is about, and leave");
  parser.flag("--rules", args->rules, "List the rules and leave");
  parser.footer(
      "Files are read, never run. \"# hpclaunch: ignore CODE REASON\" on a line, or on\n"
      "the one above it, silences a finding there.\n"
      "Exit status: 0 nothing or notes, 1 errors or warnings, 2 no such file or rule.");
  return [args](Session& session) { return run_lint(*args, session); };
}

}  // namespace hpclaunch::cli
