#include "sys/supervised/waiting.h"

#include <fmt/format.h>

#include <algorithm>

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

long start_limit(const Plan& plan) {
  if (plan.supervision.output.start_seconds) return *plan.supervision.output.start_seconds * 1000L;
  return plan.supervision.termination.queues ? kNever : kStartLimit;
}

long grace_of(const Plan& plan, bool some_started) {
  constexpr double kLateRecords = 2;  // seconds that a rank's first record may take
  const double seconds = plan.supervision.output.grace_seconds;
  const bool queued = plan.supervision.termination.queues && !some_started;
  return static_cast<long>(1000 * (queued ? std::min(seconds, kLateRecords) : seconds));
}

std::string stopping_text(const Plan& plan) {
  return fmt::format(
      "hpclaunch: stopping: waiting up to {:g} s for {} to end {}; Ctrl-C again to kill\n",
      plan.supervision.output.grace_seconds, plan.launch.launcher,
      counted(plan.world_size(), "rank"));
}

std::string Waiting::text(bool whole, bool& said) const {
  const std::string answer = some_started ? "" : ask(plan.supervision.termination, program);
  said = said || !answer.empty();
  if (!whole) return answer;
  return fmt::format("hpclaunch: still waiting for {}, {} s after {}\n{}hpclaunch: try: {}\n", who,
                     kStartPatience / 1000, some_started ? "the last other node" : "the start",
                     answer,
                     said ? "read the launcher's messages above, or run hpclaunch verify"
                          : "run hpclaunch verify");
}

}  // namespace hpclaunch::sys::supervised
