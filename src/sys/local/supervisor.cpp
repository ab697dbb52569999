#include "sys/local/supervisor.h"

#include <fmt/format.h>
#include <sys/socket.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cmath>
#include <csignal>
#include <cstring>
#include <utility>

#include "hpclaunch/text.h"
#include "sys/descendants.h"

namespace hpclaunch::sys::local {
namespace {

constexpr int kBySignal = 128;

}  // namespace

Result<Ending> Supervisor::run() {
  oom_before_ = oom_kills();
  while (!reported_ || screen_.pending()) {
    wait_for_events();
    take_control();
    reap();
    read_ranks();
    lines_.flush(clock_ms(), pieces_);
    look();
    advance();
    if (phase_ == Phase::draining && open_pipes_ == 0 && !reported_) report();
    write_screen();
  }
  if (not_started_) return *not_started_;
  return ending_;
}

void Supervisor::wait_for_events() {
  // A full screen is back pressure: the ranks' pipes are not read until it has room.
  const bool reading = !screen_.full();
  Wait wait;
  wait.on(control_);
  wait.on(children_.fd());
  wait.on(reading ? pipes_ : -1);
  wait.on(screen_.fd(), POLLOUT);
  if (phase_ == Phase::running) {
    wait.on(readers_.fd());
    watching_.wait_for(wait);
  }
  wait.until(lines_.next_flush());
  wait.until(settle_until_);
  wait.until(end_of_grace());
  if (const long left = until_time_limit_signal(); left >= 0) wait.until(clock_ms() + left);
  if (phase_ == Phase::draining && open_pipes_ > 0 && reading) wait.until(clock_ms());
  wait.run();
}

void Supervisor::take_control() {
  std::array<unsigned char, 64> signals{};
  const ssize_t size = recv(control_, signals.data(), signals.size(), MSG_DONTWAIT);
  if (size == 0) {
    end_descendants(kKillPatience);  // the process the user started is gone
    _exit(128 + SIGKILL);
  }
  for (ssize_t i = 0; i < size; ++i)
    forward(signals[i] & ~kFromBatch, (signals[i] & kFromBatch) != 0);
}

void Supervisor::forward(int signal, bool from_batch) {
  if (signal == SIGTSTP || signal == SIGCONT) {
    // A session without a terminal ignores TSTP.
    signal_ranks(signal == SIGTSTP ? SIGSTOP : SIGCONT);
    return;
  }
  const bool ends = ends_programs(signal);
  if (phase_ >= Phase::cleanup) {
    if (!ends) return;
    if (phase_ == Phase::cleanup) kill_at_ = clock_ms();
    if (phase_ == Phase::draining) screen_.give_up();  // its reader is stuck
    return;
  }
  if (signal == SIGINT && std::exchange(int_seen_, true)) {
    facts_.killed_at_once = true;
    kill_ranks();
    return;
  }
  if (ends) ended_by(signal);
  if (ends && from_batch) facts_.batch_ends(job_.asking.job_ends_at);
  facts_.forwarded = signal;
  signal_ranks(signal);
  if (!ends) return;
  if (signal == SIGINT)
    say(fmt::format("hpclaunch: stopping: waiting up to {:g} s for {}; Ctrl-C again to kill\n",
                    job_.plan.supervision.output.grace_seconds, counted(by_pid_.size(), "rank")));
  if (kill_at_ == kNever) limit_grace();
}

void Supervisor::ended_by(int signal) {
  if (facts_.user_ends()) return;
  reap();  // what ended before
  facts_.ended_by = signal;
  facts_.ended_at = wall_clock();
  if (phase_ != Phase::settling || verdict_.first_failure(facts_) != nullptr) return;
  phase_ = Phase::running;  // it was the same signal
  settle_until_ = kNever;
}

void Supervisor::reap() {
  children_.discard();
  const double now = wall_clock();
  childless_ = reap_ended(0, [&](const siginfo_t& info, long peak_kib) {
    readers_.reaped(info.si_pid);
    const auto found = by_pid_.find(info.si_pid);
    if (found == by_pid_.end()) return;
    RankExit end = exit_of(info);
    end.rank = found->second;
    end.seconds = now;
    end.peak_kib = peak_kib;
    if (end.failed()) end.oom_kills = std::max(0, oom_kills() - oom_before_);
    if (phase_ == Phase::stopping || phase_ == Phase::killed)
      end.sent = phase_ == Phase::killed && end.signal == SIGKILL ? SIGKILL : SIGTERM;
    by_pid_.erase(found);  // reaped: another process may get the number
    note(end);
  });
  const RankExit* first = verdict_.first_failure(facts_);
  if (first == nullptr || phase_ > Phase::settling) return;
  if (phase_ == Phase::running) settle_until_ = clock_ms() + kSettle;
  phase_ = Phase::settling;
  if (is_crash(*first)) stop_ranks();
}

void Supervisor::note(const RankExit& end) {
  if (const int error = at(end.rank).start.error; error == 0) {
    verdict_.ended(end, "");
    watching_.questions().lose(end.rank);
  } else {
    if (!not_started_) not_started_ = exec_error(job_.argv[0], error);
    if (phase_ < Phase::killed) kill_ranks();
  }
}

void Supervisor::write_screen() {
  screen_.add(std::move(pieces_));
  screen_.pump();
  if (const int error = screen_.take_error()) {
    output_lost_ = true;
    say(fmt::format("hpclaunch: cannot write the ranks' output: {}; the job continues\n",
                    std::strerror(error)));
  }
  // As SIGPIPE does to a program whose reader has exited.
  if (screen_.reader_gone() && phase_ < Phase::stopping) {
    ended_by(SIGPIPE);
    stop_ranks();
  }
}

// Milliseconds, at most a minute, so that a change of the wall clock has its effect; -1: none to come.
long Supervisor::until_time_limit_signal() const {
  if (job_.plan.supervision.time_limit_signal.signal == 0 || time_limit_signal_sent_ ||
      phase_ != Phase::running)
    return -1;
  const double left =
      static_cast<double>(job_.plan.supervision.time_limit_signal.at) - wall_clock();
  return static_cast<long>(std::ceil(std::clamp(left, 0.0, 60.0) * 1000));
}

void Supervisor::send_time_limit_signal() {
  if (until_time_limit_signal() != 0) return;
  time_limit_signal_sent_ = true;
  facts_.forwarded = job_.plan.supervision.time_limit_signal.signal;
  signal_ranks(job_.plan.supervision.time_limit_signal.signal);
}

void Supervisor::look() {
  if (phase_ != Phase::running) return;
  readers_.turn();
  if (facts_.user_ends()) {
    watching_.ends(kill_at_, kBeforeKill, facts_.time_limit ? kTimeLimit : "kill");
  }
  if (const std::string text = watching_.turn(facts_); !text.empty()) say(text);
  if (facts_.stalled && facts_.stopped_at == 0) stop_ranks();
}

void Supervisor::advance() {
  const long now = clock_ms();
  send_time_limit_signal();
  if (phase_ == Phase::settling && now >= settle_until_) stop_ranks();
  if (phase_ < Phase::killed && end_of_grace() != kNever && now >= kill_at_) kill_ranks();
  if (phase_ < Phase::cleanup && by_pid_.empty()) {
    settle_until_ = kNever;
    phase_ = Phase::cleanup;
    kill_at_ = now + kCleanupGrace;
    readers_.stop();
    if (!childless_) signal_children(SIGTERM);
  }
  const bool unkillable = phase_ == Phase::killed && now >= kill_at_;
  if (unkillable || (phase_ == Phase::cleanup && !childless_ && now >= kill_at_)) {
    clean_ = end_descendants(unkillable ? 0 : kKillPatience, readers_.alive());
    childless_ = true;
  }
  if (unkillable || (phase_ == Phase::cleanup && childless_)) {
    phase_ = Phase::draining;
    kill_at_ = kNever;
  }
}

void Supervisor::signal_ranks(int signal) {
  for (const auto& [pid, rank] : by_pid_) {
    if (kill(-pid, signal) != 0) kill(pid, signal);  // no session of its own yet
  }
}

void Supervisor::limit_grace() {
  const long limit =
      clock_ms() + static_cast<long>(job_.plan.supervision.output.grace_seconds * 1000);
  kill_at_ = kill_at_ == kNever ? limit : std::min(kill_at_, limit);
}

void Supervisor::stop_ranks() {
  settle_until_ = kNever;
  phase_ = Phase::stopping;
  if (facts_.stopped_at == 0) facts_.stopped_at = wall_clock();
  signal_ranks(SIGTERM);
  signal_ranks(SIGCONT);  // a stopped one would not get TERM
  limit_grace();
}

void Supervisor::kill_ranks() {
  settle_until_ = kNever;
  phase_ = Phase::killed;
  signal_ranks(SIGKILL);
  kill_at_ = clock_ms() + static_cast<long>(kKillPatience * 1000);
}

void Supervisor::say(const std::string& text) {
  lines_.end_open_line(Stream::err, pieces_);
  add(pieces_, Stream::err, text);
}

void Supervisor::report() {
  reported_ = true;
  lines_.end_open_line(Stream::err, pieces_);
  if (!clean_) add(pieces_, Stream::err, kUnkillable);
  if (not_started_) return;
  if (const RankExit* first = verdict_.first_failure(facts_))
    verdict_.last_output(first->rank, at(first->rank).tail.bytes());
  Summary summary = verdict_.summary(RankExit(), facts_);
  add(pieces_, Stream::err, summary.report);
  ending_ = std::move(summary.ending);
  ending_.launcher_exit.reset();
  if (ending_.status != 0) return;
  ending_.status = screen_.reader_gone() ? kBySignal + SIGPIPE
                   : !clean_             ? kBySignal + SIGKILL
                   : output_lost_        ? kOutputLostStatus
                                         : 0;
}

Result<Ending> supervise(const Job& job, int control) {
  Supervisor supervisor(job, control);
  if (const Status status = supervisor.start(); !status) return status.error();
  return supervisor.run();
}

}  // namespace hpclaunch::sys::local
