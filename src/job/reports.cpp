#include "job/reports.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hpclaunch/hosts.h"
#include "hpclaunch/wire.h"

namespace hpclaunch::cli {

namespace {

constexpr double kGraceSeconds = 5;  // for a launcher to end its ranks

}  // namespace

std::vector<std::string> report_command(const Question& question) {
  std::vector<std::string> command = {sys::own_directory() + "/hpclaunch", "rank-report"};
  const auto pass = [&](const char* option, const std::string& value) {
    if (!value.empty()) command.insert(command.end(), {option, value});
  };
  pass("--names", fmt::format("{}", fmt::join(question.names, ",")));
  pass("--local-variable", question.local_variable);
  pass("--program", question.program);
  pass("--import", question.module);
  if (!question.module.empty()) pass("--python", question.python);
  return command;
}

Plan one_rank_per_node(const Plan& plan) {
  Plan one = plan;
  one.classes = {NodeClass{{RankPlan{}}}};
  one.layout = {NodeRun{0, plan.nodes()}};
  one.bind_via = BindVia::none;
  one.core_limit.clear();
  one.make_dirs.clear();
  one.launcher_args = without_placement(one.launcher, std::move(one.launcher_args));
  one.profile_args = without_placement(one.launcher, std::move(one.profile_args));
  std::erase_if(one.env, [](const Setting& setting) {
    return std::holds_alternative<PerRank>(setting.value());
  });
  return one;
}

void look_up_hosts(const Plan& plan, Observed& seen) {
  constexpr int kMost = 32;
  constexpr double kSeconds = 5;
  const double start = sys::wall_clock();
  int asked = 0;
  for (const RankReport& report : seen.reports) {
    if (!report.facts || report.node < 0 || report.node >= plan.nodes()) continue;
    const std::string& planned = plan.hosts[static_cast<std::size_t>(report.node)];
    if (same_host(planned, report.host)) continue;
    if (++asked > kMost || sys::wall_clock() - start > kSeconds) return;
    if (const Result<std::vector<std::string>> found = sys::resolve(planned); found)
      seen.addresses[planned] = {found->begin(), found->end()};
  }
}

Result<Collected> collect_reports(Plan plan, const Prepared& prepared, const Session& session,
                                  double limit_seconds) {
  const LauncherTraits traits = prepared.launcher.launcher->traits();
  plan.verify = Verify::off;
  plan.output = OutputOptions{false, "", kGraceSeconds};
  plan.supervise = false;
  plan.removed.clear();  // what is there again shall be seen
  plan.time_limit_signal = {};
  // Without the local rank's name: the shim would stop ranks that the launcher has dealt otherwise, and
  // nobody would see how.
  Result<std::string> wire = encode_wire(plan, {traits.rank_var, ""});
  if (!wire) return wire.error();
  plan.wire = std::move(*wire);
  Result<Argv> argv =
      prepared.launcher.launcher->render(plan, prepared.launcher.facts, prepared.shim);
  if (!argv) return argv.error();
  Collected collected;
  collected.argv = std::move(*argv);
  Observed& seen = collected.seen;
  seen.env = launch_environment(plan, session.env);
  seen.limit_seconds = limit_seconds;
  ReportPieces pieces;
  const auto take = [&](std::string_view line, double at) {
    bool was_piece = false;
    std::optional<Result<RankReport>> report = pieces.take(line, was_piece);
    if (!report) {
      if (!was_piece)
        std::fprintf(session.err, "%.*s\n", static_cast<int>(line.size()), line.data());
    } else if (*report) {
      seen.reports.push_back(std::move(**report));
      seen.arrivals.push_back(at);
    } else {
      ++seen.garbled;
    }
  };
  const Result<sys::Ended> ended =
      sys::listen_to(collected.argv, seen.env, limit_seconds, kGraceSeconds, take);
  if (!ended) return ended.error();
  collected.ended = *ended;
  seen.garbled += pieces.unfinished();
  seen.launcher_status = ended->status;
  seen.too_late = ended->too_late;
  return collected;
}

}  // namespace hpclaunch::cli
