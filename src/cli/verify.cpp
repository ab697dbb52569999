#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "cli/options.h"
#include "hpclaunch/rank_report.h"
#include "hpclaunch/text.h"
#include "job/reports.h"

namespace hpclaunch::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Args {
  Request launch;
  bool json = false;
  bool force = false;
  std::string module;
  double timeout_seconds = 120;
};

constexpr std::size_t kRowsPerKind = 8;

// The interpreter that was named, else the one on PATH.
Result<std::string> python_for(const std::vector<std::string>& command, const EnvSnapshot& env) {
  if (!command.empty()) {
    const std::string name = command.front().substr(command.front().rfind('/') + 1);
    if (name.starts_with("python") || name.starts_with("pypy")) return command.front();
  }
  return sys::find_program("python3", env.get("PATH"));
}

Json difference_json(const Plan& plan, const Difference& difference) {
  Json hosts = Json::array();
  for (const int node : difference.nodes)
    hosts.push_back(plan.hosts[static_cast<std::size_t>(node)]);
  return {{"kind", difference.kind},
          {"severity", to_string(difference.severity)},
          {"where", where_text(plan, difference)},
          {"ranks", difference.ranks},
          {"hosts", std::move(hosts)},
          {"planned", difference.planned},
          {"found", difference.found},
          {"cause", difference.cause},
          {"fix", difference.fix}};
}

std::string as_json(const Prepared& prepared, const Collected& collected,
                    const Comparison& comparison) {
  const Plan& plan = prepared.plan;
  Json document = {{"schema", 1},
                   {"as_planned", comparison.differences.empty()},
                   {"ranks", plan.world_size()},
                   {"ranks_as_planned", comparison.ranks_as_planned},
                   {"hosts", plan.hosts}};
  document["launcher"] = {{"name", plan.launcher},
                          {"argv", collected.argv},
                          {"status", collected.ended.status},
                          {"too_late", collected.ended.too_late}};
  document["garbled"] = collected.seen.garbled;
  document["differences"] = Json::array();
  for (const Difference& one : comparison.differences)
    document["differences"].push_back(difference_json(plan, one));
  std::vector<const RankReport*> reports;
  for (const RankReport& report : collected.seen.reports) reports.push_back(&report);
  std::stable_sort(reports.begin(), reports.end(),
                   [](const RankReport* a, const RankReport* b) { return a->rank < b->rank; });
  document["reports"] = Json::array();
  for (const RankReport* report : reports)
    document["reports"].push_back(Json::parse(report_to_json(*report)));
  document["findings"] = Json::array();
  for (const Diagnostic& diagnostic : prepared.diagnostics)
    document["findings"].push_back({{"rule", diagnostic.id},
                                    {"severity", to_string(diagnostic.severity)},
                                    {"message", diagnostic.message},
                                    {"fix", diagnostic.fix}});
  constexpr int kIndent = 2;
  return document.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

// "rank-silent" as a head: each kind once, with what is likely and what to try.
std::string reasons(const std::vector<Difference>& differences, const Style& style) {
  std::string text;
  std::set<std::string> told;
  for (const Difference& one : differences) {
    if (!told.insert(one.kind + one.cause + one.fix).second) continue;
    text += "\n" + paragraph(one.kind + ": ", "likely " + one.cause, style);
    if (!one.fix.empty()) text += paragraph("  try: ", one.fix, style);
  }
  return text;
}

std::string as_text(const Plan& plan, const Comparison& comparison, const Style& style) {
  const std::string line = fmt::format(
      "{} of {} as planned on {}", with_separators(comparison.ranks_as_planned),
      with_separators(plan.world_size()) + (plan.world_size() == 1 ? " rank" : " ranks"),
      with_separators(plan.nodes()) + (plan.nodes() == 1 ? " node" : " nodes"));
  if (comparison.differences.empty()) return line + "\n";
  const std::vector<Difference> shown = condense(comparison.differences, kRowsPerKind);
  std::vector<std::vector<std::string>> rows = {{"what", "where", "planned", "found"}};
  for (const Difference& one : shown)
    rows.push_back({one.kind, where_text(plan, one), one.planned, one.found});
  return line + "\n\n" + grid(rows, style) + reasons(shown, style);
}

bool has_error(const std::vector<Diagnostic>& diagnostics) {
  return std::any_of(diagnostics.begin(), diagnostics.end(), [](const Diagnostic& diagnostic) {
    return diagnostic.severity == Severity::error;
  });
}

Error nobody_reported(const Collected& collected, const std::string& module, double limit) {
  const sys::Ended& ended = collected.ended;
  if (!module.empty())
    return Error{
        ErrorKind::system,
        fmt::format("no rank reported after \"import {}\": it ended the interpreter, or took "
                    "longer than {} seconds (the launcher ended with status {})",
                    module, limit, ended.status),
        "hpclaunch verify without --import tells whether the ranks start at all; "
        "--timeout gives them longer"};
  return Error{
      ErrorKind::system,
      ended.too_late
          ? fmt::format("no rank reported within {} seconds; the launcher was ended", limit)
          : fmt::format("no rank reported; the launcher ended with status {}", ended.status),
      ended.too_late ? "--timeout gives it longer; its messages, if any, are above"
                     : "its messages are above; hpclaunch run --dry-run shows what is started"};
}

Result<Question> question_for(const Args& args, const Prepared& prepared, const EnvSnapshot& env) {
  const Plan& plan = prepared.plan;
  Question question;
  question.names = names_to_report(plan, launch_environment(plan, env));
  question.local_variable = prepared.launcher.launcher->traits().local_rank_var;
  if (!plan.command.empty()) question.program = plan.command.front();
  question.module = args.module;
  if (args.module.empty()) return question;
  Result<std::string> python = python_for(plan.command, env);
  if (!python) return python.error();
  question.python = std::move(*python);
  return question;
}

int verify(Args& args, const Parser& parser, Session& session) {
  Result<std::vector<std::string>> program = parser.program(false);
  if (!program) return report(session, program.error());
  args.launch.command = std::move(*program);
  const Result<Prepared> prepared = prepare(args.launch, session, Purpose::start);
  if (!prepared) return report(session, prepared.error());
  if (!args.json) report(session, prepared->diagnostics);
  if (has_error(prepared->diagnostics) && !args.force)
    return report(session, Error{ErrorKind::usage, "not started",
                                 "mend the errors above, or go on with --force"});
  const Result<Question> question = question_for(args, *prepared, session.env);
  if (!question) return report(session, question.error());
  Plan plan = prepared->plan;
  plan.command = report_command(*question);
  Result<Collected> collected =
      collect_reports(std::move(plan), *prepared, session, args.timeout_seconds);
  if (!collected) return report(session, collected.error());
  constexpr int kSignalled = 128;
  if (collected->ended.interrupted_by != 0) return kSignalled + collected->ended.interrupted_by;
  if (collected->seen.reports.empty())
    return report(session, nobody_reported(*collected, args.module, args.timeout_seconds));
  collected->seen.names = question->names;
  look_up_hosts(prepared->plan, collected->seen);
  const Comparison comparison = compare(prepared->plan, prepared->node, collected->seen);
  const std::string text = args.json ? as_json(*prepared, *collected, comparison)
                                     : as_text(prepared->plan, comparison, session.style);
  if (!print(session, text)) return exit_status(ErrorKind::system, session.exit_rules);
  return comparison.differences.empty() ? 0 : 1;
}

}  // namespace

Runner declare_verify(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Verification");
  parser.text("--import", args->module, "MODULE",
              "Also look after Python has imported MODULE, as in --import torch");
  parser.seconds("--timeout", args->timeout_seconds, "Seconds for the ranks to report");
  parser.flag("--force", args->force, "Start in spite of errors that a check found");
  parser.flag("--json", args->json, "Everything that was compared and found, for programs");
  parser.takes_program();
  parser.footer(
      "Exit status: 0 every rank is as planned, 1 there are differences, 2 it could not be told.");
  return [args, &parser](Session& session) { return verify(*args, parser, session); };
}

}  // namespace hpclaunch::cli
