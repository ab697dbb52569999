#include "sys/watching.h"

#include <string_view>
#include <utility>

#include "hpclaunch/progress.h"

namespace hpclaunch::sys {
namespace {

// Why its program cannot be asked; "": it can.
std::string_view silence_of(const Verdict& verdict, int rank) {
  if (verdict.has_ended(rank)) return stacks::kEnded;
  if (verdict.is_gone(rank)) return stacks::kNoAnswer;
  return verdict.has_begun(rank) ? "" : stacks::kNotStarted;
}

}  // namespace

Watching::Watching(const Verdict& verdict, const Asking& asking, int pid,
                   std::function<void(int number, bool all_threads)> ask)
    : questions_({.count = verdict.ranks(),
                  .host = [&](int rank) { return verdict.host_of(rank); },
                  .missing = [&](int rank) { return std::string(silence_of(verdict, rank)); },
                  .ask = std::move(ask)}),
      watch_(asking.watch),
      quiet_since_(clock_ms()) {
  questions_.listen(pid);
  if (watch_) look_at_ = quiet_since_ + watch_->first_ms;
}

void Watching::wait_for(Wait& wait) const {
  wait.on(questions_.fd());
  wait.until(questions_.deadline());
  if (!looking_) wait.until(look_at_);
}

std::string Watching::turn(JobFacts& facts) {
  questions_.turn();
  if (auto step = std::exchange(step_, std::nullopt)) {
    if (step->end && facts.stopped_at == 0 && !facts.user_ends()) {
      facts.stalled = true;
      facts.stalled_rank = step->rank;
    }
    if (!step->record.empty()) facts.stall = std::move(step->record);
    return step->say;
  }
  const long now = clock_ms();
  if (looking_ || look_at_ == kNever || now < look_at_) return {};
  look_at_ = quiet_since_ + watch_->first_ms;  // something may have been written since it was set
  if (now < look_at_) return {};
  looking_ = true;
  questions_.ask(false, [this](const std::vector<RankStacks>& ranks) { look(ranks); });
  return {};
}

void Watching::look(const std::vector<RankStacks>& ranks) {
  looking_ = false;
  const long now = clock_ms();
  step_ = watch_->look(ranks, now - quiet_since_);
  look_at_ = step_->next_ms > 0 ? now + step_->next_ms : kNever;
}

}  // namespace hpclaunch::sys
