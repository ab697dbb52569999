// The launcher "ssh".
//
// connecting --all nodes are ready--> running --all ranks have ended--> over
//      |                                 |
//      +-- a node fails, a signal        +-- a rank fails, a node is lost, a signal
//          the others are ended at once      the signal to the ranks, grace, KILL
//
// No rank starts before every node can start its ranks: a node that is down leaves nothing to end.
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/random.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>
#include <utility>

#include "hpclaunch/events.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "sys/descendants.h"
#include "sys/local/lines.h"
#include "sys/screen.h"
#include "sys/ssh/connection.h"
#include "sys/start.h"

namespace hpclaunch::sys {

namespace ssh {

namespace {

/// Connections that are being made at a time.
constexpr int kSshAtOnce = 32;

using State = Connection::State;

constexpr int kNotStarted = 125;
constexpr int kNodeLost = 255;
constexpr int kOfSignal = 128;
constexpr long kEndWait = 5000;  // ms for nodes to end after KILL, before their ssh is killed
constexpr std::size_t kMostNamed = 8;

std::string draw_marker() {
  std::uint64_t number = 0;
  if (getrandom(&number, sizeof number, 0) < 0) number = static_cast<std::uint64_t>(clock_ms());
  return fmt::format("hpclaunch-{:016x}", number);
}

bool is_this_machine(const std::string& host) {
  if (host == "localhost" || is_loopback(host)) return true;
  if (!is_address(host)) return same_host(host, host_name());
  return std::ranges::count(own_addresses(), host) > 0;
}

int ranks_in(const SshJob& job) {
  int ranks = 0;
  for (const SshJob::Node& node : job.nodes) ranks += node.ranks;
  return ranks;
}

// Three for each node.
void allow_descriptors() {
  rlimit limit{};
  if (getrlimit(RLIMIT_NOFILE, &limit) != 0) return;
  limit.rlim_cur = limit.rlim_max;
  setrlimit(RLIMIT_NOFILE, &limit);
}

class Launch {
 public:
  Launch(const SshJob& job, const EnvSnapshot& env, const NodePrograms& programs, Signals& signals)
      : job_(job),
        programs_(programs),
        signals_(signals),
        world_(ranks_in(job)),
        lines_(world_, job.label, screen_.one_target()) {
    for (const std::string& entry : env.entries())
      if (!node::begins_with_one(entry.c_str(), node::kOfLogin) &&
          !node::begins_with_one(entry.c_str(), node::kOfShell))
        variables_.push_back(entry);
    variables_.push_back("PWD=" + directory_);
    int rank = 0;
    for (const SshJob::Node& one : job.nodes) {
      nodes_.emplace_back(one.host, static_cast<int>(nodes_.size()), rank, one.ranks);
      rank += one.ranks;
    }
  }

  int run() {
    while (!over() || screen_.pending()) {
      if (!ending_) start_some();
      if (!ending_) begin_job();
      if (over() && !screen_.pending()) break;
      wait_for_events();
      take_signals();
      for (Connection& node : nodes_) {
        if (screen_.full()) break;
        node.turn(events_);
        take_events(node);
      }
      reap();
      lines_.flush(clock_ms(), pieces_);
      advance();
      write_screen();
    }
    return status_;
  }

 private:
  bool over() const { return all(State::over); }

  void start_some() {
    start_at_ = kNever;
    auto busy = std::ranges::count(nodes_, State::connecting, &Connection::state);
    for (Connection& node : nodes_) {
      if (busy >= kSshAtOnce) return;
      if (node.state() != State::waiting) continue;
      if (node.start_at() > clock_ms()) {
        start_at_ = start_at_ == kNever ? node.start_at() : std::min(start_at_, node.start_at());
        continue;
      }
      ++busy;
      const Status started = node.start(job_.ssh, is_this_machine(node.host()), programs_, marker_);
      if (started) continue;
      node_failed(node, started.error().message, started.error().hint);
      return;
    }
  }

  bool all(State state) const {
    return std::ranges::all_of(nodes_, [&](const auto& one) { return one.state() == state; });
  }

  // No rank starts before every node has said that it can.
  void begin_job() {
    if (!begun_ && all(State::accepted)) {
      begun_ = true;
      for (Connection& node : nodes_) node.send_go();
    }
    if (!all(State::ready)) return;
    for (Connection& node : nodes_) {
      if (job_.verbose && node.noise() > 0)
        say(fmt::format("{}: its login prints {} bytes, which are dropped", node.host(),
                        node.noise()));
      node.send_job(job_.command, world_, directory_, variables_);
    }
  }

  void wait_for_events() {
    std::vector<pollfd> wanted = {{signals_.fd(), POLLIN, 0}};
    if (screen_.pending()) wanted.push_back({screen_.fd(), POLLOUT, 0});
    if (!screen_.full())
      for (const Connection& node : nodes_) node.wait_for(wanted);
    long until = kNever;
    for (const long time : {end_at_, start_at_, lines_.next_flush()})
      if (time >= 0) until = until == kNever ? time : std::min(until, time);
    const long left = until == kNever ? -1 : std::max(0L, until - clock_ms());
    poll(wanted.data(), wanted.size(), static_cast<int>(left));
  }

  void take_signals() {
    while (const auto seen = signals_.next()) {
      const auto signal = static_cast<int>(seen->ssi_signo);
      if (signal == SIGCHLD) continue;
      if (signal == SIGTSTP) raise(SIGSTOP);
      if (signal == SIGTSTP || signal == SIGCONT) continue;
      if (!ends_programs(signal)) {
        for (Connection& node : nodes_) node.send_signal(signal);
        continue;
      }
      if (status_ == 0) status_ = kOfSignal + signal;
      if (!begun_) name_missing();
      if (std::exchange(signalled_, true))
        end_at_ = clock_ms();  // a second one does not wait
      else
        end(signal);
    }
  }

  void take_events(const Connection& node) {
    for (NodeEvent& event : std::exchange(events_, {})) {
      switch (event.what) {
        case NodeEvent::What::output:
          lines_.feed(event.rank, event.stream, event.text, clock_ms(), pieces_);
          break;
        case NodeEvent::What::line:
          lines_.end_open_line(Stream::err, pieces_);
          add(pieces_, Stream::err, fmt::format("{}: {}\n", node.host(), event.text));
          break;
        case NodeEvent::What::ended:
          rank_ended(event.status);
          break;
        case NodeEvent::What::failed:
          node_failed(node, event.text, event.hint);
          break;
      }
    }
  }

  void rank_ended(int wait_status) {
    const int status =
        WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : kOfSignal + WTERMSIG(wait_status);
    if (status == 0) return;
    if (status_ == 0) status_ = status;
    end(SIGTERM);
  }

  void node_failed(const Connection& node, const std::string& why, const std::string& hint) {
    if (killed_ || (ending_ && !begun_)) return;  // by us
    say(fmt::format("node {} {}: {}", node.host(), begun_ ? "lost" : "not started", why));
    if (!hint.empty()) say("try: " + hint);
    if (status_ == 0) status_ = begun_ ? kNodeLost : kNotStarted;
    end(SIGTERM);
  }

  // Those which --start-timeout, or somebody else, has ended before they answered.
  void name_missing() {
    std::vector<std::string> names;
    std::size_t missing = 0;
    for (const Connection& node : nodes_)
      if (node.state() < State::ready && missing++ < kMostNamed) names.push_back(node.host());
    if (missing == 0) return;
    say(fmt::format(
        "not reached by ssh so far: {}{}", fmt::join(names, ", "),
        missing > names.size() ? fmt::format(" and {} more", missing - names.size()) : ""));
    say(fmt::format("try: ssh {} true, until it works without a question", names.front()));
  }

  // Nodes whose ranks run end them; the others have nothing to end.
  void end(int signal) {
    if (std::exchange(ending_, true)) return;
    start_at_ = kNever;
    for (Connection& node : nodes_) {
      node.send_signal(signal);
      if (node.state() == State::waiting) node.give_up();
    }
    end_at_ = clock_ms() + (begun_ ? static_cast<long>(job_.grace_seconds * 1000) : kSettleTime);
  }

  void advance() {
    const long now = clock_ms();
    if (end_at_ == kNever || now < end_at_) return;
    if (begun_ && !std::exchange(kill_sent_, true)) {
      for (Connection& node : nodes_) node.send_signal(SIGKILL);
      end_at_ = now + kEndWait;
      return;
    }
    killed_ = true;
    for (Connection& node : nodes_) node.kill_transport();
    end_at_ = now + kEndWait;
  }

  void reap() {
    reap_ended(0, [&](const siginfo_t& info, long) {
      for (Connection& node : nodes_)
        if (node.pid() == info.si_pid) {
          const int status = info.si_code == CLD_EXITED ? info.si_status << 8 : info.si_status;
          node.reaped(status, events_);
          take_events(node);
          if (ending_ && node.state() == State::waiting) node.give_up();
          for (int rank = node.first_rank(); rank < node.first_rank() + node.ranks(); ++rank)
            for (const Stream stream : {Stream::out, Stream::err})
              lines_.close(rank, stream, pieces_);
          return;
        }
    });
  }

  void say(const std::string& text) {
    lines_.end_open_line(Stream::err, pieces_);
    add(pieces_, Stream::err, fmt::format("hpclaunch: {}\n", text));
  }

  void write_screen() {
    screen_.add(std::exchange(pieces_, {}));
    screen_.pump();
    if (!screen_.reader_gone(Stream::out) || ending_) return;
    status_ = kOfSignal + SIGPIPE;
    end(SIGTERM);
  }

  // ms for other nodes to say that they do not start either.
  static constexpr long kSettleTime = 300;

  const SshJob& job_;
  const NodePrograms& programs_;
  Signals& signals_;
  const int world_;
  const std::string marker_ = draw_marker();
  const std::string directory_ = working_directory();
  Screen screen_;
  local::Lines lines_;
  std::vector<std::string> variables_;
  std::vector<Connection> nodes_;
  NodeEvents events_;
  Pieces pieces_;
  int status_ = 0;
  bool begun_ = false, ending_ = false, signalled_ = false, kill_sent_ = false, killed_ = false;
  long start_at_ = kNever, end_at_ = kNever;
};

}  // namespace

}  // namespace ssh

Result<int> launch_by_ssh(const SshJob& job, const EnvSnapshot& env) {
  const Result<ssh::NodePrograms> programs = ssh::read_programs(job.libexec);
  if (!programs) return programs.error();
  fill_standard_files();
  ssh::allow_descriptors();
  const KeepExitStatuses statuses;
  sigset_t set = hold(kForwarded);
  sigaddset(&set, SIGCHLD);
  Signals signals(set);
  signal(SIGPIPE, SIG_IGN);
  return ssh::Launch(job, env, *programs, signals).run();
}

}  // namespace hpclaunch::sys
