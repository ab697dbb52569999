#include "sys/supervised/waiting.h"

#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::sys::supervised {

namespace {

constexpr long kStartLimit = 600'000;  // ms until it is too late, unless the user says otherwise

// "hpclaunch: flux: job f2 (train): SCHED\n..."; "" without an answer within a few seconds.
std::string ask(const TerminationPolicy& policy, const std::string& program) {
  constexpr double kSeconds = 3;
  constexpr int kMostLines = 8;  // of each answer
  const std::string name = program.substr(program.rfind('/') + 1);
  std::string text;
  for (const std::vector<std::string>& question : policy.ask_waiting) {
    std::vector<std::string> argv = {program};
    argv.insert(argv.end(), question.begin(), question.end());
    const Result<Captured> answer = capture(argv, kSeconds);
    if (!answer || answer->status != 0) continue;
    int lines = 0;
    for (const std::string_view line : split(answer->out, '\n'))
      if (!trim(line).empty() && ++lines <= kMostLines)
        text += fmt::format("hpclaunch: {}: {}\n", name, trim(line));
    if (lines > kMostLines)
      text += fmt::format("hpclaunch: {}: and {} more\n", name, lines - kMostLines);
  }
  return text;
}

}  // namespace

// Where hpclaunch is on another machine than the ranks, they may run and not reach it.
long start_limit(const Plan& plan) {
  if (plan.supervision.output.start_seconds) return *plan.supervision.output.start_seconds * 1000L;
  return plan.supervision.termination.queues || !plan.hosts.first_is_here ? kNever : kStartLimit;
}

long grace_of(const Plan& plan, bool some_started) {
  constexpr double kLateStart = 2;  // seconds for a rank to connect
  const double seconds = plan.supervision.output.grace_seconds;
  const bool queued = !some_started;
  return static_cast<long>(1000 * (queued ? std::min(seconds, kLateStart) : seconds));
}

std::string stopping_text(const Plan& plan) {
  return fmt::format(
      "hpclaunch: stopping: waiting up to {:g} s for {} to end {}; Ctrl-C again to kill\n",
      plan.supervision.output.grace_seconds, plan.launch.launcher,
      counted(plan.world_size(), "rank"));
}

void Waiting::start(const std::string& program, const std::string& where) {
  program_ = program;
  where_ = where;
  if (plan_.supervision.output.start_seconds == 0) return;
  name_at_ = clock_ms() + kStartPatience;
  if (const long limit = start_limit(plan_); limit != kNever) start_by_ = clock_ms() + limit;
}

long Waiting::deadline() const {
  long nearest = kNever;
  for (const long time : {name_at_, start_by_, held_ ? kNever : stay_until_})
    if (time != kNever && (nearest == kNever || time < nearest)) nearest = time;
  return nearest;
}

long Waiting::stayers_end_at() const {
  const std::optional<int>& seconds = plan_.supervision.output.end_seconds;
  return seconds && stay_until_ != kNever ? first_ok_ + *seconds * 1000L : kNever;
}

std::string Waiting::advance(long now, bool ending, bool held) {
  held_ = held;
  too_late_ = stay_too_long_ = false;
  return nodes(now, ending) + stayers(now, ending);
}

// MPICH's Hydra waits for ever for a node that it cannot reach, and starts no rank meanwhile.
std::string Waiting::nodes(long now, bool ending) {
  if (verdict_.begun_ranks() > started_ && name_at_ != kNever) name_at_ = now + kStartPatience;
  started_ = verdict_.begun_ranks();
  if (started_ > 0) start_by_ = kNever;
  if (started_ == plan_.world_size() || ending) name_at_ = start_by_ = kNever;
  if (start_by_ != kNever && now >= start_by_) {
    name_at_ = start_by_ = kNever;
    too_late_ = true;
    return missing(false);
  }
  if (name_at_ == kNever || now < name_at_) return {};
  name_at_ = kNever;
  return missing(true);
}

// Ranks that disagree on when the program is over wait for each other for ever.
std::string Waiting::stayers(long now, bool ending) {
  constexpr long kPatience = 60'000;  // ms
  const std::optional<int>& seconds = plan_.supervision.output.end_seconds;
  const long limit = seconds ? *seconds * 1000L : kNever;
  if (verdict_.ok() > 0 && first_ok_ == kNever) {
    first_ok_ = now;
    stay_until_ = now + (seconds ? std::min(limit, kPatience) : kPatience);
  }
  if (ending) stay_until_ = kNever;
  if (stay_until_ == kNever || now < stay_until_ || held_) return {};
  stay_too_long_ = seconds && now >= first_ok_ + limit;
  stay_until_ = seconds && !stay_too_long_ ? first_ok_ + limit : kNever;
  if (std::exchange(stay_said_, true)) return {};
  return fmt::format("hpclaunch: {} ended with 0, the first {} s ago; still running: {}\n{}",
                     counted(verdict_.ok(), "rank"), (now - first_ok_) / 1000, verdict_.running(),
                     seconds ? "" : "hpclaunch: try: --end-timeout SECONDS ends such ranks\n");
}

std::string Waiting::missing(bool whole) const {
  const std::string answer = started_ > 0 ? "" : ask(plan_.supervision.termination, program_);
  if (!whole) return answer;
  return fmt::format(
      "hpclaunch: still waiting for {}, {} s after {}: not started, or connections to {} are "
      "refused or dropped, and the job continues unsupervised there\n{}"
      "hpclaunch: try: read the launcher's messages, or run hpclaunch verify\n",
      verdict_.not_started(), kStartPatience / 1000,
      started_ > 0 ? "the last other rank" : "the start", where_, answer);
}

}  // namespace hpclaunch::sys::supervised
