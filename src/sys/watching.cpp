#include "sys/watching.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <string_view>
#include <utility>

#include "hpclaunch/progress.h"
#include "hpclaunch/text.h"

namespace hpclaunch::sys {
namespace {

// Why its program cannot be asked; "": it can.
std::string_view silence_of(const Verdict& verdict, int rank) {
  if (!verdict.is_ours(rank)) return stacks::kElsewhere;
  if (verdict.has_ended(rank)) return stacks::kEnded;
  if (verdict.is_gone(rank)) return stacks::kNoAnswer;
  return verdict.has_begun(rank) ? "" : stacks::kNotStarted;
}

}  // namespace

bool is_batch_system(const signalfd_siginfo& seen, const Asking& asking) {
  if (seen.ssi_code == SI_KERNEL) return false;
  if (seen.ssi_uid != geteuid()) return true;
  const Result<std::string> name = read_file(fmt::format("/proc/{}/comm", seen.ssi_pid));
  return name && std::ranges::count(asking.batch_daemons, std::string(trim(*name))) > 0;
}

Watching::Watching(const Verdict& verdict, const Asking& asking, int pid,
                   std::function<void(int number, bool all_threads)> ask)
    : questions_({.count = verdict.ranks(),
                  .host = [&](int rank) { return verdict.host_of(rank); },
                  .missing = [&](int rank) { return std::string(silence_of(verdict, rank)); },
                  .ask = std::move(ask)}),
      verdict_(verdict),
      asking_(asking),
      quiet_since_(clock_ms()) {
  questions_.listen(pid);
  if (asking_.watch) look_at_ = quiet_since_ + asking_.watch->first_ms;
  if (asking_.job_ends_at > 0)
    ends(quiet_since_ + static_cast<long>((asking_.job_ends_at - wall_clock()) * 1000),
         kBeforeTimeLimit, kTimeLimit);
}

void Watching::wait_for(Wait& wait) const {
  wait.on(questions_.fd());
  wait.until(questions_.deadline());
  if (!looking_) wait.until(look_at_);
  if (!last_runs_) wait.until(last_at_);
}

void Watching::ends(long at, long lead, const char* why) {
  constexpr long kLeast = 1000;  // ms, in which ranks answer
  const long now = clock_ms();
  if (!asking_.last_look || at == kNever || at < now + kLeast) return;
  if (!last_.empty() && last_for_ == why) return;
  const long look = at - std::min(lead, (at - now) / 2);
  if (last_runs_ || (last_at_ != kNever && look >= last_at_)) return;
  last_at_ = look;
  ends_at_ = at;
  why_ = why;
}

std::string Watching::turn(JobFacts& facts) {
  facts_ = &facts;
  questions_.turn();
  drop_last(clock_ms());
  if (std::exchange(news_, false)) facts.stacks = last_;
  if (auto step = std::exchange(step_, std::nullopt)) {
    if (step->end && facts.stopped_at == 0 && !facts.user_ends()) {
      facts.stalled = true;
      facts.stalled_rank = step->rank;
    }
    if (!step->record.empty()) facts.stall = std::move(step->record);
    return step->say;
  }
  const long now = clock_ms();
  if (!last_runs_ && last_at_ != kNever && now >= last_at_) {
    last_at_ = kNever;
    last_runs_ = true;
    if (last_for_ != why_) last_.clear();
    questions_.ask(false, [this](const std::vector<RankStacks>& ranks) { last_look(ranks); });
  }
  if (looking_ || look_at_ == kNever || now < look_at_) return {};
  // Something may have been written since it was set.
  look_at_ = quiet_since_ + asking_.watch->first_ms;
  if (now < look_at_) return {};
  looking_ = true;
  questions_.ask(false, [this](const std::vector<RankStacks>& ranks) { look(ranks); });
  return {};
}

void Watching::look(const std::vector<RankStacks>& ranks) {
  looking_ = false;
  const long now = clock_ms();
  step_ = asking_.watch->look(ranks, now - quiet_since_);
  look_at_ = step_->next_ms > 0 ? now + step_->next_ms : kNever;
}

// The job goes on: what was seen before is not what it does at its end. Batch systems may be late by a minute.
void Watching::drop_last(long now) {
  constexpr long kLate = 90'000;  // ms
  if (last_.empty() || last_for_ != kTimeLimit || now < ends_at_ + kLate || facts_->user_ends())
    return;
  last_.clear();
  news_ = true;
}

// The second one shows who moves.
void Watching::last_look(const std::vector<RankStacks>& ranks) {
  constexpr long kBetween = 1000;  // ms
  last_runs_ = false;
  const bool first = last_.empty();
  Ending so_far = verdict_.summary(RankExit(), *facts_).ending;
  so_far.launcher_exit.reset();  // it runs
  std::string found = asking_.last_look(ranks, why_, so_far);
  if (!found.empty()) last_ = std::move(found);
  last_for_ = why_;
  news_ = true;
  if (last_.empty()) return ends(ends_at_, kBeforeKill, why_);  // none runs yet
  if (const long again = clock_ms() + kBetween; first && again < ends_at_) last_at_ = again;
}

}  // namespace hpclaunch::sys
