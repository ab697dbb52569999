// Starts a launcher with a rank monitor beside it: no threads, nothing that blocks.
//
//   running --launcher exits--> cleanup (TERM, 2 s, KILL to descendants) --> draining --> reported
//      |
//      +-- first failure: 50 ms, then grace; all ranks ended: grace; the user's signal: grace;
//          second Ctrl-C, nodes that do not start: at once --> one step of TerminationPolicy after the other
#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/events.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/sys.h"
#include "sys/descendants.h"
#include "sys/report.h"
#include "sys/screen.h"
#include "sys/start.h"
#include "sys/supervised/links.h"
#include "sys/supervised/lost_node.h"
#include "sys/supervised/rank_status.h"
#include "sys/supervised/record.h"
#include "sys/supervised/waiting.h"

namespace hpclaunch::sys {
namespace {

using namespace supervised;

enum class Phase {
  running,   // the launcher lives
  cleanup,   // it has ended; its descendants on this machine are being ended
  draining,  // no process lives; the rest of its output is on its way
  reported,
};

class Monitor {
 public:
  /// `signals`: those that are forwarded, and CHLD.
  Monitor(const Plan& plan, Signals& signals)
      : plan_(plan),
        signals_(signals),
        ranks_(plan),
        lost_(plan.supervision.termination.lost_node_texts),
        splitter_({plan.world_size(), plan.nodes(), fmt::format("@hpclaunch {} ", key_)}) {}

  Result<Ending> run(const std::vector<std::string>& argv, const EnvSnapshot& env) {
    if (const Status started = start(argv, env); !started) return started.error();
    struct sigaction pipe_before {};
    sigaction(SIGPIPE, nullptr, &pipe_before);
    signal(SIGPIPE, SIG_IGN);
    while (phase_ != Phase::reported || screen_.pending()) {
      wait_for_events();
      take_signals();
      links_.take_ended();
      reap();
      read_output();
      read_errors();
      Splitter::Sink late;
      splitter_.flush(clock_ms(), late);
      take(late);
      advance();
      write_screen();
    }
    sigaction(SIGPIPE, &pipe_before, nullptr);
    if (ending_.status == 0 && screen_.reader_gone(Stream::out)) ending_.status = 128 + SIGPIPE;
    if (ending_.status == 0 && output_lost_) ending_.status = kOutputLostStatus;
    return ending_;
  }

 private:
  Status start(const std::vector<std::string>& argv, const EnvSnapshot& env) {
    const TerminationPolicy& policy = plan_.supervision.termination;
    relays_ = can_be_full(STDOUT_FILENO) || !policy.lost_node_texts.empty();
    if (!errors_.open() || (relays_ && !output_.open()))
      return system_error("cannot create a pipe");
    fcntl(errors_.read_end, F_SETFL, O_NONBLOCK);
    if (relays_) fcntl(output_.read_end, F_SETFL, O_NONBLOCK);
    facts_.started = wall_clock();
    program_ = argv.front();
    std::map<std::string, std::optional<std::string>> changes = {{kRecords, key_}};
    const std::string& variable = policy.variable;
    if (const std::size_t equals = variable.find('='); equals != std::string::npos)
      changes[variable.substr(0, equals)] = variable.substr(equals + 1);
    const EnvSnapshot changed = env.with(changes);
    const Result<pid_t> pid =
        start_program(argv, &changed.entries(),
                      {.output = relays_ ? output_.write_end : STDOUT_FILENO,
                       .errors = errors_.write_end,
                       .group = shares_group_ ? Start::Group::inherited : Start::Group::own,
                       .when_we_die = policy.on_parent_death});
    if (!pid) return pid.error();
    launcher_ = *pid;
    errors_.close_write();
    output_.close_write();
    if (plan_.supervision.output.start_seconds == 0) return Done{};
    name_missing_at_ = clock_ms() + kStartPatience;
    if (const long limit = start_limit(plan_); limit != kNever) start_by_ = clock_ms() + limit;
    return Done{};
  }

  void wait_for_events() {
    // A full screen is back pressure: the launcher's output is not read until it has room.
    Wait wait;
    wait.on(signals_.fd());
    wait.on(drained_ || screen_.full() ? -1 : errors_.read_end);
    wait.on(screen_.full() ? -1 : output_.read_end);
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

  void take_signals() {
    while (const auto seen = signals_.next()) {
      const auto signal = static_cast<int>(seen->ssi_signo);
      if (signal != SIGCHLD) forward(signal, seen->ssi_code == SI_KERNEL);
    }
  }

  void signal_launcher(int signal) {
    if (launcher_exit_ || signal == 0) return;  // reaped: another process may have the number
    kill(launcher_, signal);
  }

  void forward(int signal, bool from_terminal) {
    const bool has_it = from_terminal && shares_group_;
    if (signal == SIGTSTP) {
      if (!has_it) signal_launcher(SIGTSTP);
      raise(SIGSTOP);
    }
    if (signal == SIGTSTP || signal == SIGCONT) return signal_launcher(SIGCONT);
    if (phase_ != Phase::running) {
      if (!ends_programs(signal)) return;
      if (phase_ == Phase::cleanup) end_at_ = clock_ms();
      if (phase_ >= Phase::draining) screen_.give_up();  // its reader is stuck
      return;
    }
    facts_.forwarded = signal;
    if (ends_programs(signal)) ended_by(signal);
    if (signal == SIGINT && std::exchange(int_seen_, true)) {
      if (steps_ == 0) next_step(clock_ms());
      return;
    }
    const int sent = plan_.supervision.termination.sent_for(signal);
    if (sent == 0) {
      facts_.forwarded = 0;
      say(fmt::format("hpclaunch: ignoring {}: it would end {}\n", signal_name(signal),
                      plan_.launch.launcher));
    } else if (!has_it) {
      signal_launcher(sent);
    }
    if (signal == SIGINT) say(stopping_text(plan_));
    if (!ends_programs(signal) || end_at_ != kNever) return;
    end_at_ = clock_ms() + grace_of(plan_, ranks_.started_nodes() > 0);
  }

  void ended_by(int signal) {
    if (facts_.user_ends()) return;
    facts_.ended_by = signal;
    read_errors();  // records of what ended before
    facts_.ended_at = wall_clock();
  }

  // Where its stdout is ours, a launcher ends by SIGPIPE or in a way of its own, and its ranks without records.
  void find_lost_reader() {
    if (relays_ || launcher_exit_->status() == 0 || !has_no_reader(STDOUT_FILENO)) return;
    const bool ran = ranks_.started_nodes() > 0 && facts_.lost_host.empty();
    if (ran || launcher_exit_->signal == SIGPIPE) ended_by(SIGPIPE);
  }

  // Reaps orphans as well, which have become our children.
  void reap() {
    childless_ = reap_ended(reaper_.alone() ? 0 : launcher_, [&](const siginfo_t& info) {
      if (info.si_pid != launcher_) return;
      launcher_exit_ = exit_of(info);
      links_.take_ended();
      links_.drop();
    });
  }

  void read_output() {
    while (output_.read_end >= 0 && !screen_.full()) {
      const auto bytes = output_.next(phase_ == Phase::draining);
      if (!bytes) return;
      if (bytes->empty()) output_.close_read();
      lost_.feed(*bytes, wall_clock());
      add(pieces_, Stream::out, *bytes);
      write_screen();
    }
  }

  void read_errors() {
    while (!drained_ && !screen_.full()) {
      const auto bytes = errors_.next(phase_ == Phase::draining);
      if (!bytes) return;
      Splitter::Sink sink;
      drained_ = bytes->empty();
      if (drained_)
        splitter_.finish(sink);
      else
        splitter_.feed(*bytes, clock_ms(), sink);
      take(sink);
      write_screen();
    }
  }

  void take(Splitter::Sink& sink) {
    lost_.feed(sink.text, wall_clock());
    add(pieces_, Stream::err, sink.text);
    facts_.launcher_said = facts_.launcher_said || !sink.text.empty();
    for (const Record& record : sink.records) {
      ranks_.add(record, facts_.started, wall_clock());
      if (record.log_error != 0) lose_log(record);
    }
    sink = {};
  }

  void lose_log(const Record& record) {
    output_lost_ = true;
    if (std::exchange(log_failure_seen_, true)) return;
    const std::string& logs = plan_.supervision.output.log_dir;
    say(lost_log(log_path(logs, record.rank, plan_.world_size()), record.log_error, record.host));
  }

  void advance() {
    const long now = clock_ms();
    if (phase_ == Phase::running && launcher_exit_) {
      phase_ = Phase::cleanup;
      settle_until_ = kNever;
      end_at_ = now + kCleanupGrace;
      if (!childless_ && reaper_.alone()) signal_children(SIGTERM);
    }
    if (phase_ == Phase::running) advance_running(now);
    if (phase_ == Phase::cleanup) {
      if (!childless_ && reaper_.alone() && now >= end_at_) {
        if (!end_descendants(kKillPatience)) say(std::string(kUnkillable));
        childless_ = true;
      }
      if (childless_ || !reaper_.alone()) {
        phase_ = Phase::draining;
        end_at_ = kNever;
        return;  // one more look at the pipes
      }
    }
    if (phase_ == Phase::draining && drained_ && output_.read_end < 0) finish();
  }

  // MPICH's Hydra waits for ever for a node that it cannot reach, and the other ranks wait for its ranks.
  void await_nodes(long now) {
    if (plan_.supervision.output.start_seconds == 0) return;
    if (ranks_.started_nodes() > started_nodes_) {
      started_nodes_ = ranks_.started_nodes();
      name_missing_at_ = now + kStartPatience;
    }
    const bool ending = failure_seen_ || end_at_ != kNever;
    if (ranks_.all_started() || ending) name_missing_at_ = start_by_ = kNever;
    if (start_by_ != kNever && now >= start_by_) {
      name_missing_at_ = start_by_ = kNever;
      facts_.start_seconds = start_limit(plan_) / 1000;
      say_waiting(false);
      end_at_ = clock_ms();  // the question took its time, and signals at once are one
    }
    if (name_missing_at_ == kNever || now < name_missing_at_) return;
    name_missing_at_ = kNever;
    say_waiting(true);
  }

  void say_waiting(bool whole) {
    const Waiting waiting{plan_, program_, ranks_.not_started(), started_nodes_ > 0};
    say(waiting.text(whole, facts_.launcher_said));
  }

  void advance_running(long now) {
    if (plan_.supervision.termination.watch_links && plan_.nodes() > 1 && ranks_.all_started() &&
        !std::exchange(complete_seen_, true))
      links_.watch(launcher_);
    const long grace = static_cast<long>(plan_.supervision.output.grace_seconds * 1000);
    if (ranks_.failures() > 0 && !std::exchange(failure_seen_, true)) settle_until_ = now + kSettle;
    if (settle_until_ != kNever && now >= settle_until_) {
      settle_until_ = kNever;
      if (end_at_ == kNever) end_at_ = now + grace;
      if (!plan_.supervision.termination.fails_fast && !facts_.user_ends()) stop_ranks();
    }
    if (ranks_.all_ended() && !std::exchange(end_seen_, true) && end_at_ == kNever)
      end_at_ = now + grace;
    await_nodes(now);
    if (end_at_ != kNever && now >= end_at_) next_step(now);
  }

  // The next step of the termination policy.
  void next_step(long now) {
    const std::vector<TerminationPolicy::Step>& steps = plan_.supervision.termination.steps;
    if (!facts_.user_ends()) facts_.launcher_stuck = true;
    const TerminationPolicy::Step& step = steps[std::min(steps_, steps.size() - 1)];
    ++steps_;
    signal_launcher(step.signal);
    signal_launcher(SIGCONT);  // a stopped one would not get it
    end_at_ = now + step.wait_ms;
  }

  void find_lost_node() {
    const std::vector<SilentRanks> silent = ranks_.silent();
    const SilentRanks* node = first_lost(lost_, links_, silent, facts_.lost_at);
    if (node != nullptr) facts_.lost_host = node->host;
  }

  void finish() {
    find_lost_node();
    find_lost_reader();
    Summary summary = ranks_.summary(*launcher_exit_, facts_);
    ending_ = std::move(summary.ending);
    say(summary.report);
    phase_ = Phase::reported;
  }

  void say(const std::string& text) {
    if (text.empty()) return;
    if (splitter_.open_line()) add(pieces_, Stream::err, "\n");
    splitter_.line_ended();
    add(pieces_, Stream::err, text);
  }

  // A closed stderr does not end the job.
  void write_screen() {
    screen_.add(std::move(pieces_));
    screen_.pump();
    output_lost_ = screen_.take_error() != 0 || output_lost_;
    if (!screen_.reader_gone(Stream::out) || phase_ != Phase::running || facts_.user_ends()) return;
    ended_by(SIGPIPE);
    stop_ranks();
  }

  void stop_ranks() {
    facts_.stopped_by_us = true;
    signal_launcher(plan_.supervision.termination.sent_for(SIGTERM));
    if (end_at_ == kNever) end_at_ = clock_ms() + grace_of(plan_, ranks_.started_nodes() > 0);
  }

  const Plan& plan_;
  Signals& signals_;
  const std::string key_ = draw_key();  // of this job's records
  // In our process group a terminal's signals reach it without us; in one of its own it could not read from there.
  const bool shares_group_ = isatty(STDIN_FILENO) != 0;
  const Subreaper reaper_;  // every child of this process belongs to this job, where it is alone
  Pipe errors_;             // the launcher's stderr
  Pipe output_;             // its stdout; unused where it has ours
  pid_t launcher_ = 0;
  std::string program_;  // of the launcher
  RankStatus ranks_;
  LostNode lost_;  // as the launcher says it
  Links links_;
  Splitter splitter_;
  Screen screen_;
  Pieces pieces_;
  JobFacts facts_;
  Phase phase_ = Phase::running;
  std::optional<RankExit> launcher_exit_;
  Ending ending_;
  long settle_until_ = kNever;
  long end_at_ = kNever;           // until then the launcher may exit by itself
  long name_missing_at_ = kNever;  // nodes that have not reported
  long start_by_ = kNever;         // when it is too late for them
  int started_nodes_ = 0;
  std::size_t steps_ = 0;       // of TerminationPolicy::steps that were taken
  bool complete_seen_ = false;  // every node has started
  bool failure_seen_ = false, end_seen_ = false, int_seen_ = false, log_failure_seen_ = false;
  bool childless_ = false, drained_ = false, output_lost_ = false;
  bool relays_ = false;  // its stdout
};

}  // namespace

Result<Ending> run_supervised(const Plan& plan, const std::vector<std::string>& argv,
                              const EnvSnapshot& env) {
  fill_standard_files();
  const KeepExitStatuses statuses;
  sigset_t set = hold(kForwarded);
  sigaddset(&set, SIGCHLD);
  Signals signals(set);
  Result<Ending> ending = Monitor(plan, signals).run(argv, env);
  signals.discard();  // for a job that is over: must not end what follows
  return ending;
}

}  // namespace hpclaunch::sys
