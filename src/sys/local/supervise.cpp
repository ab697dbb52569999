#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>
#include <ctime>
#include <utility>

#include "sys/local/supervisor.h"
#include "sys/local/sweep.h"

namespace hpclaunch::sys::local {
namespace {

constexpr long kSettle = 50;           // ms in which a crash still explains an exit seen before it
constexpr long kLeftoverGrace = 2000;  // ms between TERM and KILL for what the ranks leave behind
constexpr std::size_t kLastLines = 10;

}  // namespace

Result<Outcome> Supervisor::run() {
  while (!reported_ || screen_.pending()) {
    wait_for_something();
    take_control();
    reap();
    read_ranks();
    lines_.flush(clock_ms(), pieces_);
    advance();
    if (phase_ == Phase::draining && open_pipes_ == 0 && !reported_) report();
    write_screen();
  }
  if (not_started_) return *not_started_;
  return Outcome{ending(), clean_};
}

void Supervisor::wait_for_something() {
  long until = lines_.next_flush();
  for (const long deadline : {settle_until_, kill_at_}) {
    if (deadline >= 0) until = until < 0 ? deadline : std::min(until, deadline);
  }
  if (const long notice = until_notice(); notice >= 0) {
    until = until < 0 ? clock_ms() + notice : std::min(until, clock_ms() + notice);
  }
  long timeout = until < 0 ? -1 : std::clamp(until - clock_ms(), 0L, 60'000L);
  if (phase_ == Phase::draining && open_pipes_ > 0 && !screen_.full()) timeout = 0;
  // A full screen is the ranks' back pressure: their pipes are left alone until it is read.
  std::array<pollfd, 4> wanted = {{{control_, POLLIN, 0},
                                   {children_, POLLIN, 0},
                                   {screen_.full() ? -1 : pipes_, POLLIN, 0},
                                   {screen_.fd(), POLLOUT, 0}}};
  poll(wanted.data(), wanted.size(), static_cast<int>(timeout));
}

void Supervisor::take_control() {
  std::array<unsigned char, 64> signals{};
  const ssize_t size = recv(control_, signals.data(), signals.size(), MSG_DONTWAIT);
  if (size == 0) {
    end_children(kHopeless);  // the process the user started is gone: nothing may stay
    _exit(128 + SIGKILL);
  }
  for (ssize_t i = 0; i < size; ++i) pass_on(signals[static_cast<std::size_t>(i)]);
}

void Supervisor::pass_on(int signal) {
  if (signal == SIGTSTP || signal == SIGCONT) {
    // A session without a terminal ignores TSTP.
    signal_ranks(signal == SIGTSTP ? SIGSTOP : SIGCONT);
    return;
  }
  const bool ends = signal != SIGUSR1 && signal != SIGUSR2;
  if (phase_ >= Phase::conflicting) {
    if (!ends) return;
    if (phase_ == Phase::conflicting) kill_at_ = clock_ms();
    if (phase_ == Phase::draining) screen_.give_up();  // nobody reads our output: let go
    return;
  }
  if (signal == SIGINT && std::exchange(int_seen_, true)) {
    kill_ranks();
    return;
  }
  passed_on_ = signal;
  signal_ranks(signal);
  if (!ends) return;
  interrupted_ = true;
  const long limit = clock_ms() + static_cast<long>(job_.output.grace_seconds * 1000);
  if (kill_at_ < 0) kill_at_ = limit;
}

void Supervisor::reap() {
  signalfd_siginfo seen;
  while (read(children_, &seen, sizeof seen) > 0) continue;
  std::vector<Death> deaths;
  siginfo_t info{};
  int result = 0;
  while ((result = waitid(P_ALL, 0, &info, WEXITED | WNOHANG)) == 0 && info.si_pid != 0) {
    const auto found = by_pid_.find(info.si_pid);
    if (found != by_pid_.end()) {
      Death death;
      death.rank = found->second;
      death.pid = info.si_pid;
      (info.si_code == CLD_EXITED ? death.exit_status : death.signal) = info.si_status;
      death.core = info.si_code == CLD_DUMPED;
      death.seconds = static_cast<double>(clock_ms() - started_) / 1000;
      deaths.push_back(death);
      by_pid_.erase(found);  // from here on the number may be a stranger's
    }
    info = {};
  }
  childless_ = result != 0;  // ECHILD: nothing else can be wrong with this call
  std::sort(deaths.begin(), deaths.end(), explains_better);
  for (const Death& death : deaths) note(death);
}

void Supervisor::note(Death death) {
  ranks_[static_cast<std::size_t>(death.rank)].alive = false;
  --alive_;
  if (const int error = ranks_[static_cast<std::size_t>(death.rank)].start.error; error != 0) {
    if (!not_started_) not_started_ = start_error(error);
    if (phase_ < Phase::killed) kill_ranks();
    return;
  }
  if (phase_ == Phase::ending || phase_ == Phase::killed) {
    if (first_ || !interrupted_) {
      ++ended_;
      return;
    }
  }
  if (!death.failed()) {
    ++ok_;
    return;
  }
  if (!first_) {
    first_ = death;
    if (interrupted_ || phase_ != Phase::running) return;
    phase_ = Phase::settling;
    settle_until_ = clock_ms() + kSettle;
  } else {
    ++also_failed_;
    if (phase_ == Phase::settling && is_crash(death) && !is_crash(*first_)) first_ = death;
  }
  if (phase_ == Phase::settling && is_crash(*first_)) begin_end();
}

void Supervisor::write_screen() {
  screen_.add(std::move(pieces_));
  pieces_.clear();
  screen_.pump();
  if (const int error = screen_.take_error()) {
    say(fmt::format("hpclaunch: cannot write the ranks' output: {}; the job goes on\n",
                    std::strerror(error)));
  }
  // What SIGPIPE does to a program whose reader has left.
  if (screen_.reader_gone() && phase_ < Phase::ending) begin_end();
}

// Milliseconds until the notice; -1 when there is none to come. Of the wall clock: a minute at most is
// slept, so that a clock that is set has its effect.
long Supervisor::until_notice() const {
  if (job_.notice.signal == 0 || notice_sent_ || phase_ != Phase::running) return -1;
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  const long long left = (job_.notice.at - now.tv_sec) * 1000 - now.tv_nsec / 1'000'000;
  return static_cast<long>(std::clamp(left, 0LL, 60'000LL));
}

void Supervisor::send_notice() {
  if (until_notice() != 0) return;
  notice_sent_ = true;
  passed_on_ = job_.notice.signal;
  signal_ranks(job_.notice.signal);
}

void Supervisor::advance() {
  const long now = clock_ms();
  send_notice();
  if (phase_ == Phase::settling && now >= settle_until_) begin_end();
  if (phase_ < Phase::killed && kill_at_ >= 0 && now >= kill_at_) kill_ranks();
  if (phase_ < Phase::conflicting && alive_ == 0) {
    settle_until_ = -1;
    phase_ = Phase::conflicting;
    kill_at_ = now + kLeftoverGrace;
    if (!childless_) signal_children(SIGTERM);
  }
  const bool hopeless = phase_ == Phase::killed && now >= kill_at_;
  if (hopeless || (phase_ == Phase::conflicting && !childless_ && now >= kill_at_)) {
    clean_ = end_children(hopeless ? 0 : kHopeless);
    childless_ = true;
  }
  if (hopeless || (phase_ == Phase::conflicting && childless_)) {
    phase_ = Phase::draining;
    kill_at_ = -1;
  }
}

void Supervisor::report() {
  reported_ = true;
  lines_.end_open_line(Stream::err, pieces_);
  if (!clean_) {
    add(pieces_, Stream::err,
        "hpclaunch: some processes do not end although they were killed (ps shows state D)\n");
  }
  if (first_ && !not_started_) add(pieces_, Stream::err, failure_report(story()));
}

void Supervisor::signal_ranks(int signal) {
  for (const auto& [pid, rank] : by_pid_) {
    if (kill(-pid, signal) != 0) kill(pid, signal);  // no session of its own yet
  }
}

void Supervisor::begin_end() {
  settle_until_ = -1;
  phase_ = Phase::ending;
  signal_ranks(SIGTERM);
  signal_ranks(SIGCONT);  // one that was stopped would not see it
  const long limit = clock_ms() + static_cast<long>(job_.output.grace_seconds * 1000);
  kill_at_ = kill_at_ < 0 ? limit : std::min(kill_at_, limit);
}

void Supervisor::kill_ranks() {
  settle_until_ = -1;
  phase_ = Phase::killed;
  signal_ranks(SIGKILL);
  kill_at_ = clock_ms() + static_cast<long>(kHopeless * 1000);
}

void Supervisor::say(const std::string& text) {
  lines_.end_open_line(Stream::err, pieces_);
  add(pieces_, Stream::err, text);
}

Story Supervisor::story() const {
  const Rank& rank = ranks_[static_cast<std::size_t>(first_->rank)];
  Story story;
  story.host = job_.host;
  story.ranks = job_.ranks;
  story.first = *first_;
  story.also_failed = also_failed_;
  story.ended = ended_;
  if (interrupted_ || (passed_on_ != 0 && first_->signal == passed_on_)) {
    story.passed_on = passed_on_;
  }
  // With one rank its last lines stand right above; a signal from the user needs no evidence.
  const bool obvious = job_.ranks == 1 || (story.passed_on != 0 && !is_crash(*first_));
  if (!obvious) story.last_lines = rank.tail.lines(kLastLines);
  if (!job_.logs.paths.empty()) {
    story.log = job_.logs.paths[static_cast<std::size_t>(first_->rank)];
  }
  return story;
}

int Supervisor::exit_status() const {
  if (first_) return first_->status();
  return screen_.reader_gone() ? 128 + SIGPIPE : clean_ ? 0 : 128 + SIGKILL;
}

Ending Supervisor::ending() const {
  Ending ending;
  ending.status = exit_status();
  ending.ok = ok_;
  ending.failed = first_ ? also_failed_ + 1 : 0;
  ending.ended = ended_;
  ending.passed_on = passed_on_;
  if (!first_) return ending;
  RankFailure& first = ending.first.emplace();
  first.rank = first.local_rank = first_->rank;
  first.host = job_.host;
  first.pid = first_->pid;
  first.exit_status = first_->exit_status;
  first.signal = first_->signal;
  first.core = first_->core;
  first.seconds = first_->seconds;
  first.last_lines = ranks_[static_cast<std::size_t>(first_->rank)].tail.lines(kLastLines);
  return ending;
}

Result<Outcome> supervise(const Job& job, int control) {
  Supervisor supervisor(job, control);
  if (const Status status = supervisor.start(); !status) return status.error();
  return supervisor.run();
}

}  // namespace hpclaunch::sys::local
