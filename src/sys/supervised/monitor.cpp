#include "sys/supervised/monitor.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <csignal>
#include <utility>

#include "hpclaunch/text.h"
#include "sys/descendants.h"
#include "sys/report.h"

namespace hpclaunch::sys::supervised {
namespace {

constexpr long kStartLimit = 600'000;  // ms until it is too late, unless the user says otherwise

// ms; kNever: it may take any time.
long start_limit(const Plan& plan) {
  if (plan.output.start_seconds) return *plan.output.start_seconds * 1000L;
  return plan.termination.queues ? kNever : kStartLimit;
}

}  // namespace

Monitor::Monitor(const Plan& plan, const Launcher& launcher, Signals& signals)
    : plan_(plan),
      launcher_(launcher),
      signals_(signals),
      ranks_(plan),
      splitter_({plan.world_size(), plan.nodes(), fmt::format("@hpclaunch {} ", launcher.key)}) {
  facts_.started = launcher.started;
  if (plan.output.start_seconds == 0) return;
  name_missing_at_ = clock_ms() + kStartPatience;
  if (const long limit = start_limit(plan); limit != kNever) start_by_ = clock_ms() + limit;
}

Ending Monitor::run() {
  while (phase_ != Phase::reported || screen_.pending()) {
    wait_for_events();
    take_signals();
    links_.take_ended();
    reap();
    read_errors();
    Splitter::Sink late;
    splitter_.flush(clock_ms(), late);
    take(late);
    advance();
    write_screen();
  }
  if (output_lost_ && ending_.status == 0) ending_.status = kOutputLostStatus;
  return ending_;
}

void Monitor::wait_for_events() {
  // A full screen is back pressure: the launcher's stderr is not read until it has room.
  const bool reading = !drained_ && !screen_.full();
  Wait wait;
  wait.on(signals_.fd());
  wait.on(reading ? launcher_.errors : -1);
  wait.on(screen_.fd(), POLLOUT);
  wait.on(links_.fd());
  wait.until(splitter_.next_flush());
  wait.until(settle_until_);
  wait.until(end_at_);
  wait.until(name_missing_at_);
  wait.until(start_by_);
  if (phase_ == Phase::draining && !screen_.full()) wait.until(clock_ms());
  wait.run();
}

void Monitor::take_signals() {
  while (const auto seen = signals_.next()) {
    const auto signal = static_cast<int>(seen->ssi_signo);
    if (signal != SIGCHLD) forward(signal, seen->ssi_code == SI_KERNEL);
  }
}

void Monitor::signal_launcher(int signal) {
  if (launcher_exit_ || signal == 0) return;  // reaped: another process may have the number
  kill(launcher_.pid, signal);
}

void Monitor::forward(int signal, bool from_terminal) {
  const bool has_it = from_terminal && launcher_.shares_group;
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
    if (phase_ == Phase::cleanup) end_at_ = clock_ms();
    if (phase_ >= Phase::draining) screen_.give_up();  // its reader is stuck
    return;
  }
  facts_.forwarded = signal;
  if (ends_programs(signal)) facts_.user_ends = true;
  if (signal == SIGINT && std::exchange(int_seen_, true)) {
    if (steps_ == 0) next_step(clock_ms());
    return;
  }
  const int sent = plan_.termination.sent_for(signal);
  if (sent == 0) {
    facts_.forwarded = 0;
    say(fmt::format("hpclaunch: ignoring {}: it would end {}\n", signal_name(signal),
                    plan_.launcher));
  } else if (!has_it) {
    signal_launcher(sent);
  }
  if (signal == SIGINT)
    say(fmt::format("hpclaunch: stopping: waiting for {} to end {}; Ctrl-C again to kill\n",
                    plan_.launcher, counted(plan_.world_size(), "rank")));
  if (!ends_programs(signal) || end_at_ != kNever) return;
  end_at_ = clock_ms() + static_cast<long>(plan_.output.grace_seconds * 1000);
}

// Reaps orphans as well, which have become our children.
void Monitor::reap() {
  childless_ = reap_ended(launcher_.alone ? 0 : launcher_.pid, [&](const siginfo_t& info) {
    if (info.si_pid != launcher_.pid) return;
    launcher_exit_ = exit_of(info);
    links_.take_ended();
    links_.drop();
  });
}

void Monitor::read_errors() {
  static std::array<char, 64 * 1024> buffer;
  while (!drained_ && !screen_.full()) {
    const ssize_t size = read(launcher_.errors, buffer.data(), buffer.size());
    if (size < 0 && errno == EINTR) continue;
    // Once no process of the job lives, do not wait for another owner of the pipe.
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

void Monitor::take(Splitter::Sink& sink) {
  add(pieces_, Stream::err, sink.text);
  for (const Record& record : sink.records) ranks_.add(record, facts_.started, wall_clock());
  sink = {};
}

void Monitor::advance() {
  const long now = clock_ms();
  if (phase_ == Phase::running && launcher_exit_) {
    phase_ = Phase::cleanup;
    settle_until_ = kNever;
    end_at_ = now + kCleanupGrace;
    if (!childless_ && launcher_.alone) signal_children(SIGTERM);
  }
  if (phase_ == Phase::running) advance_running(now);
  if (phase_ == Phase::cleanup) {
    if (!childless_ && launcher_.alone && now >= end_at_) {
      if (!end_descendants(kKillPatience)) say(std::string(kUnkillable));
      childless_ = true;
    }
    if (childless_ || !launcher_.alone) {
      phase_ = Phase::draining;
      end_at_ = kNever;
      return;  // one more look at the pipe
    }
  }
  if (phase_ == Phase::draining && drained_) finish();
}

// MPICH's Hydra waits for ever for a node that it cannot reach, and the other ranks wait for its ranks.
void Monitor::await_nodes(long now) {
  if (plan_.output.start_seconds == 0) return;
  if (ranks_.started_nodes() > started_nodes_) {
    started_nodes_ = ranks_.started_nodes();
    name_missing_at_ = now + kStartPatience;
  }
  const bool ending = failure_seen_ || end_at_ != kNever;
  if (ranks_.all_started() || ending) name_missing_at_ = start_by_ = kNever;
  if (start_by_ != kNever && now >= start_by_) {
    name_missing_at_ = start_by_ = kNever;
    facts_.start_seconds = start_limit(plan_) / 1000;
    end_at_ = now;
  }
  if (name_missing_at_ == kNever || now < name_missing_at_) return;
  name_missing_at_ = kNever;
  say(
      fmt::format("hpclaunch: still waiting for {}, {} s after {}\n"
                  "hpclaunch: try: read the launcher's messages above, or run hpclaunch verify\n",
                  ranks_.not_started(), kStartPatience / 1000,
                  started_nodes_ > 0 ? "the last other node" : "the start"));
}

void Monitor::advance_running(long now) {
  if (plan_.termination.watch_links && plan_.nodes() > 1 && ranks_.all_started() &&
      !std::exchange(complete_seen_, true))
    links_.watch(launcher_.pid);
  const long grace = static_cast<long>(plan_.output.grace_seconds * 1000);
  if (ranks_.failures() > 0 && !std::exchange(failure_seen_, true)) settle_until_ = now + kSettle;
  if (settle_until_ != kNever && now >= settle_until_) {
    settle_until_ = kNever;
    if (end_at_ == kNever) end_at_ = now + grace;
    if (!plan_.termination.fails_fast && !facts_.user_ends) {
      facts_.stopped_by_us = true;
      signal_launcher(plan_.termination.sent_for(SIGTERM));
    }
  }
  if (ranks_.all_ended() && !std::exchange(end_seen_, true) && end_at_ == kNever)
    end_at_ = now + grace;
  await_nodes(now);
  if (end_at_ != kNever && now >= end_at_) next_step(now);
}

// The next step of the termination policy.
void Monitor::next_step(long now) {
  const std::vector<TerminationPolicy::Step>& steps = plan_.termination.steps;
  if (!facts_.user_ends) facts_.launcher_stuck = true;
  const TerminationPolicy::Step& step = steps[std::min(steps_, steps.size() - 1)];
  ++steps_;
  signal_launcher(step.signal);
  signal_launcher(SIGCONT);  // a stopped one would not get it
  end_at_ = now + step.wait_ms;
}

// The first node whose connection ended, before the launcher did, without a word from its ranks. A look-up may take long where no name
// service answers, so their time is limited.
void Monitor::find_lost_node() {
  constexpr long kMost = 5000;  // ms
  const long start = clock_ms();
  const std::vector<SilentRanks> silent = ranks_.silent();
  for (const Links::Ended& link : links_.lost())
    for (const SilentRanks& node : silent) {
      if (!node.whole_node || clock_ms() - start > kMost) continue;
      const auto addresses = resolve(node.host);
      if (!addresses || std::ranges::count(*addresses, link.address) == 0) continue;
      facts_.lost_host = node.host;
      facts_.lost_at = link.at;
      return;
    }
}

void Monitor::finish() {
  find_lost_node();
  Summary summary = ranks_.summary(*launcher_exit_, facts_);
  ending_ = std::move(summary.ending);
  if (!summary.report.empty()) say(summary.report);
  phase_ = Phase::reported;
}

void Monitor::say(const std::string& text) {
  if (splitter_.open_line()) add(pieces_, Stream::err, "\n");
  splitter_.line_ended();
  add(pieces_, Stream::err, text);
}

// A closed stderr does not end the job.
void Monitor::write_screen() {
  screen_.add(std::move(pieces_));
  screen_.pump();
  output_lost_ = screen_.take_error() != 0 || output_lost_;
}

}  // namespace hpclaunch::sys::supervised
