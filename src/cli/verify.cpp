#include "hpclaunch/verify.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "hpclaunch/rank_report.h"
#include "hpclaunch/start.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

using Json = nlohmann::ordered_json;

struct Args {
  Request launch;
  bool json = false;
  bool doctor = false;
  job::ReportTime time{"", "", 120};
};

constexpr std::size_t kRowsPerKind = 8;

Json difference_json(const Plan& plan, const Difference& difference) {
  Json hosts = Json::array();
  for (const int node : difference.nodes) hosts.push_back(plan.hosts.names[node]);
  return {{"kind", difference.what.id},
          {"severity", to_string(difference.what.severity)},
          {"where", where_text(plan, difference)},
          {"ranks", difference.ranks},
          {"hosts", std::move(hosts)},
          {"planned", difference.planned},
          {"found", difference.found},
          {"cause", difference.what.message},
          {"fix", difference.what.fix}};
}

std::string as_json(const Prepared& prepared, const job::Verification& result) {
  const Plan& plan = prepared.plan;
  const Comparison& comparison = result.comparison;
  Json document = {{"schema", 1},
                   {"as_planned", comparison.as_planned()},
                   {"ranks", plan.world_size()},
                   {"ranks_as_planned", comparison.ranks_as_planned},
                   {"hosts", plan.hosts.names}};
  document["launcher"] = {{"name", plan.launch.launcher},
                          {"argv", result.argv},
                          {"status", result.ended.status},
                          {"too_late", result.ended.too_late}};
  document["garbled"] = result.seen.garbled;
  document["differences"] = Json::array();
  for (const Difference& one : comparison.differences)
    document["differences"].push_back(difference_json(plan, one));
  std::vector<RankSeen> reports = result.seen.reports;
  std::ranges::stable_sort(reports, {}, &RankSeen::rank);
  document["reports"] = Json::array();
  const std::vector<RankPlace> places = rank_places(plan);
  for (const RankSeen& one : reports) {
    if (static_cast<std::size_t>(one.rank) >= places.size()) continue;
    const RankPlace& place = places[one.rank];
    const RankReport report = complete(plan, result.seen, place, *one.found);
    document["reports"].push_back(
        Json::parse(report_to_json(one, place, report, result.seen.module)));
  }
  document["diagnostics"] = json_of(prepared.diagnostics);
  constexpr int kIndent = 2;
  return document.dump(kIndent, ' ', false, Json::error_handler_t::replace) + "\n";
}

// Each kind once, with its likely cause and the fix.
std::string reasons(const std::vector<Difference>& differences, const Style& style) {
  std::string text;
  std::set<std::string> shown;
  for (const Difference& one : differences) {
    if (!shown.insert(one.what.id + one.what.message + one.what.fix).second) continue;
    text += "\n" + paragraph(one.what.id + ": ", "likely " + one.what.message, style);
    if (!one.what.fix.empty()) text += paragraph("  try: ", one.what.fix, style);
  }
  return text;
}

// "18 threads of 6 processes examined after 30 s"; "" without --after.
std::string examined_text(const Observed& seen) {
  if (seen.after.empty()) return "";
  long threads = 0;
  long processes = 0;
  for (const RankSeen& one : seen.reports) {
    if (!one.found->after) continue;
    threads += one.found->after->threads;
    processes += one.found->after->processes;
  }
  return fmt::format(
      "{} {} of {} {} examined {}\n", with_separators(threads), threads == 1 ? "thread" : "threads",
      with_separators(processes), processes == 1 ? "process" : "processes",
      seen.after == "end" ? "before the end" : fmt::format("after {} s", seen.after));
}

std::string as_text(const Plan& plan, const job::Verification& result, const Style& style) {
  const Comparison& comparison = result.comparison;
  const int ranks = plan.own_ranks().second;
  const int own = plan.hosts.own;
  std::string line =
      fmt::format("{} of {} as planned on {}\n", with_separators(comparison.ranks_as_planned),
                  with_separators(ranks) + (ranks == 1 ? " rank" : " ranks"),
                  own >= 0
                      ? fmt::format("node {} of {}", own, plan.nodes())
                      : with_separators(plan.nodes()) + (plan.nodes() == 1 ? " node" : " nodes")) +
      examined_text(result.seen);
  if (comparison.differences.empty()) return line;
  const std::vector<Difference> shown = condense(comparison.differences, kRowsPerKind);
  std::vector<std::vector<std::string>> rows = {{"what", "where", "planned", "found"}};
  for (const Difference& one : shown)
    rows.push_back({one.what.id, where_text(plan, one), one.planned, one.found});
  return line + "\n" + grid(rows, style) + reasons(shown, style);
}

Json nodes_json(const Plan& plan, const job::NodesExamined& nodes) {
  Json findings = Json::array();
  for (const Difference& one : nodes.findings) {
    Json row = difference_json(plan, one);
    findings.push_back({{"id", one.what.id},
                        {"severity", row["severity"]},
                        {"message", one.what.message},
                        {"fix", one.what.fix},
                        {"hosts", row["hosts"]}});
  }
  return {{"schema", 1},
          {"hosts", plan.hosts.names},
          {"answered", nodes.answered},
          {"findings", findings}};
}

std::string nodes_text(const Plan& plan, const job::NodesExamined& nodes, const Style& style) {
  std::string text =
      fmt::format("{} of {} answered\n", nodes.answered, counted(plan.nodes(), "node"));
  for (const Difference& one : nodes.findings) {
    text += "\n" + paragraph(fmt::format("{}: ", where_text(plan, one)),
                             fmt::format("{}: {} [{}]", to_string(one.what.severity),
                                         one.what.message, one.what.id),
                             style);
    if (!one.what.fix.empty()) text += paragraph("  try: ", one.what.fix, style);
  }
  return text;
}

int doctor_of_nodes(const Args& args, const Prepared& prepared, Session& session) {
  const Result<job::NodesExamined> nodes =
      job::examine_nodes(prepared, false, args.time.limit_seconds, other_lines(session));
  if (!nodes) return report(session, nodes.error());
  constexpr int kSignalled = 128;
  if (nodes->interrupted_by != 0) return kSignalled + nodes->interrupted_by;
  const int status =
      print_all(session, args.json ? nodes_json(prepared.plan, *nodes).dump(2) + "\n"
                                   : nodes_text(prepared.plan, *nodes, session.style));
  const bool wrong = std::ranges::any_of(nodes->findings, [](const Difference& one) {
    return one.what.severity >= Severity::warning;
  });
  return status == 0 && wrong ? 1 : status;
}

int verify(const Args& args, Session& session) {
  if (const Status good = without_stage(args.launch, "verify"); !good)
    return report(session, good.error());
  if (const Status good = job::check_time(args.time, args.launch.command); !good)
    return report(session, good.error());
  Result<Prepared> prepared =
      job::prepare(args.launch, job::this_world(session.env), Purpose::start);
  if (prepared && !any_from(Severity::error, prepared->diagnostics))
    prepared = job::with_container_tried(*std::move(prepared));
  if (!prepared) return report(session, prepared.error());
  if (!args.json) report(session, prepared->diagnostics);
  if (any_from(Severity::error, prepared->diagnostics) && !args.launch.force)
    return report(session, stopped("not started"));
  if (args.doctor) return doctor_of_nodes(args, *prepared, session);
  const Result<job::Verification> result = job::verify(*prepared, args.time, other_lines(session));
  if (!result) return report(session, result.error());
  constexpr int kSignalled = 128;
  if (result->ended.interrupted_by != 0) return kSignalled + result->ended.interrupted_by;
  const Comparison& comparison = result->comparison;
  const std::string text =
      args.json ? as_json(*prepared, *result) : as_text(prepared->plan, *result, session.style);
  const int status = print_all(session, text);
  return status == 0 && !comparison.as_planned() ? 1 : status;
}

}  // namespace

Runner declare_verify(Parser& parser) {
  auto args = std::make_shared<Args>();
  declare_launch_options(parser, args->launch);
  parser.group("Verification");
  parser.text("--after", args->time.after, "SECONDS",
              "Start the program, and examine its threads after SECONDS (or: end)");
  parser.flag("--doctor", args->doctor, "Examine each node instead, as hpclaunch doctor does");
  parser.flag("--json", args->json, "Print reports and differences as JSON");
  parser.group("Verification", false, true);
  parser.text("--import", args->time.module, "MODULE",
              "Report after Python has imported MODULE, as in --import torch");
  parser.seconds("--timeout", args->time.limit_seconds, "Seconds to wait for reports");
  parser.flag("--force", args->launch.force, "Start in spite of errors");
  parser.takes_program(args->launch.command);
  parser.footer("Exit status: 0 every rank is as planned, 1 differences, 2 failed.");
  return [args](Session& session) { return verify(*args, session); };
}

}  // namespace hpclaunch::cli
