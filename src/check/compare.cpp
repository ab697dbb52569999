// The plan against what the ranks report.
#include "compare.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace check {

namespace {

// Removed for the launcher only; ranks may have it: srun describes each step with the variables that
// preset its options.
bool is_for_launcher(const Setting& setting) {
  return setting.history.back().layer == Layer::computed && !is_placement_variable(setting.name);
}

WantedVariable wanted_variable(const Plan& plan, const std::string& name) {
  WantedVariable wanted{.name = name, .setting = plan.find_env(name)};
  if (wanted.setting == nullptr) return wanted;
  const Value& value = wanted.setting->value();
  wanted.removed = std::holds_alternative<Unset>(value);
  if (const auto* text = std::get_if<std::string>(&value)) wanted.constant = fingerprint(*text);
  wanted.ignored = wanted.removed && is_for_launcher(*wanted.setting);
  return wanted;
}

Job job_of(const Plan& plan, const Topology& node, const Observed& seen) {
  Job job{plan, node, seen};
  for (const std::string& name : seen.names) job.wanted.push_back(wanted_variable(plan, name));
  for (const std::string_view host : plan.hosts) job.hosts.insert(short_host(host));
  for (const RankReport& report : seen.reports) {
    if (!report.facts) continue;
    std::set<std::string> all;
    for (const Interface& one : report.facts->interfaces)
      all.insert(one.addresses.begin(), one.addresses.end());
    if (report.rank == 0) job.first_addresses = all;
    job.addresses[report.host] = std::move(all);
  }
  return job;
}

}  // namespace

const std::string* Subject::value(const std::string& name) const {
  const auto at = report.values.find(name);
  return at == report.values.end() ? nullptr : &at->second;
}

}  // namespace check

namespace {

using check::Differences;
using check::different;

// What programs and their libraries are found by. Launchers and nodes add to these, so they are only
// expected to be there.
constexpr const char* kSearched[] = {"CONDA_PREFIX", "LD_LIBRARY_PATH", "PATH", "PYTHONPATH",
                                     "VIRTUAL_ENV"};

bool can_be_listed(std::string_view name) {
  return !name.empty() && std::all_of(name.begin(), name.end(), [](char c) {
    return (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z') || (c >= '0' && c <= '9') || c == '_';
  });
}

// Why a rank or node did not report, as far as the launcher's exit shows.
Difference missing_report(const Observed& seen) {
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
  return different(seen.one_per_node ? "node-silent" : "rank-silent", "a report", "none",
                   std::move(cause), std::move(fix));
}

// Ranks without a report, and with several; `times`: the reports of each rank. True when all have one.
bool compare_counts(const check::Job& job, const std::vector<int>& times, Differences& out) {
  bool all_here = true;
  for (std::size_t i = 0; i < times.size(); ++i) {
    const int rank = job.seen.one_per_node ? -1 : static_cast<int>(i);
    if (times[i] > 1 && rank >= 0)
      out.add(different("rank-twice", "one process", fmt::format("{} processes", times[i]),
                        "several processes have this rank: the launcher does not belong to the "
                        "job's batch system",
                        "choose another launcher with --launcher NAME"),
              job.seats[i].node, rank);
    if (times[i] > 0) continue;
    all_here = false;
    out.add(missing_report(job.seen), job.seats[i].node, rank);
  }
  return all_here;
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
  const check::Job job = check::job_of(plan, node, seen);
  Differences out;
  std::vector<int> times(job.seats.size());
  for (const RankReport& report : seen.reports) {
    const auto rank = static_cast<std::size_t>(report.rank);
    if (rank >= job.seats.size()) continue;  // the shim lets none of these through
    const RankPlace& seat = job.seats[rank];
    const auto& ranks = plan.classes[static_cast<std::size_t>(seat.node_class)].ranks;
    const check::Subject subject{job, plan, seat, ranks, report, out};
    check::compare_node(subject);
    if (++times[rank] == 1 && !seen.one_per_node) check::compare_rank(subject);
  }
  check::compare_clocks(job, out);
  const bool all_here = compare_counts(job, times, out);
  Comparison result;
  result.differences = std::move(out).finish();
  if (seen.one_per_node) return result;
  if (all_here && seen.launcher_status != 0)
    result.differences.push_back(
        different("launcher-status", "0", fmt::format("{}", seen.launcher_status),
                  "the launcher failed although all ranks succeeded", "read its messages above"));

  std::vector<bool> good(job.seats.size(), true);
  for (const Difference& difference : result.differences)
    for (const int rank : difference.ranks) good[static_cast<std::size_t>(rank)] = false;
  result.ranks_as_planned = static_cast<int>(std::count(good.begin(), good.end(), true));
  return result;
}

}  // namespace hpclaunch
