// Starts a report on each rank, or on each node, in place of the program, and compares what comes
// back.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hpclaunch/hosts.h"
#include "hpclaunch/wire.h"
#include "job/steps.h"

namespace hpclaunch::job {

namespace {

constexpr double kGraceSeconds = 5;  // for a launcher to end its ranks

// What every rank runs in place of the program. It imports `module` with `python` first; "" for none.
std::vector<std::string> report_command(const sys::ObserveRequest& request,
                                        const std::string& module, const std::string& python) {
  std::vector<std::string> command = {sys::own_directory() + "/hpclaunch", "rank-report"};
  const auto pass = [&](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  pass("--names", fmt::format("{}", fmt::join(request.names, ",")));
  pass("--local-variable", request.launcher_local_variable);
  pass("--program", request.program);
  pass("--import", module);
  pass("--python", python);
  return command;
}

// One rank per node, not bound, with the constants of the job.
Plan one_rank_per_node(const Plan& plan) {
  Plan one = plan;
  one.classes = {NodeClass{{RankPlan{}}}};
  one.layout = {NodeRun{0, plan.nodes()}};
  one.bind_via = BindVia::none;
  one.shared_cpus = false;
  one.core_limit.clear();
  one.make_dirs.clear();
  one.launcher_args = without_placement(one.launcher, std::move(one.launcher_args));
  one.profile_args = without_placement(one.launcher, std::move(one.profile_args));
  std::erase_if(one.env, [](const Setting& setting) {
    return std::holds_alternative<PerRank>(setting.value());
  });
  return one;
}

// A node may have another name than in the host list: then its addresses decide. A look-up may take
// seconds where a name service does not answer, so their number and time are limited.
void look_up_hosts(const Plan& plan, Observed& seen) {
  constexpr int kMost = 32;
  constexpr double kSeconds = 5;
  const double start = sys::wall_clock();
  int asked = 0;
  for (const RankReport& report : seen.reports) {
    if (!report.facts || report.node < 0 || report.node >= plan.nodes()) continue;
    const std::string planned(plan.hosts[static_cast<std::size_t>(report.node)]);
    if (same_host(planned, report.host)) continue;
    if (++asked > kMost || sys::wall_clock() - start > kSeconds) return;
    if (const Result<std::vector<std::string>> found = sys::resolve(planned); found)
      seen.addresses[planned] = {found->begin(), found->end()};
  }
}

// The launch line for `plan`, whose command is a report_command. The shim does not verify: the
// reader of the reports does.
Result<Argv> report_line_of(Plan plan, const Prepared& prepared, EnvSnapshot& env) {
  const LauncherTraits traits = prepared.launcher.launcher->traits;
  plan.verify = Verify::off;
  plan.output = OutputOptions{false, "", kGraceSeconds};
  plan.supervise = false;
  plan.removed.clear();  // variables that are set again are to be seen
  plan.time_limit_signal = {};
  // Without the local rank's name: the shim would stop ranks that the launcher distributed
  // otherwise.
  Result<std::string> wire = encode_wire(plan, {traits.rank_var, ""});
  if (!wire) return wire.error();
  plan.wire = std::move(*wire);
  env = launch_environment(plan, env);
  return prepared.launcher.launcher->render(plan, prepared.launcher.facts, prepared.shim);
}

// Of which no rank has reported; "" for none.
std::string missing_nodes(const Plan& plan, const std::vector<RankReport>& reports) {
  Difference missing;
  std::set<int> known;
  for (const RankReport& report : reports) known.insert(report.node);
  for (int node = 0; node < plan.nodes(); ++node)
    if (!known.contains(node)) missing.nodes.push_back(node);
  return missing.nodes.empty() ? "" : where_text(plan, missing);
}

Result<Verification> collect(const Plan& plan, const Prepared& prepared, const EnvSnapshot& env,
                             double limit_seconds, const OtherLines& other) {
  Verification result;
  Observed& seen = result.seen;
  seen.env = env;
  Result<Argv> argv = report_line_of(plan, prepared, seen.env);
  if (!argv) return argv.error();
  result.argv = std::move(*argv);
  if (const int start = plan.output.start_seconds.value_or(0); start > 0)
    limit_seconds = std::min<double>(limit_seconds, start);
  seen.limit_seconds = limit_seconds;
  ReportPieces pieces;
  const auto take = [&](std::string_view line, double at) {
    bool was_piece = false;
    std::optional<Result<RankReport>> report = pieces.take(line, was_piece);
    if (!report) {
      if (!was_piece) other(line);
    } else if (*report) {
      seen.reports.push_back(std::move(**report));
      seen.arrivals.push_back(at);
    } else {
      ++seen.garbled;
    }
  };
  const auto late = [&] {
    if (const std::string nodes = missing_nodes(plan, seen.reports); !nodes.empty())
      other(fmt::format("hpclaunch: still waiting for {}, {} s after the start", nodes,
                        sys::kStartPatience / 1000));
  };
  const Result<sys::Ended> ended =
      sys::listen_to(result.argv, seen.env, limit_seconds, kGraceSeconds, take, late);
  if (!ended) return ended.error();
  result.ended = *ended;
  seen.garbled += pieces.unfinished();
  seen.launcher_status = ended->status;
  seen.too_late = ended->too_late;
  return result;
}

Error no_report(const sys::Ended& ended, const std::string& module, double limit) {
  if (!module.empty())
    return Error{
        ErrorKind::system,
        fmt::format("no rank reported after \"import {}\" within {} seconds (launcher status {})",
                    module, limit, ended.status),
        "hpclaunch verify without --import, or --timeout SECONDS"};
  if (ended.too_late)
    return Error{ErrorKind::system,
                 fmt::format("no rank reported within {} seconds; stopped the launcher", limit),
                 "--timeout SECONDS; messages of the launcher are above"};
  return Error{ErrorKind::system,
               fmt::format("no rank reported; the launcher exited with status {}", ended.status),
               "see its messages above; hpclaunch run --dry-run shows the launch line"};
}

// The interpreter that was named, else the one on PATH.
Result<std::string> python_for(const std::vector<std::string>& command, const EnvSnapshot& env) {
  if (!command.empty()) {
    const std::string name = command.front().substr(command.front().rfind('/') + 1);
    if (name.starts_with("python") || name.starts_with("pypy")) return command.front();
  }
  return sys::find_program("python3", env.get("PATH"));
}

}  // namespace

Result<Verification> verify(const Prepared& prepared, const EnvSnapshot& env,
                            const std::string& module, double limit_seconds,
                            const OtherLines& other) {
  Plan plan = prepared.plan;
  sys::ObserveRequest request;
  request.names = names_to_report(plan, launch_environment(plan, env));
  request.launcher_local_variable = prepared.launcher.launcher->traits.local_rank_var;
  if (!plan.command.empty()) request.program = plan.command.front();
  Result<std::string> python = std::string();
  if (!module.empty()) python = python_for(plan.command, env);
  if (!python) return python.error();
  plan.command = report_command(request, module, *python);
  Result<Verification> result = collect(plan, prepared, env, limit_seconds, other);
  if (!result || result->ended.interrupted_by != 0) return result;
  if (result->seen.reports.empty())
    return no_report(result->ended, module, result->seen.limit_seconds);
  result->seen.names = request.names;
  look_up_hosts(prepared.plan, result->seen);
  result->comparison = compare(prepared.plan, prepared.node, result->seen);
  return result;
}

Result<std::vector<Diagnostic>> preflight(const Prepared& prepared, const EnvSnapshot& env,
                                          double limit_seconds, const OtherLines& other) {
  constexpr std::size_t kRowsPerKind = 8;
  Plan plan = one_rank_per_node(prepared.plan);
  sys::ObserveRequest request;
  if (!plan.command.empty()) request.program = plan.command.front();
  plan.command = report_command(request, "", "");
  Result<Verification> result = collect(plan, prepared, env, limit_seconds, other);
  if (!result) return result.error();
  if (result->ended.interrupted_by != 0)
    return Error{ErrorKind::system,
                 fmt::format("preflight: interrupted by signal {}", result->ended.interrupted_by)};
  if (result->seen.reports.empty())
    return Error{ErrorKind::system,
                 fmt::format("preflight: no node reported; the launcher exited with status {}",
                             result->ended.status),
                 "see its messages above; hpclaunch run --dry-run shows the launch line"};
  result->seen.one_per_node = true;
  look_up_hosts(prepared.plan, result->seen);
  const Comparison comparison = compare(prepared.plan, prepared.node, result->seen);
  std::vector<Diagnostic> diagnostics;
  for (const Difference& one : condense(comparison.differences, kRowsPerKind))
    diagnostics.push_back(
        {"preflight-" + one.what.id, one.what.severity,
         fmt::format("{}: planned {}, found {}: {}", where_text(prepared.plan, one), one.planned,
                     one.found, one.what.message),
         one.what.fix});
  return diagnostics;
}

namespace {

// The logs of ranks under a launcher: where those of earlier launches are not.
Status place_logs(const LauncherTraits& traits, Plan& plan) {
  if (plan.output.log_dir.empty()) return Done{};
  Result<std::string> place = sys::claim_log_directory(plan.output.log_dir, plan.world_size());
  if (!place) return place.error();
  plan.output.log_dir = *std::move(place);
  Result<std::string> wire = encode_wire(plan, {traits.rank_var, traits.local_rank_var});
  if (!wire) return wire.error();
  plan.wire = *std::move(wire);
  return Done{};
}

}  // namespace

Result<sys::Ending> start(const Prepared& prepared, const EnvSnapshot& env) {
  if (prepared.plan.launcher == "local")
    return sys::run_local(prepared.plan, launch_environment(prepared.plan, env), prepared.shim);
  Plan plan = prepared.plan;
  if (const Status logs = place_logs(prepared.launcher.launcher->traits, plan); !logs)
    return logs.error();
  const EnvSnapshot changed = launch_environment(plan, env);
  if (plan.supervise) return sys::run_supervised(plan, prepared.argv, changed);
  std::vector<int> keep;
  if (prepared.port_lock >= 0) keep.push_back(prepared.port_lock);
  return sys::exec(prepared.argv, changed, keep);
}

}  // namespace hpclaunch::job
