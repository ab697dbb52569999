// The plan against what the ranks report.
#include <fmt/format.h>

#include <algorithm>

#include "differences.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

using check::Differences;
using check::different;
using check::Seat;

// What programs and their libraries are found by. Launchers and nodes add to these, so they are only
// expected to be there.
constexpr const char* kSearched[] = {"CONDA_PREFIX", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH",
                                     "VIRTUAL_ENV"};

bool can_be_listed(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Why ranks or nodes did not report, as far as the launcher's exit shows.
Difference silence(const Observed& seen, std::string kind) {
  std::string cause = "the launcher started fewer ranks than requested";
  std::string fix =
      "compare the launcher's arguments (hpclaunch run --dry-run) with the job's size";
  if (seen.too_late) {
    cause = fmt::format("they did not start within {} seconds", seen.limit_seconds);
    fix = "read the messages above, or allow more time with --timeout";
  } else if (seen.launcher_status != 0) {
    cause = fmt::format(
        "they failed, or were stopped with one that failed: the launcher exited with status {}",
        seen.launcher_status);
    fix = "the first message above says what failed";
  } else if (seen.garbled > 0) {
    cause = fmt::format("{} could not be read: mixed with other output",
                        counted(seen.garbled, "report"));
    fix = "keep the launcher from writing to standard output, or try again";
  }
  return different(std::move(kind), "a report", "none", std::move(cause), std::move(fix));
}

// The report that counts of each rank; several of one rank are a difference.
std::vector<const RankReport*> by_rank(const Observed& seen, const std::vector<Seat>& seats,
                                       Differences& out) {
  std::vector<const RankReport*> of(seats.size(), nullptr);
  std::map<int, int> times;
  for (const RankReport& report : seen.reports) {
    const auto at = static_cast<std::size_t>(report.rank);
    if (at >= of.size()) continue;  // the shim lets none of these through
    if (of[at] == nullptr)
      of[at] = &report;
    else
      ++times[report.rank];
  }
  for (const auto& [rank, more] : times)
    out.of_rank(rank, seats[static_cast<std::size_t>(rank)].node,
                different("rank-twice", "one process", fmt::format("{} processes", more + 1),
                          "several processes have this rank: the launcher does not belong to the "
                          "job's batch system",
                          "choose another launcher with --launcher NAME"));
  return of;
}

void compare_local_rank(const Seat& seat, const RankReport& report, Differences& out) {
  if (report.launcher_local_rank < 0 || report.launcher_local_rank == seat.local) return;
  out.of_rank(report.rank, seat.node,
              different("local-rank", fmt::format("{}", seat.local),
                        fmt::format("{}", report.launcher_local_rank),
                        "the launcher distributes or numbers the ranks of a node in another way",
                        "remove presets of the distribution (--launcher-arg, the environment)"));
}

void compare_nodes_of_job(const Plan& plan, const Topology& node, const Observed& seen,
                          Comparison& result) {
  Differences out;
  std::vector<Seat> seats;
  seats.reserve(static_cast<std::size_t>(plan.nodes()));
  for (int n = 0; n < plan.nodes(); ++n) seats.push_back({n, 0, 0, 1});
  std::vector<bool> there(seats.size(), false);
  for (const RankReport& report : seen.reports)
    if (static_cast<std::size_t>(report.rank) < there.size())
      there[static_cast<std::size_t>(report.rank)] = true;
  for (std::size_t n = 0; n < there.size(); ++n)
    if (!there[n]) out.of_node(static_cast<int>(n), silence(seen, "node-silent"));
  check::compare_hosts(plan, seen, seats, out);
  check::compare_nodes(plan, node, seen, seats, out);
  result.differences = std::move(out).finish();
  for (Difference& one : result.differences) one.ranks.clear();  // they are not the job's
}

}  // namespace

std::vector<std::string> names_to_report(const Plan& plan, const EnvSnapshot& env) {
  std::vector<std::string> names;
  for (const Setting& setting : plan.env)
    if (can_be_listed(setting.name)) names.push_back(setting.name);
  for (const char* name : kSearched)
    if (plan.find_env(name) == nullptr && env.has(name)) names.emplace_back(name);
  return names;
}

Comparison compare(const Plan& plan, const Topology& node, const Observed& seen) {
  Comparison result;
  if (seen.one_per_node) {
    compare_nodes_of_job(plan, node, seen, result);
    return result;
  }
  Differences out;
  const std::vector<Seat> seats = check::seats_of(plan);
  const std::vector<const RankReport*> reports = by_rank(seen, seats, out);
  const check::Variables variables(plan, seen);
  for (std::size_t rank = 0; rank < seats.size(); ++rank) {
    const Seat& seat = seats[rank];
    if (reports[rank] == nullptr) {
      out.of_rank(static_cast<int>(rank), seat.node, silence(seen, "rank-silent"));
      continue;
    }
    const RankReport& report = *reports[rank];
    compare_local_rank(seat, report, out);
    check::compare_cpus(plan, seat, report, out);
    check::compare_import(plan, report, seen.names, seat.node, out);
    check::compare_memory(plan, seat, report, out);
    check::compare_devices(plan, node, seen.env, seat, report, out);
    check::compare_core_limit(plan, report, seat.node, out);
    variables.compare(seat, report, out);
  }
  check::compare_hosts(plan, seen, seats, out);
  check::compare_nodes(plan, node, seen, seats, out);
  result.differences = std::move(out).finish();
  const bool all_here = std::none_of(reports.begin(), reports.end(),
                                     [](const RankReport* report) { return report == nullptr; });
  if (all_here && seen.launcher_status != 0)
    result.differences.push_back(
        different("launcher-status", "0", fmt::format("{}", seen.launcher_status),
                  "the launcher failed although all ranks succeeded", "read its messages above"));

  std::vector<bool> good(seats.size(), true);
  for (const Difference& difference : result.differences)
    for (const int rank : difference.ranks) good[static_cast<std::size_t>(rank)] = false;
  result.ranks_as_planned = static_cast<int>(std::count(good.begin(), good.end(), true));
  return result;
}

}  // namespace hpclaunch
