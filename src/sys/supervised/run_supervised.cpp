// Starts a launcher and listens to the ranks' monitors until it has ended: no threads, nothing that blocks.
//
//   running --launcher exits--> cleanup (TERM, 2 s, KILL to descendants) --> draining --> reported
//      |
//      +-- first failure, or a node lost: 50 ms, TERM to the ranks, grace;  the user's signal to the ranks: grace
//          after the grace: KILL to the ranks, 2 s;  all ranks ended: grace
//          then, and when nothing starts: one step of TerminationPolicy after the other
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <optional>
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/events.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "sys/descendants.h"
#include "sys/report.h"
#include "sys/screen.h"
#include "sys/supervised/channel.h"
#include "sys/supervised/launcher_process.h"
#include "sys/supervised/rank_signals.h"
#include "sys/supervised/relay.h"
#include "sys/supervised/waiting.h"
#include "sys/verdict.h"
#include "sys/watching.h"

namespace hpclaunch::sys {
namespace {

using namespace supervised;

enum class Phase {
  running,   // the launcher lives
  cleanup,   // it has ended; its descendants on this machine are being ended
  draining,  // no process lives; the rest of its output is on its way
  reported,
};

constexpr long kRejoin = 1000;    // ms for another monitor of a node to take a killed one's place
constexpr long kKillWait = 2000;  // for ranks to end that got KILL

class Supervisor {
 public:
  /// `signals`: those that are forwarded, and CHLD.
  Supervisor(const Plan& plan, const ChannelPlace& place, const Asking& asking, Signals& signals)
      : plan_(plan),
        place_(place),
        asking_(asking),
        signals_(signals),
        verdict_(plan),
        watching_(verdict_, asking, getpid(), [&](int number, bool all_threads) {
          channel_.ask(number, all_threads, asking_.ras_port, watching_.questions().ras_rank());
        }) {}

  Result<Ending> run(const std::vector<std::string>& argv, const EnvSnapshot& env) {
    if (const Status started = start(argv, env); !started) return started.error();
    struct sigaction pipe_before {};
    sigaction(SIGPIPE, nullptr, &pipe_before);
    signal(SIGPIPE, SIG_IGN);
    while (phase_ != Phase::reported || screen_.pending()) {
      wait_for_events();
      take_signals();
      hear();
      reap();
      look();
      // Not more in one turn, however fast the launcher writes: signals and ends have theirs.
      for (int i = 0; i < 4 && !screen_.full() && relay_.read(phase_ == Phase::draining, pieces_);
           ++i) {
        watching_.output();
        write_screen();
      }
      advance();
      write_screen();
    }
    sigaction(SIGPIPE, &pipe_before, nullptr);
    if (ending_.status == 0 && screen_.reader_gone(Stream::out)) ending_.status = 128 + SIGPIPE;
    if (ending_.status == 0 && output_lost_) ending_.status = kOutputLostStatus;
    return ending_;
  }

 private:
  void open_channel() {
    launcher_.keep_limits();
    const int silence = plan_.supervision.output.lost_seconds.value_or(kLostSeconds);
    const Status opened = channel_.open(place_, plan_.world_size(), plan_.nodes(), silence);
    if (opened) return;
    say(fmt::format("hpclaunch: {}: the job continues unsupervised\nhpclaunch: try: {}\n",
                    opened.error().message, opened.error().hint));
  }

  Status start(const std::vector<std::string>& argv, const EnvSnapshot& env) {
    if (const Status opened = relay_.open(screen_.one_target(), asking_.watch.has_value()); !opened)
      return opened.error();
    open_channel();
    facts_.started = wall_clock();
    facts_.logs = plan_.supervision.output.log_dir;
    const EnvSnapshot changed = env.with(
        {{kChannel, channel_.fd() < 0 ? std::nullopt : std::optional(channel_.variable())}});
    if (const Status begun = launcher_.start(argv, changed, relay_); !begun) return begun.error();
    relay_.started();
    if (channel_.fd() < 0) return Done{};
    facts_.where = channel_.where();
    facts_.all_can_connect = plan_.hosts.first_is_here && plan_.launch.image.empty();
    waiting_.start(launcher_.program(), facts_.where);
    return Done{};
  }

  void wait_for_events() {
    channel_.flush();
    // A full screen is back pressure: the launcher's output is not read until it has room.
    Wait wait;
    wait.on(signals_.fd());
    wait.on(channel_.fd());
    if (!screen_.full()) relay_.wait_for(wait);
    wait.on(screen_.fd(), POLLOUT);
    if (phase_ == Phase::running) watching_.wait_for(wait);
    const bool held = phase_ == Phase::running && watching_.last_look_runs();
    for (const long time : {settle_until_, held ? kNever : end_at_, rejoin_by_,
                            to_ranks_.deadline(), channel_.deadline()})
      wait.until(time);
    if (phase_ == Phase::running) wait.until(waiting_.deadline());
    if (phase_ == Phase::draining && !screen_.full()) wait.until(clock_ms());
    wait.run();
  }

  // ---- signals ----

  void take_signals() {
    while (const auto seen = signals_.next())
      if (static_cast<int>(seen->ssi_signo) != SIGCHLD) forward(*seen);
  }

  void forward(const signalfd_siginfo& seen) {
    const auto signal = static_cast<int>(seen.ssi_signo);
    const bool has_it =
        seen.ssi_code == SI_KERNEL && launcher_.shares_group();  // the launcher, of a terminal
    if (signal == SIGTSTP) {
      if (!has_it) launcher_.signal(SIGTSTP);
      raise(SIGSTOP);
    }
    if (signal == SIGTSTP || signal == SIGCONT) return launcher_.signal(SIGCONT);
    const bool ends = ends_programs(signal);
    if (phase_ != Phase::running) {
      if (ends && phase_ == Phase::cleanup) end_at_ = clock_ms();
      if (ends && phase_ >= Phase::draining) screen_.give_up();  // its reader is stuck
      return;
    }
    facts_.forwarded = signal;
    if (ends) ended_by(signal);
    if (signal == SIGINT && std::exchange(int_seen_, true)) {
      facts_.killed_at_once |= !killed_;
      if (!killed_) next_step(clock_ms());
      return;
    }
    if (signal == SIGINT) say(stopping_text(plan_));
    if (ends && is_batch_system(seen, asking_)) {
      facts_.batch_ends(asking_.job_ends_at);
      to_ranks_.send_later(signal, clock_ms());
    } else {
      to_ranks_.send(signal);
    }
    if (verdict_.started_nodes() == 0 && ends && !has_it) launcher_.signal(signal);
    if (ends && end_at_ == kNever)
      end_at_ = clock_ms() + grace_of(plan_, verdict_.started_nodes() > 0);
  }

  void ended_by(int signal) {
    if (facts_.user_ends()) return;
    hear();  // of what ended before
    facts_.ended_by = signal;
    facts_.ended_at = wall_clock();
  }

  // Where its stdout is ours, a launcher ends by SIGPIPE or in a way of its own, and its ranks without records.
  void find_lost_reader() {
    if (relay_.has_output() || launcher_.end()->status() == 0 || !has_no_reader(STDOUT_FILENO))
      return;
    if (verdict_.started_nodes() > 0 || launcher_.end()->signal == SIGPIPE) ended_by(SIGPIPE);
  }

  // Reaps orphans as well, which have become our children.
  void reap() {
    childless_ =
        reap_ended(reaper_.alone() ? 0 : launcher_.pid(), [&](const siginfo_t& info, long) {
          if (info.si_pid != launcher_.pid()) return;
          launcher_.ended(exit_of(info));
          facts_.launcher_at = wall_clock();
        });
  }

  void take(const Event& event) {
    const int rank = event.end.rank;
    if (event.gone) {
      verdict_.gone(rank, event.end.seconds);
      watching_.questions().lose(rank);
    } else if (event.what == channel::What::begun) {
      verdict_.begun(rank, event.text);
      to_ranks_.begun(rank);
    } else if (event.what == channel::What::log) {
      lose_log(rank, event.number);
    } else if (event.what == channel::What::signalled) {
      to_ranks_.has_got(event.number, rank);
    } else if (event.what == channel::What::stacks) {
      watching_.questions().hear(event.number, rank, event.text, event.last);
    } else {
      verdict_.ended(event.end, event.text);
      watching_.questions().lose(rank);
      if (!event.end.failed() || released_) channel_.release(rank);  // else when others had time
    }
  }

  void hear() {
    do {
      for (const Event& event : channel_.turn()) take(event);
    } while (channel_.more());
    const double gone = verdict_.gone_since();
    if (gone == 0)
      rejoin_by_ = kNever;
    else if (phase_ == Phase::running && rejoin_by_ == kNever && !lost_seen_)
      rejoin_by_ = clock_ms() + kRejoin;
  }

  void release_all() {
    if (std::exchange(released_, true)) return;
    for (int rank = 0; rank < plan_.world_size(); ++rank)
      if (verdict_.has_ended(rank)) channel_.release(rank);
  }

  void lose_log(int rank, int error) {
    output_lost_ = true;
    if (std::exchange(log_failure_seen_, true)) return;
    say(lost_log(log_path(facts_.logs, rank, plan_.world_size()), error, verdict_.host_of(rank)));
  }

  void look() {
    if (phase_ != Phase::running) return;
    say(watching_.turn(facts_));
    if (facts_.stalled && facts_.stopped_at == 0) stop_ranks();
  }

  void advance() {
    const long now = clock_ms();
    if (phase_ == Phase::running && launcher_.end()) {
      phase_ = Phase::cleanup;
      settle_until_ = rejoin_by_ = kNever;
      to_ranks_.keep();
      end_at_ = now + kCleanupGrace;
      if (!childless_ && reaper_.alone()) signal_children(SIGTERM);
      release_all();
      if (!verdict_.none_runs()) stop_ranks();  // they have outlived it
    }
    if (phase_ == Phase::running) advance_running(now);
    if (phase_ == Phase::cleanup && !verdict_.none_runs()) {
      if (now < end_at_) return;
      if (!std::exchange(killed_, true)) {
        to_ranks_.send(SIGKILL);
        end_at_ = now + kKillWait;
        return;
      }
    }
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
    if (phase_ == Phase::draining && relay_.ended()) finish();
  }

  static bool due(long& time, long now) {
    if (time == kNever || now < time) return false;
    time = kNever;
    return true;
  }

  void advance_running(long now) {
    const long grace = static_cast<long>(plan_.supervision.output.grace_seconds * 1000);
    to_ranks_.advance(now);
    if (due(rejoin_by_, now)) lost_seen_ = true;
    if ((verdict_.failures() > 0 || lost_seen_) && !std::exchange(failure_seen_, true))
      settle_until_ = now + kSettle;
    if (due(settle_until_, now)) {
      if (end_at_ == kNever) end_at_ = now + grace;
      if (!facts_.user_ends()) stop_ranks();
    }
    const bool over = lost_seen_ ? verdict_.all_over() : verdict_.all_ended();
    if (over && !std::exchange(over_seen_, true)) {
      release_all();
      end_at_ = lost_seen_ ? now : now + grace;
    }
    const bool ending = failure_seen_ || over_seen_ || end_at_ != kNever;
    say(waiting_.advance(now, ending, watching_.last_look_runs()));
    if (waiting_.is_too_late()) {
      facts_.start_seconds = start_limit(plan_) / 1000;
      end_at_ = clock_ms();  // the question took its time, and signals at once are one
    }
    if (waiting_.ranks_stay_too_long() && !std::exchange(facts_.timed_out, true)) stop_ranks();
    watching_.ends(waiting_.stayers_end_at(), kBeforeKill, "end-timeout");
    if (facts_.user_ends() && !killed_ && !over_seen_)
      watching_.ends(end_at_, kBeforeKill, facts_.time_limit ? kTimeLimit : "kill");
    if (end_at_ != kNever && now >= end_at_ && !watching_.last_look_runs()) next_step(now);
  }

  // KILL for the ranks; where there are none, or they do not end, the next step of the termination policy.
  void next_step(long now) {
    if (!over_seen_ && verdict_.started_nodes() > 0 && !std::exchange(killed_, true)) {
      to_ranks_.send(SIGKILL);
      end_at_ = now + kKillWait;
      return;
    }
    release_all();
    if (!facts_.user_ends()) facts_.launcher_stuck = true;
    const long wait = launcher_.next_step();
    end_at_ = now + (lost_seen_ ? std::min(wait, kKillWait) : wait);
  }

  void stop_ranks() {
    if (facts_.stopped_at == 0) facts_.stopped_at = wall_clock();
    to_ranks_.send(SIGTERM);
    if (end_at_ == kNever) end_at_ = clock_ms() + grace_of(plan_, verdict_.started_nodes() > 0);
  }

  void finish() {
    hear();
    find_lost_reader();
    Summary summary = verdict_.summary(*launcher_.end(), facts_);
    ending_ = std::move(summary.ending);
    say(summary.report);
    phase_ = Phase::reported;
  }

  void say(const std::string& text) {
    if (text.empty()) return;
    if (relay_.end_open_line()) add(pieces_, Stream::err, "\n");
    add(pieces_, Stream::err, text);
  }

  void write_screen() {  // a closed stderr does not end the job
    screen_.add(std::move(pieces_));
    screen_.pump();
    output_lost_ = screen_.take_error() != 0 || output_lost_;
    if (!screen_.reader_gone(Stream::out) || phase_ != Phase::running || facts_.user_ends()) return;
    ended_by(SIGPIPE);
    stop_ranks();
  }

  const Plan& plan_;
  const ChannelPlace& place_;
  const Asking& asking_;
  Signals& signals_;
  const Subreaper reaper_;  // every child of this process belongs to this job, where it is alone
  Relay relay_;
  LauncherProcess launcher_{plan_.supervision.termination};
  Channel channel_;
  Verdict verdict_;
  RankSignals to_ranks_{channel_, verdict_, plan_.world_size()};
  Waiting waiting_{plan_, verdict_};
  Watching watching_;
  Screen screen_;
  Pieces pieces_;
  JobFacts facts_;
  Phase phase_ = Phase::running;
  Ending ending_;
  long settle_until_ = kNever;
  long rejoin_by_ = kNever;  // then what is gone is lost
  long end_at_ = kNever;     // until then the launcher may exit by itself
  bool failure_seen_ = false, lost_seen_ = false, over_seen_ = false;
  bool int_seen_ = false, log_failure_seen_ = false, killed_ = false, released_ = false;
  bool childless_ = false, output_lost_ = false;
};

}  // namespace

Result<Ending> run_supervised(const Plan& plan, const std::vector<std::string>& argv,
                              const EnvSnapshot& env, const ChannelPlace& place,
                              const Asking& asking) {
  fill_standard_files();
  const KeepExitStatuses statuses;
  sigset_t set = hold(kForwarded);
  sigaddset(&set, SIGCHLD);
  Signals signals(set);
  Result<Ending> ending = Supervisor(plan, place, asking, signals).run(argv, env);
  signals.discard();  // for a job that is over: must not end what follows
  return ending;
}

}  // namespace hpclaunch::sys
