// Runs a command whose output is read: to its end (capture), or line by line while it runs (listen_to).
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/mman.h>
#include <unistd.h>

#include <algorithm>

#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "sys/descendants.h"
#include "sys/start.h"

namespace hpclaunch::sys {
namespace {

constexpr long kLinger =
    500;  // ms for output that a descendant still writes after the command's end
constexpr std::size_t kMostCaptured = 1u << 20;

// The loop of both. A time limit or a signal ends the command's process group: TERM, and KILL when the
// grace is over.
class Command {
 public:
  Command(pid_t pid, double limit_seconds, double grace_seconds)
      : child_(pid),
        end_at_(clock_ms() + static_cast<long>(limit_seconds * 1000)),
        grace_(static_cast<long>(grace_seconds * 1000)),
        last_signal_(grace_ == 0 ? SIGKILL : 0) {}

  struct Stream {
    int fd = -1;  // -1 from its end on
    std::string text;
  };

  void call(const std::function<void()>& late, long at) {
    late_ = late;
    late_at_ = at;
  }

  /// Asked after each `read`.
  void stop_when(const std::function<bool()>& enough) { enough_ = enough; }

  /// `read` is called whenever a stream has got more text; `signals` may be null.
  template <class Read>
  Ended run(std::vector<Stream*> streams, Signals* signals, Read read) {
    const auto open = [](const Stream* stream) { return stream->fd >= 0; };
    while (!child_.ended(last_signal_) || std::any_of(streams.begin(), streams.end(), open)) {
      Wait wait;
      for (const Stream* stream : streams) wait.on(stream->fd);
      if (signals != nullptr) wait.on(signals->fd());
      wait.on(child_.fd());
      wait.until(deadline());
      wait.until(late_at_);
      wait.run();
      if (late_at_ != kNever && clock_ms() >= late_at_) {
        late_at_ = kNever;
        late_();
      }
      for (Stream* stream : streams) {
        if (stream->fd < 0 || !wait.ready(stream->fd)) continue;
        if (!read_some(stream->fd, stream->text)) stream->fd = -1;
        read();
        if (!enough_ || ended_.enough || !enough_()) continue;
        ended_.enough = true;
        terminate();
      }
      take_signals(signals);
      if (!child_.ended(last_signal_)) {
        end_in_time();
      } else if (ended_at_ == kNever) {
        ended_at_ = clock_ms();
      } else if (clock_ms() >= ended_at_ + kLinger) {
        for (Stream* stream : streams) stream->fd = -1;
      }
    }
    ended_.status = child_.shell_status();
    return ended_;
  }

 private:
  long deadline() const {
    if (ended_at_ != kNever) return ended_at_ + kLinger;
    return kill_at_ == kNever ? end_at_ : kill_at_;
  }

  void take_signals(Signals* signals) {
    while (signals != nullptr) {
      const auto seen = signals->next();
      if (!seen) return;
      if (ended_.interrupted_by != 0) continue;
      ended_.interrupted_by = static_cast<int>(seen->ssi_signo);
      terminate();
    }
  }

  void end_in_time() {
    if (kill_at_ == kNever && clock_ms() >= end_at_) {
      ended_.too_late = true;
      terminate();
    }
    if (kill_at_ == kNever || clock_ms() < kill_at_) return;
    child_.signal_group(SIGKILL);
    child_.signal(SIGKILL);
    kill_at_ = clock_ms() + kLinger;  // again, should it have left the group
  }

  void terminate() {
    if (kill_at_ != kNever) return;
    kill_at_ = clock_ms() + grace_;
    child_.signal_group(SIGTERM);
  }

  Child child_;
  long end_at_;
  long grace_;
  int last_signal_;  // for what is left of its process group when it has ended
  long kill_at_ = kNever;
  long ended_at_ = kNever;
  long late_at_ = kNever;
  std::function<void()> late_;
  std::function<bool()> enough_;
  Ended ended_;
};

}  // namespace

Result<Captured> capture(const std::vector<std::string>& argv, double limit_seconds,
                         const EnvSnapshot* env, std::string_view text) {
  Pipe input;
  Pipe output;
  Pipe errors;
  if (!input.open() || !output.open() || !errors.open())
    return system_error("cannot create a pipe");
  if (!text.empty()) {  // a pipe would block where the text is longer than its buffer
    const int file = memfd_create("input", MFD_CLOEXEC);
    const bool good = file >= 0 && write_all(file, text) && lseek(file, 0, SEEK_SET) == 0 &&
                      dup3(file, input.read_end, O_CLOEXEC) >= 0;
    const Error error = system_error("cannot prepare the input of a command");
    if (file >= 0) close(file);
    if (!good) return error;
  }
  input.close_write();  // it reads the end of the file
  // What the command has started ends with us, too: no signal may come between its start and our listening. A caller
  // that has blocked them hears of them itself.
  sigset_t blocked;
  sigprocmask(SIG_SETMASK, nullptr, &blocked);
  const bool heard = sigismember(&blocked, SIGINT) == 1;
  std::optional<Signals> signals;
  if (!heard) signals.emplace(unless_ignored({SIGINT, SIGTERM, SIGHUP}));
  const Result<pid_t> pid =
      start_program(argv, env != nullptr ? &env->entries() : nullptr,
                    {.input = input.read_end,
                     .output = output.write_end,
                     .errors = errors.write_end,
                     .group = Start::Group::own});  // so that the limit ends its children too
  if (!pid) return pid.error();
  output.close_write();
  errors.close_write();
  Command::Stream out{output.read_end, {}};
  Command::Stream err{errors.read_end, {}};
  const Ended ended =
      Command(*pid, limit_seconds, 0).run({&out, &err}, heard ? nullptr : &*signals, [&] {
        if (out.text.size() + err.text.size() < kMostCaptured) return;
        out.fd = err.fd = -1;
        output.close_read();  // SIGPIPE
        errors.close_read();
      });
  signals.reset();
  if (ended.interrupted_by != 0) raise(ended.interrupted_by);
  if (ended.too_late)
    return Error{ErrorKind::system,
                 fmt::format("\"{}\" did not answer within {} seconds", argv[0], limit_seconds)};
  return Captured{ended.status, std::move(out.text), std::move(err.text)};
}

std::string Captured::complaint() const {
  const std::string_view text = trim(err.empty() ? out : err);
  return std::string(text.substr(0, text.find('\n')));
}

Result<Ended> listen_to(const std::vector<std::string>& argv, const EnvSnapshot& env,
                        double limit_seconds, double grace_seconds,
                        const std::function<void(std::string_view, double)>& line,
                        const std::function<void()>& late, const std::function<bool()>& enough) {
  Pipe input;
  Pipe output;
  if (!input.open() || !output.open()) return system_error("cannot create a pipe");
  const Subreaper reaper;
  Signals signals(hold({SIGINT, SIGTERM, SIGHUP}));
  const Result<pid_t> pid = start_program(argv, &env.entries(),
                                          {.input = input.read_end,
                                           .output = output.write_end,
                                           .group = Start::Group::own,
                                           .when_we_die = SIGTERM});
  if (!pid) return pid.error();
  input.close_read();
  output.close_write();
  Command::Stream out{output.read_end, {}};
  Command command(*pid, limit_seconds, grace_seconds);
  if (late) command.call(late, clock_ms() + kStartPatience);
  if (enough) command.stop_when(enough);
  Ended ended = command.run({&out}, &signals, [&] {
    const double at = wall_clock();
    take_lines(out.text, [&](std::string_view whole) { line(whole, at); });
  });
  if (!out.text.empty()) line(out.text, wall_clock());
  if (reaper.alone()) end_descendants(kKillPatience);
  return ended;
}

}  // namespace hpclaunch::sys
