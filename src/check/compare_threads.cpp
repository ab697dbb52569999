// One rank while its program runs: CPUs of its threads, environments of its processes (verify --after).
#include <fmt/format.h>

#include <algorithm>

#include "compare.h"
#include "hpclaunch/device_vendor.h"
#include "hpclaunch/text.h"

namespace hpclaunch::check {

namespace {

constexpr std::string_view kOwnBinding =
    "turn off CPU and NUMA binding in the program (torchrun: --numa-binding; servers: their NUMA "
    "options)";

// CPUs that the plan gives to threads of libraries beside the rank's own.
CpuSet helper_cpus(const Subject& at) {
  CpuSet cpus;
  for (const auto& role : at.planned().roles) cpus.add(role.second);
  for (const Setting& setting : at.plan.environment.settings) {
    if (!setting.name.ends_with("_WORKER_AFFINITY") && !setting.name.ends_with("_THREAD_AFFINITY"))
      continue;
    if (const Result<CpuSet> list = CpuSet::parse(value_on(setting.value(), at.seat)); list)
      cpus |= *list;
  }
  return cpus;
}

Reason reason_for_fewer(const Subject& at, const ThreadGroup& group, const CpuSet& found) {
  const std::string by =
      group.each > 1
          ? "the program or a library binds these threads"
          : "the program or a library binds each of these threads to one CPU, as OpenMP does";
  const OpenMpBinding openmp = openmp_binding(at);
  std::string cause =
      openmp.settings.empty()
          ? by + "; its settings (OMP_PROC_BIND, KMP_AFFINITY) are not in the rank's environment"
          : fmt::format("an OpenMP runtime binds its threads ({})", openmp.settings);
  if (found.count() < group.threads)
    cause += "; threads have CPUs in common: they inherit those of the thread that starts them";
  return {std::move(cause), openmp.settings.empty() ? std::string(kOwnBinding) : openmp.fix};
}

Reason reason_for_threads(const Subject& at, const ThreadGroup& group, const CpuSet& planned,
                          const CpuSet& found) {
  if (planned.contains(found)) return reason_for_fewer(at, group, found);
  const Result<CpuSet> all = CpuSet::parse(at.report.cpuset);
  const auto other = std::ranges::find_if(
      at.ranks, [&](const RankPlan& rank) { return rank.cpus.contains(found); });
  return {
      all && found.contains(*all)
          ? "the thread, or the one that started it, set its CPUs to all of the node"
      : other != at.ranks.end()
          ? fmt::format("these are CPUs of local rank {}: the program binds by numbers of its own",
                        other - at.ranks.begin())
      : found.contains(planned) ? "the program or a library adds CPUs to its threads"
                                : "the program or a library binds threads to CPUs of its choice",
      std::string(kOwnBinding)};
}

// "8 threads "pt_autograd_*": 1 CPU each", "1 thread "python3" of child processes: 0-63". Without a list where ranks would
// differ in it alone, so that one row serves all of them.
std::string text_of(const ThreadGroup& group, bool fewer) {
  const std::string& name = group.name;
  const bool pool =
      !name.empty() && std::string_view("_-/:# ").find(name.back()) != std::string_view::npos;
  const std::string found =
      !fewer ? group.cpus : counted(group.each, "CPU") + (group.threads > 1 ? " each" : "");
  return fmt::format("{} \"{}{}\"{}: {}", counted(group.threads, "thread"), hpclaunch::shown(name),
                     pool ? "*" : "", group.child ? " of child processes" : "", found);
}

void compare_groups(const Subject& at, const Examined& after) {
  const CpuSet& planned = at.planned().cpus;
  const Result<CpuSet> own = planned.empty() ? CpuSet::parse(at.report.cpus) : planned;
  if (!own) return;
  const CpuSet helpers = helper_cpus(at);
  for (const ThreadGroup& group : after.groups) {
    const Result<CpuSet> found = CpuSet::parse(group.cpus);
    if (!found || helpers.contains(*found)) continue;
    Reason reason = reason_for_threads(at, group, *own, *found);
    at.rank_differs("thread-cpus", fmt::format("the rank's {}", counted(own->count(), "CPU")),
                    text_of(group, own->contains(*found)), std::move(reason.cause),
                    std::move(reason.fix));
  }
}

// Servers and agents number the workers that they start.
bool is_identity(const Setting* setting, std::string_view name) {
  constexpr std::string_view kNames[] = {"WORLD_SIZE",       "LOCAL_WORLD_SIZE", "LOCAL_SIZE",
                                         "GROUP_WORLD_SIZE", "MASTER_ADDR",      "MASTER_PORT",
                                         "CROSS_SIZE",       "CROSS_RANK",       "NODE_RANK"};
  return (setting != nullptr && std::holds_alternative<RankFact>(setting->value())) ||
         name.ends_with("RANK") || std::ranges::count(kNames, name) > 0;
}

// "1 child process", "2 child processes"
std::string processes(int count, std::string_view noun) {
  return fmt::format("{} {}{}", count, noun, count == 1 ? "" : "es");
}

void compare_change(const Subject& at, const ChangedVariable& change) {
  const std::string& name = change.name;
  const Setting* const setting = at.plan.find_env(name);
  const bool mask = std::ranges::count(device_masks(), name) > 0;
  const bool open = is_placement_variable(name) && !is_secret(name);
  if (is_identity(setting, name) || (setting != nullptr && is_for_launcher(*setting))) return;
  if (change.set && (is_search_path(name) || (setting == nullptr && !open))) return;
  const std::string* before = at.value(name);
  const std::string in = change.child ? " in " + processes(change.processes, "child process")
                                      : std::string(" in the program");
  at.rank_differs(
      std::string(change.child ? "child-" : "program-") + (mask ? "device-mask" : "variable"),
      !open               ? name + " as planned"
      : before == nullptr ? name + " not set"
                          : name + "=" + *before,
      (!change.set ? name + " not set"
       : open      ? name + "=" + change.value
                   : name + " has another value") +
          in,
      fmt::format("the program, or a script that starts it, {} this variable for processes that it "
                  "starts",
                  change.set ? "sets" : "removes"),
      mask ? "let the program number devices by the mask that it gets" : "");
}

// 0 and examined: nothing to say.
void compare_end(const Subject& at, const Examined& after) {
  if (after.ran < 0) return;
  const bool to_end = at.job.seen.after == "end";
  const bool good = after.exit == 0;
  if (to_end && good && after.threads > 0) return;
  const std::string how = after.exit >= 0 ? fmt::format("exit status {}", after.exit)
                                          : fmt::format("killed by signal {}", after.signal);
  const bool stopped = after.exit < 0 && (after.signal == kTerm || after.signal == kHup ||
                                          after.signal == kInt || after.signal == kKill);
  at.rank_differs("program-ended",
                  after.threads > 0
                      ? "exit status 0"
                      : fmt::format("running after {} s", to_end ? "1" : at.job.seen.after),
                  fmt::format("{} after {} s", how, after.ran),
                  good      ? "the program ended before its threads were examined"
                  : stopped ? "it was stopped with a rank that failed, or from outside"
                            : "the program failed",
                  !good    ? "read the messages above"
                  : to_end ? ""
                           : "fewer seconds for --after, or --after end");
}

void compare_limits(const Subject& at, const Examined& after) {
  std::string missing = after.no_children > 0 ? "child processes" : "";
  const auto add = [&](int count, const std::string& what) {
    if (count > 0) missing += (missing.empty() ? "" : ", ") + what;
  };
  add(after.more_processes, processes(after.more_processes, "more process"));
  add(after.more_threads, counted(after.more_threads, "thread") + " that differ");
  add(after.more_variables, counted(after.more_variables, "variable") + " that differ");
  if (!missing.empty())
    at.rank_differs("not-examined", "all threads and processes", missing,
                    after.no_children > 0 ? "this kernel does not list what a process has started"
                                          : "the rank has more than hpclaunch examines",
                    "");
  if (after.hidden > 0)
    at.out.add(
        different("hidden-environment", "the environment of every process",
                  fmt::format("not readable: {}", after.hidden),
                  "these processes set a title, which overwrites it, or belong to another user", "",
                  Severity::note),
        at.seat.node, at.seat.rank);
}

}  // namespace

void compare_running(const Subject& at) {
  if (!at.report.after) return;
  const Examined& after = *at.report.after;
  compare_end(at, after);
  compare_groups(at, after);
  for (const ChangedVariable& change : after.changes) compare_change(at, change);
  compare_limits(at, after);
}

}  // namespace hpclaunch::check
