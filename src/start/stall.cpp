// --stall: looks at ranks that are silent, and says who hangs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <memory>

#include "hpclaunch/scheduler.h"
#include "hpclaunch/stacks.h"
#include "hpclaunch/text.h"
#include "start/recorder.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

constexpr long kLooks = 10;          // within the limit
constexpr long kShortest = 100;      // ms between two
constexpr double kFirstLimit = 300;  // s, of --stall auto
constexpr double kTimes = 5;         // the longest silence that ended by itself
constexpr int kTreeLines = 40;
constexpr int kKilledStatus = 137;  // as a shell has it

// What stays from one look at the job to the next.
class Watch {
 public:
  Watch(const Plan& plan, std::string command)
      : Watch(plan.supervision.output, Recorder(plan), std::move(command)) {}
  Watch(const OutputOptions& output, Recorder recorder, std::string command)
      : learns_(*output.stall_seconds == kLearned),
        limit_(learns_ ? kFirstLimit : *output.stall_seconds),
        on_stall_(output.on_stall),
        command_(std::move(command)),
        stall_(limit_),
        recorder_(std::move(recorder)) {}

  long first_ms() const { return std::max(kShortest, static_cast<long>(limit_ * 1000 / kLooks)); }

  sys::StallStep look(const std::vector<sys::RankStacks>& ranks, long quiet_ms) {
    const double quiet = static_cast<double>(quiet_ms) / 1000;
    if (quiet < quiet_) {
      learn(quiet_);
      looks_ = 0;
    }
    quiet_ = quiet;
    sys::StallStep step;
    step.next_ms = first_ms();
    stacks::Snapshot now = snapshot_of(ranks);
    stacks::Sequences sequences = sequences_of(now);
    if (quiet > limit_ / 2) {  // it costs the ranks something
      for (stacks::GroupProgress& group : recorder_.read()) sequences.push_back(std::move(group));
    }
    const double time = sys::wall_clock();
    const bool stands = stall_.add(now, time, time - quiet, sequences, asked_);
    asked_ = quiet > limit_ / 2 && looks_++ % (kLooks / 2) == 0;
    if (asked_) recorder_.ask();
    if (stands) {
      const stacks::Verdict verdict = stacks::judge(before_, now, sequences, sequences_before_);
      step.say = said(verdict, now, quiet);
      step.end = !on_stall_.empty() && verdict.kind != stacks::Verdict::Kind::serving;
      step.rank = verdict.culprits.empty() ? -1 : verdict.culprits.front();
      step.record = stacks::to_json(now, &verdict);
    }
    before_ = std::move(now);
    sequences_before_ = std::move(sequences);
    return step;
  }

 private:
  void learn(double silence) {
    if (!learns_ || silence * kTimes <= limit_) return;
    limit_ = silence * kTimes;
    stall_ = stacks::Stall(limit_);
  }

  std::string said(const stacks::Verdict& verdict, const stacks::Snapshot& now,
                   double quiet) const {
    std::string text = fmt::format("no rank has moved for {:.0f} s", std::max(quiet, limit_));
    text += "\n" + stacks::text(verdict);
    text += stacks::tree_text(now, {.most_lines = kTreeLines});
    if (on_stall_.empty())
      text += fmt::format("the job continues; look again: hpclaunch stacks {}\n", command_);
    std::string marked;
    for (const std::string_view line : split(text, '\n'))
      if (!line.empty()) marked += fmt::format("hpclaunch: {}\n", line);
    return marked;
  }

  bool learns_;
  double limit_;  // s
  std::string on_stall_, command_;
  stacks::Stall stall_;
  stacks::Snapshot before_;
  stacks::Sequences sequences_before_;
  Recorder recorder_;
  double quiet_ = 0;
  long looks_ = 0;      // at a silence that is long
  bool asked_ = false;  // for dumps, at the last one
};

// Of NCCL_RAS_ADDR, "localhost:28029"; 0: it is not asked.
int ras_port(const Plan& plan) {
  const Setting* setting = plan.find_env("NCCL_RAS_ADDR");
  const auto* text = setting == nullptr ? nullptr : std::get_if<std::string>(&setting->value());
  if (text == nullptr) return 0;
  const std::string_view port = std::string_view(*text).substr(text->rfind(':') + 1);
  return static_cast<int>(parse_natural(port, 65'535).value_or(0));
}

// UNIX time; 0: unknown. `env`: of the launcher.
double job_ends_at(const Plan& plan, const EnvSnapshot& env) {
  const long long ends = plan.supervision.time_limit_signal.ends;
  return static_cast<double>(ends != 0 ? ends : find_batch(env).ends_at.value_or(0));
}

sys::LastLook last_look(const Prepared& prepared, const Unfinished& unfinished) {
  const double started = sys::wall_clock();
  const auto apart = std::make_shared<sys::Apart>();
  const auto before = std::make_shared<stacks::Snapshot>();
  const auto sequences_before = std::make_shared<stacks::Sequences>();
  return [=, &prepared](const std::vector<sys::RankStacks>& ranks, std::string_view why,
                        const sys::Ending& known) -> std::string {
    stacks::Snapshot now = snapshot_of(ranks);
    if (std::ranges::all_of(now.ranks, [](const auto& one) { return !one.missing.empty(); }))
      return "";
    stacks::Sequences sequences = sequences_of(now);
    const stacks::Verdict verdict = stacks::judge(*before, now, sequences, *sequences_before);
    sys::Ending so_far = known;
    so_far.status = kKilledStatus;
    so_far.started = started;
    so_far.stacks = fmt::format(R"({{"before": "{}", "seen": {}}})", why, to_json(now, &verdict));
    *before = std::move(now);
    *sequences_before = std::move(sequences);
    const auto write = [&] {
      unfinished({prepared.argv, so_far, sys::wall_clock(), prepared.plan.hosts.names,
                  prepared.plan.world_size()});
    };
    if (unfinished) apart->run(write);
    return so_far.stacks;
  };
}

}  // namespace

sys::Asking asking_of(const Prepared& prepared, const Unfinished& unfinished) {
  sys::Asking asking;
  asking.job_ends_at = job_ends_at(prepared.plan, prepared.env);
  asking.last_look = last_look(prepared, unfinished);
  for (const Scheduler& system : rows<Scheduler>())
    if (!system.daemon.empty()) asking.batch_daemons.emplace_back(system.daemon);
  asking.reader = prepared.shim.substr(0, prepared.shim.rfind('/') + 1) + "hpclaunch-stacks";
  asking.ras_port = ras_port(prepared.plan);
  const OutputOptions& output = prepared.plan.supervision.output;
  if (!output.stall_seconds) return asking;
  const auto watch = std::make_shared<Watch>(prepared.plan, fmt::format("{}", getpid()));
  asking.watch = sys::StallWatch{
      .first_ms = watch->first_ms(),
      .look = [watch](const auto& ranks, long quiet) { return watch->look(ranks, quiet); }};
  return asking;
}

}  // namespace hpclaunch::job
