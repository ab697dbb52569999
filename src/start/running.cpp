// Asks a running launch what its ranks do.
#include "hpclaunch/running.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/events.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

constexpr long kBetween = 1000;  // ms between the two looks

// "4711" of "slurm 4711"
std::string_view job_id(const RunningLaunch& launch) {
  return std::string_view(launch.job).substr(launch.job.find(' ') + 1);
}

bool in_job(const RunningLaunch& launch) { return !launch.job.starts_with("none "); }

std::string shown(const RunningLaunch& launch) {
  return fmt::format("{} ({}, {}{})", launch.pid, launch.program, counted(launch.ranks, "rank"),
                     in_job(launch) ? fmt::format(", job {}", job_id(launch)) : "");
}

Result<RunningLaunch> chosen(std::string_view which) {
  std::vector<RunningLaunch> launches = running_launches();
  std::erase_if(launches, [&](const RunningLaunch& one) {
    const bool named = fmt::format("{}", one.pid) == which || (in_job(one) && job_id(one) == which);
    return !which.empty() && !named;
  });
  if (launches.size() == 1) return std::move(launches.front());
  if (launches.empty())
    return Error{
        ErrorKind::not_found,
        which.empty()
            ? "no launch of yours runs on this machine"
            : fmt::format("no launch of yours on this machine has the job or process ID {}", which),
        "hpclaunch stacks JOB, or the same on the node where hpclaunch run was typed"};
  std::vector<std::string> all;
  all.reserve(launches.size());
  for (const RunningLaunch& one : launches) all.push_back(shown(one));
  return Error{ErrorKind::usage,
               fmt::format("{} launches of yours run here: {}", all.size(), fmt::join(all, ", ")),
               fmt::format("hpclaunch stacks {}", launches.back().pid)};
}

}  // namespace

stacks::Snapshot snapshot_of(const std::vector<sys::RankStacks>& ranks) {
  stacks::Snapshot snapshot;
  for (const sys::RankStacks& one : ranks) {
    const int number = static_cast<int>(snapshot.ranks.size());
    stacks::Rank rank;
    rank.rank = number;
    rank.host = one.host;
    rank.missing = one.missing;
    if (one.missing.empty()) {
      Result<stacks::Rank> read = stacks::parse(number, one.host, one.text);
      if (read)
        rank = *std::move(read);
      else
        rank.missing = read.error().message;
    }
    snapshot.ranks.push_back(std::move(rank));
  }
  return snapshot;
}

stacks::Sequences sequences_of(const stacks::Snapshot& snapshot) {
  stacks::Processes job;
  for (const stacks::Rank& rank : snapshot.ranks)
    for (const stacks::Process& process : rank.processes) job[rank.host][process.pid] = rank.rank;
  for (const stacks::Rank& rank : snapshot.ranks) {  // one answer is of the whole job
    std::string answer;
    for (const std::string& line : rank.ras) answer += line + '\n';
    if (answer.empty()) continue;
    Result<stacks::Sequences> read = stacks::parse_ras(answer, job);
    if (!read) continue;
    // Else they are those of the communicator: the job's where all are in it.
    std::erase_if(*read, [&](const stacks::GroupProgress& group) {
      return !group.of_job && group.ranks.size() != snapshot.ranks.size();
    });
    return *std::move(read);
  }
  return {};
}

Result<Look> look_at(std::string_view which, bool all_threads) {
  Result<RunningLaunch> launch = chosen(which);
  if (!launch) return launch.error();
  Look look;
  look.launch = *std::move(launch);
  const long began = sys::clock_ms();
  for (stacks::Snapshot* const to : {&look.before, &look.now}) {
    if (to == &look.now) {
      sys::Wait wait;
      wait.until(began + kBetween);
      wait.run();
    }
    const Result<std::vector<sys::RankStacks>> ranks =
        sys::ask_stacks(look.launch.pid, all_threads);
    if (!ranks) return ranks.error();
    *to = snapshot_of(*ranks);
  }
  look.sequences_before = sequences_of(look.before);
  look.sequences = sequences_of(look.now);
  return look;
}

std::vector<std::string> elsewhere(const EnvSnapshot& env, std::string_view job,
                                   const std::vector<std::string>& words) {
  for (const Scheduler& system : rows<Scheduler>()) {
    if (system.on_first_node.empty() || env.get(std::string(system.job_variable)) == job) continue;
    const Result<std::string> program =
        sys::find_program(std::string(system.on_first_node.front()), env.get("PATH"));
    if (!program) continue;
    std::vector<std::string> line;
    for (const std::string_view word : system.on_first_node)
      line.push_back(fmt::format(fmt::runtime(word), fmt::arg("job", job)));
    line.front() = *program;
    line.push_back(sys::own_directory() + "/hpclaunch");
    line.insert(line.end(), words.begin(), words.end());
    return line;
  }
  return {};
}

}  // namespace hpclaunch::job
