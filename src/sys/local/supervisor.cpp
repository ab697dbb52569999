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

constexpr std::size_t kLastLines = 10;
constexpr int kBySignal = 128;

}  // namespace

Result<Ending> Supervisor::run() {
  while (!reported_ || screen_.pending()) {
    wait_for_events();
    take_control();
    reap();
    read_ranks();
    lines_.flush(clock_ms(), pieces_);
    advance();
    if (phase_ == Phase::draining && open_pipes_ == 0 && !reported_) report();
    write_screen();
  }
  if (not_started_) return *not_started_;
  return ending();
}

void Supervisor::wait_for_events() {
  // A full screen is back pressure: the ranks' pipes are not read until it has room.
  const bool reading = !screen_.full();
  Wait wait;
  wait.on(control_);
  wait.on(children_.fd());
  wait.on(reading ? pipes_ : -1);
  wait.on(screen_.fd(), POLLOUT);
  wait.until(lines_.next_flush());
  wait.until(settle_until_);
  wait.until(kill_at_);
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
  for (ssize_t i = 0; i < size; ++i) forward(signals[i]);
}

void Supervisor::forward(int signal) {
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
    killed_at_once_ = true;
    kill_ranks();
    return;
  }
  if (ends && !interrupted()) interrupt(signal);
  counts_.passed_on = signal;
  signal_ranks(signal);
  if (!ends) return;
  if (signal == SIGINT)
    say(fmt::format("hpclaunch: stopping: waiting up to {:g} s for {}; Ctrl-C again to kill\n",
                    job_.plan.supervision.output.grace_seconds, counted(by_pid_.size(), "rank")));
  if (kill_at_ == kNever) limit_grace();
}

// What ends from now on does so because the user ends the job. Who signals all processes of a job reaches some of them
// before us.
void Supervisor::interrupt(int signal) {
  reap();
  counts_.interrupted_by = signal;
  if (phase_ != Phase::settling || first_->status() != kBySignal + signal) return;
  phase_ = Phase::running;
  settle_until_ = kNever;
  counts_.ended += std::exchange(counts_.failed, 0);
  first_.reset();
}

void Supervisor::reap() {
  children_.discard();
  std::vector<RankExit> ends;
  childless_ = reap_ended(0, [&](const siginfo_t& info) {
    const auto found = by_pid_.find(info.si_pid);
    if (found == by_pid_.end()) return;
    RankExit& end = ends.emplace_back(exit_of(info));
    end.rank = found->second;
    end.seconds = static_cast<double>(clock_ms() - started_) / 1000;
    by_pid_.erase(found);  // reaped: another process may get the number
  });
  std::sort(ends.begin(), ends.end(), explains_better);
  for (const RankExit& end : ends) note(end);
}

void Supervisor::note(const RankExit& end) {
  if (const int error = ranks_[end.rank].start.error; error != 0) {
    if (!not_started_) not_started_ = exec_error(job_.argv[0], error);
    if (phase_ < Phase::killed) kill_ranks();
    return;
  }
  const bool by_us = phase_ == Phase::stopping || phase_ == Phase::killed;
  if (interrupted() ? end.failed() || (by_us && first_) : by_us) {
    ++counts_.ended;
    killed_ += phase_ == Phase::killed && end.signal == SIGKILL ? 1 : 0;
    if (interrupted() && is_fault(end) && !std::exchange(late_crash_said_, true))
      say(late_crash_text(end, nullptr));
    return;
  }
  ++(end.failed() ? counts_.failed : counts_.ok);
  if (!end.failed()) return;
  if (!first_) {
    first_ = end;
    if (phase_ != Phase::running) return;
    phase_ = Phase::settling;
    settle_until_ = clock_ms() + kSettle;
  } else if (phase_ == Phase::settling && is_crash(end) && !is_crash(*first_)) {
    first_ = end;
  }
  if (phase_ == Phase::settling && is_crash(*first_)) stop_ranks();
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
  if (screen_.reader_gone() && phase_ < Phase::stopping) stop_ranks();
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
  counts_.passed_on = job_.plan.supervision.time_limit_signal.signal;
  signal_ranks(job_.plan.supervision.time_limit_signal.signal);
}

void Supervisor::advance() {
  const long now = clock_ms();
  send_time_limit_signal();
  if (phase_ == Phase::settling && now >= settle_until_) stop_ranks();
  if (phase_ < Phase::killed && kill_at_ != kNever && now >= kill_at_) kill_ranks();
  if (phase_ < Phase::cleanup && by_pid_.empty()) {
    settle_until_ = kNever;
    phase_ = Phase::cleanup;
    kill_at_ = now + kCleanupGrace;
    if (!childless_) signal_children(SIGTERM);
  }
  const bool unkillable = phase_ == Phase::killed && now >= kill_at_;
  if (unkillable || (phase_ == Phase::cleanup && !childless_ && now >= kill_at_)) {
    clean_ = end_descendants(unkillable ? 0 : kKillPatience);
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
  if (!first_ && interrupted() && counts_.ended > 0) {
    const double grace = job_.plan.supervision.output.grace_seconds;
    const std::string then =
        killed_ == 0 ? "no rank failed before"
        : killed_at_once_
            ? fmt::format("killed {}", counted(killed_, "rank"))
            : fmt::format("killed {} that still ran {:g} s later", counted(killed_, "rank"), grace);
    add(pieces_, Stream::err,
        fmt::format("hpclaunch: {}; {}\n", forwarded_text(counts_.interrupted_by), then));
  }
  if (!first_) return;
  const Ending end = ending();
  const int sent = interrupted()                     ? end.interrupted_by
                   : first_->signal == end.passed_on ? end.passed_on
                                                     : 0;
  const std::vector<std::string>& logs = job_.logs.paths;
  add(pieces_, Stream::err,
      failure_report(end, job_.plan.world_size(), sent, "hpclaunch",
                     logs.empty() ? "" : logs[first_->rank]));
}

Ending Supervisor::ending() const {
  Ending ending = counts_;
  ending.status = first_                               ? first_->status()
                  : interrupted() && counts_.ended > 0 ? kBySignal + counts_.interrupted_by
                  : screen_.reader_gone()              ? kBySignal + SIGPIPE
                  : !clean_                            ? kBySignal + SIGKILL
                  : output_lost_                       ? kOutputLostStatus
                                                       : 0;
  if (!first_) return ending;
  RankFailure& first = ending.first.emplace();
  static_cast<RankExit&>(first) = *first_;
  first.local_rank = first.rank;
  first.host = job_.plan.hosts.names.front();
  first.last_lines = ranks_[first.rank].tail.lines(kLastLines);
  return ending;
}

Result<Ending> supervise(const Job& job, int control) {
  Supervisor supervisor(job, control);
  if (const Status status = supervisor.start(); !status) return status.error();
  return supervisor.run();
}

}  // namespace hpclaunch::sys::local
