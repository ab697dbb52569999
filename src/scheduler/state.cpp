// What batch systems say of a submitted job. Sources: qstat(1B), states and substates in OpenPBS (job.h, svr_jobfunc.c),
// scontrol(1), sacct(1) and the job reasons of Slurm, flux-jobs(1).
#include <fmt/format.h>

#include <algorithm>
#include <span>

#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {

namespace {

using enum JobState::Phase;
using Names = std::initializer_list<std::string_view>;

bool is_one_of(std::string_view word, Names names) { return std::ranges::count(names, word) > 0; }

std::optional<int> number(std::string_view text) {
  const bool negative = text.starts_with('-');
  const auto value = parse_natural(negative ? text.substr(1) : text, 100'000);
  if (text.empty() || !value || (negative && text.size() == 1)) return std::nullopt;
  return static_cast<int>(negative ? -*value : *value);
}

// As a shell has it.
int shell_status(int status) { return status & 0xff; }

constexpr int kCancelled = 128 + 15;  // also where the job never ran

// " KEY=value" up to `end`, as scontrol prints it.
std::string slurm_value(std::string_view text, std::string_view key, char end = ' ') {
  for (std::size_t at = 0; (at = text.find(key, at)) != std::string_view::npos; ++at) {
    if (at > 0 && text[at - 1] != ' ' && text[at - 1] != '\n') continue;
    const std::string_view rest = text.substr(at + key.size());
    const std::string_view line = rest.substr(0, rest.find('\n'));
    const std::string_view value = line.substr(0, line.find(end));
    return value == "(null)" || value == "Unknown" ? "" : std::string(value);
  }
  return "";
}

JobState::Phase slurm_phase(std::string_view state) {
  if (is_one_of(state, {"COMPLETED", "FAILED", "CANCELLED", "TIMEOUT", "OUT_OF_MEMORY", "NODE_FAIL",
                        "PREEMPTED", "BOOT_FAIL", "DEADLINE", "REVOKED"}))
    return ended;
  return is_one_of(state, {"RUNNING", "COMPLETING", "SUSPENDED", "STOPPED", "RESIZING", "SIGNALING",
                           "STAGE_OUT"})
             ? running
             : waiting;
}

// "3:0" is an exit status, "0:9" a signal. A job that was ended from outside may have neither.
std::optional<int> slurm_status(std::string_view state, std::string_view code) {
  const std::size_t colon = std::min(code.find(':'), code.size());
  const int exit = number(code.substr(0, colon)).value_or(0);
  const int signal = colon < code.size() ? number(code.substr(colon + 1)).value_or(0) : 0;
  constexpr int kLastSignal = 64;  // above: OUT_OF_MEMORY has "0:125"
  const int status = shell_status(signal > kLastSignal ? 0 : signal > 0 ? 128 + signal : exit);
  if (status == 0 && state == "CANCELLED") return kCancelled;
  return status == 0 && state != "COMPLETED" ? std::nullopt : std::optional(status);
}

// Limits that the job exceeds by itself; ReqNodeNotAvail, held jobs and PartitionNodeLimit (which also stands for nodes
// that are down) can pass.
bool slurm_never(std::string_view reason) {
  const bool per_job = (reason.starts_with("Assoc") || reason.starts_with("QOS")) &&
                       reason.find("PerJob") != std::string_view::npos;
  return per_job ||
         is_one_of(reason, {"DependencyNeverSatisfied", "PartitionTimeLimit", "BadConstraints"});
}

// Of the first line.
std::vector<std::string_view> fields_of(std::string_view text) {
  return split(trim(text.substr(0, text.find('\n'))), '|');
}

}  // namespace

std::optional<JobState> slurm_state(std::string_view text) {
  JobState job;
  job.name = slurm_value(text, "JobState=");
  if (job.name.empty()) return std::nullopt;
  job.phase = slurm_phase(job.name);
  job.why = slurm_value(text, "Reason=");
  if (job.why == "None") job.why.clear();
  if (job.phase == waiting) {
    job.never = slurm_never(job.why);
    job.starts = slurm_value(text, "StartTime=");
    job.queue = slurm_value(text, "Partition=");
  }
  job.output = slurm_value(text, "StdOut=", '\n');
  if (job.phase == ended) job.status = slurm_status(job.name, slurm_value(text, "ExitCode="));
  return job;
}

// "FAILED|3:0", "CANCELLED by 1000|0:0".
std::optional<JobState> slurm_accounting(std::string_view text) {
  const std::vector<std::string_view> fields = fields_of(text);
  if (fields.size() < 2) return std::nullopt;
  JobState job;
  job.name = fields[0].substr(0, fields[0].find(' '));
  job.phase = slurm_phase(job.name);
  if (job.name != fields[0]) job.why = fields[0];
  if (job.phase == ended) job.status = slurm_status(job.name, fields[1]);
  return job;
}

// The script's exit status, 256+n for signal n, below 0 where the job could not start or ran into a limit. A job that
// was deleted before it ran has substate 91 alone.
std::optional<JobState> pbs_state(std::string_view text) {
  constexpr std::pair<char, const char*> kNames[] = {
      {'Q', "queued"},    {'H', "held"},    {'W', "waiting"},  {'T', "in transit"},
      {'M', "moved"},     {'R', "running"}, {'B', "running"},  {'S', "suspended"},
      {'U', "suspended"}, {'E', "exiting"}, {'F', "finished"}, {'X', "finished"}};
  const std::string letter = pbs_value(text, "job_state");
  const auto* known = std::ranges::find(kNames, letter.empty() ? '?' : letter.front(),
                                        &std::pair<char, const char*>::first);
  if (known == std::end(kNames)) return std::nullopt;
  JobState job;
  job.name = known->second;
  job.phase = is_one_of(letter, {"Q", "H", "W", "T", "M"}) ? waiting
              : is_one_of(letter, {"F", "X"})              ? ended
                                                           : running;
  job.why = pbs_value(text, "comment");
  job.starts = pbs_value(text, "estimated.start_time");
  const std::string path = pbs_value(text, "Output_Path");  // "host:/path"
  job.output = path.substr(std::min(path.find('/'), path.size()));
  job.never = job.phase == waiting && job.why.starts_with("Can Never Run");
  const bool over = job.phase == ended || letter == "E";  // arrays have one while they run
  const std::string code = over ? pbs_value(text, "Exit_status") : "";
  if (const auto exit = number(code)) {
    if (*exit < 0) job.why = fmt::format("Exit_status {}: {}", *exit, job.why);
    if (*exit >= 0) job.status = shell_status(*exit > 255 ? 128 + *exit - 256 : *exit);
  } else if (job.phase == ended && pbs_value(text, "substate") == "91") {
    job.status = kCancelled;
  }
  return job;
}

// state|result|return code|type of exception|why it waits, or its nodes|note of the exception. A negative code is a
// signal, -128 a job that never started.
std::optional<JobState> flux_state(std::string_view text) {
  const std::vector<std::string_view> fields = fields_of(text);
  if (fields.size() < 6) return std::nullopt;
  JobState job;
  job.name = fields[0];
  job.phase = is_one_of(fields[0], {"RUN", "CLEANUP"}) ? running
              : fields[0] == "INACTIVE"                ? ended
                                                       : waiting;
  if (job.phase == waiting) job.why = fields[4];
  if (job.phase != ended) return job;
  constexpr int kNeverStarted = -128;
  job.name = fields[1];
  job.why = joined(std::span(fields).subspan(5), "|");
  const auto code = number(fields[2]);
  if (code && *code != kNeverStarted) job.status = shell_status(*code < 0 ? 128 - *code : *code);
  if (job.name != "COMPLETED" && job.status == 0) job.status.reset();
  if (job.name == "CANCELED" && !job.status) job.status = kCancelled;
  return job;
}

std::string place_in_queue(std::string_view ids, std::string_view id) {
  std::vector<std::string_view> waiting_jobs = split(trim(ids), '\n');
  const auto own =
      std::ranges::find(waiting_jobs, id, [](std::string_view one) { return trim(one); });
  if (own == waiting_jobs.end()) return "";
  return fmt::format("{} of {}", own - waiting_jobs.begin() + 1, waiting_jobs.size());
}

}  // namespace hpclaunch
