#include "sys/supervised/watch.h"

#include <fmt/format.h>
#include <poll.h>
#include <sys/signalfd.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "sys/local/report.h"
#include "sys/local/sweep.h"

namespace hpclaunch::sys::supervised {
namespace {

using local::clock_ms;

constexpr long kBeginPatience = 30'000;  // ms for the next node, once one has begun
constexpr long kSettle = 50;  // ms, for the records of ranks that failed at the same time
constexpr long kLeftoverGrace =
    2000;  // ms between TERM and KILL for what the launcher leaves behind

bool ends_programs(int signal) {
  return signal == SIGINT || signal == SIGTERM || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace

Watch::Watch(const Plan& plan, const Setting& setting, Child child, double started)
    : plan_(plan),
      setting_(setting),
      child_(child),
      ledger_(plan),
      splitter_({plan.world_size(), plan.nodes()}) {
  facts_.started = started;
  facts_.notice = plan.time_limit_signal;
}

Ending Watch::run() {
  while (phase_ != Phase::reported || screen_.pending()) {
    wait_for_something();
    take_signals();
    reap();
    read_errors();
    Splitter::Sink late;
    splitter_.flush(clock_ms(), late);
    take(late);
    advance();
    write_screen();
  }
  close(child_.errors);
  return ending_;
}

void Watch::wait_for_something() {
  long until = splitter_.next_flush();
  for (const long deadline : {settle_until_, end_at_, begin_by_}) {
    if (deadline >= 0) until = until < 0 ? deadline : std::min(until, deadline);
  }
  long timeout = until < 0 ? -1 : std::clamp(until - clock_ms(), 0L, 60'000L);
  const bool reading = !drained_ && !screen_.full();
  if (phase_ == Phase::draining && !screen_.full()) timeout = 0;
  // A full screen is the launcher's back pressure: its pipe is left alone until it is read.
  std::array<pollfd, 3> wanted = {{{setting_.signals, POLLIN, 0},
                                   {reading ? child_.errors : -1, POLLIN, 0},
                                   {screen_.fd(), POLLOUT, 0}}};
  poll(wanted.data(), wanted.size(), static_cast<int>(timeout));
}

void Watch::take_signals() {
  signalfd_siginfo seen;
  while (read(setting_.signals, &seen, sizeof seen) == static_cast<ssize_t>(sizeof seen)) {
    const auto signal = static_cast<int>(seen.ssi_signo);
    if (signal != SIGCHLD) pass_on(signal, seen.ssi_code == SI_KERNEL);
  }
}

void Watch::signal_launcher(int signal) {
  if (launcher_ || signal == 0) return;  // reaped: the number may be a stranger's
  kill(child_.pid, signal);
}

void Watch::pass_on(int signal, bool from_terminal) {
  const bool has_it = from_terminal && setting_.shares_group;
  if (signal == SIGTSTP) {
    if (!has_it) signal_launcher(SIGTSTP);
    raise(SIGSTOP);
    signal_launcher(SIGCONT);
    return;
  }
  if (signal == SIGCONT) {
    signal_launcher(SIGCONT);
    return;
  }
  if (phase_ != Phase::running) {
    if (!ends_programs(signal)) return;
    if (phase_ == Phase::conflicting) end_at_ = clock_ms();
    if (phase_ >= Phase::draining) screen_.give_up();  // nobody reads our output: let go
    return;
  }
  facts_.passed_on = signal;
  if (ends_programs(signal)) facts_.user_ends = true;
  if (signal == SIGINT && std::exchange(int_seen_, true)) {
    if (steps_ == 0) next_step(clock_ms());
    return;
  }
  const int sent = plan_.termination.sent_for(signal);
  if (sent == 0) {
    facts_.passed_on = 0;
    say(fmt::format("hpclaunch: {} would end {} itself; it was not passed on\n",
                    local::signal_name(signal), plan_.launcher));
  } else if (!has_it) {
    signal_launcher(sent);
  }
  if (!ends_programs(signal) || end_at_ >= 0) return;
  end_at_ = clock_ms() + static_cast<long>(plan_.output.grace_seconds * 1000);
}

// Whatever has come to us because its parent died is reaped as well.
void Watch::reap() {
  siginfo_t info{};
  const idtype_t which = setting_.alone ? P_ALL : P_PID;
  int result = 0;
  while ((result = waitid(which, static_cast<id_t>(child_.pid), &info, WEXITED | WNOHANG)) == 0 &&
         info.si_pid != 0) {
    if (info.si_pid == child_.pid) {
      LauncherEnd end;
      (info.si_code == CLD_EXITED ? end.exit_status : end.signal) = info.si_status;
      launcher_ = end;
    }
    info = {};
  }
  childless_ = result != 0 && errno == ECHILD;
}

void Watch::read_errors() {
  static std::array<char, 64 * 1024> buffer;
  while (!drained_ && !screen_.full()) {
    const ssize_t size = read(child_.errors, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    // Once nothing lives, what still holds the pipe is not ours to wait for.
    if (size < 0 && phase_ != Phase::draining) return;
    Splitter::Sink sink;
    if (size <= 0) {
      drained_ = true;
      splitter_.finish(sink);
    } else {
      splitter_.feed({buffer.data(), static_cast<std::size_t>(size)}, clock_ms(), sink);
    }
    take(sink);
    write_screen();
  }
}

void Watch::take(Splitter::Sink& sink) {
  local::add(pieces_, local::Stream::err, sink.text);
  for (const Record& record : sink.records) {
    if (!ledger_.add(record, facts_.started, wall_clock())) say(record.line + '\n');
  }
  sink = {};
}

void Watch::advance() {
  const long now = clock_ms();
  if (phase_ == Phase::running && launcher_) {
    phase_ = Phase::conflicting;
    settle_until_ = -1;
    end_at_ = now + kLeftoverGrace;
    if (!childless_ && setting_.alone) local::signal_children(SIGTERM);
  }
  if (phase_ == Phase::running) advance_running(now);
  if (phase_ == Phase::conflicting) {
    if (!childless_ && setting_.alone && now >= end_at_) {
      if (!local::end_children(local::kHopeless)) {
        say("hpclaunch: some processes do not end although they were killed (ps shows state D)\n");
      }
      childless_ = true;
    }
    if (childless_ || !setting_.alone) {
      phase_ = Phase::draining;
      end_at_ = -1;
      return;  // one more look at the pipe
    }
  }
  if (phase_ == Phase::draining && drained_) finish();
}

// MPICH's Hydra waits for ever for a node that it cannot reach, and the ranks elsewhere wait for its.
void Watch::heed_beginnings(long now) {
  if (ledger_.begun() > begun_) {
    begun_ = ledger_.begun();
    begin_by_ = now + kBeginPatience;
  }
  const bool ending = failure_seen_ || end_at_ >= 0;
  if (ledger_.all_begun() || ending) begin_by_ = -1;
  if (begin_by_ < 0 || now < begin_by_) return;
  begin_by_ = -1;
  say(fmt::format(
      "hpclaunch: no word yet from {}, {} s after the last other node; the job waits for them\n"
      "hpclaunch: try: look for the launcher's messages above; hpclaunch verify says which nodes "
      "answer\n",
      ledger_.not_begun(), kBeginPatience / 1000));
}

void Watch::advance_running(long now) {
  const long grace = static_cast<long>(plan_.output.grace_seconds * 1000);
  if (ledger_.failures() > 0 && !std::exchange(failure_seen_, true)) settle_until_ = now + kSettle;
  if (settle_until_ >= 0 && now >= settle_until_) {
    settle_until_ = -1;
    if (end_at_ < 0) end_at_ = now + grace;
    if (!plan_.termination.fails_fast && !facts_.user_ends) {
      facts_.ended_by_us = true;
      signal_launcher(plan_.termination.sent_for(SIGTERM));
    }
  }
  if (ledger_.all_ended() && !std::exchange(end_seen_, true) && end_at_ < 0) end_at_ = now + grace;
  heed_beginnings(now);
  if (end_at_ >= 0 && now >= end_at_) next_step(now);
}

// Of ending the launcher with everything that it has started. It has had its time, or the user is in a hurry.
void Watch::next_step(long now) {
  const std::vector<TerminationPolicy::Step>& steps = plan_.termination.steps;
  if (!facts_.user_ends) facts_.stuck = true;
  const TerminationPolicy::Step& step = steps[std::min(steps_, steps.size() - 1)];
  ++steps_;
  signal_launcher(step.signal);
  signal_launcher(SIGCONT);  // one that was stopped would not see it
  end_at_ = now + step.wait_ms;
}

void Watch::finish() {
  Verdict verdict = ledger_.judge(*launcher_, facts_);
  ending_ = std::move(verdict.ending);
  if (!verdict.report.empty()) say(verdict.report);
  phase_ = Phase::reported;
}

void Watch::say(const std::string& text) {
  if (splitter_.open_line()) local::add(pieces_, local::Stream::err, "\n");
  splitter_.line_ended();
  local::add(pieces_, local::Stream::err, text);
}

// A reader of our stderr who has left does not end the job.
void Watch::write_screen() {
  screen_.add(std::move(pieces_));
  pieces_.clear();
  screen_.pump();
  screen_.take_error();
}

}  // namespace hpclaunch::sys::supervised
