#include "probe/child.h"

#include <fmt/format.h>
#include <sys/prctl.h>
#include <sys/resource.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstdlib>
#include <cstring>
#include <exception>
#include <string_view>
#include <vector>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

extern char** environ;

namespace hpclaunch::probe {
namespace {

/// Variables beside the vendors' (device_vendor.h) and hwloc's that change what a probe sees.
constexpr std::string_view kCleared[] = {"ZE_ENABLE_PCI_ID_DEVICE_ORDER", "SYCL_DEVICE_FILTER",
                                         "SYCL_DEVICE_ALLOWLIST", "FI_PROVIDER"};

constexpr std::size_t kMaxAnswer = std::size_t{64} << 20;
constexpr std::size_t kMaxRemarks = 2048;  ///< the last bytes of stderr that are kept

// The result in the pipe: its length in decimal, a newline, then a mark and the text.
// 'v': value. 'e': kind digit, message, NUL, hint.
std::string pack(const Result<std::string>& result) {
  const std::string body = result ? "v" + *result
                                  : fmt::format("e{}{}{}{}", static_cast<int>(result.error().kind),
                                                result.error().message, '\0', result.error().hint);
  return fmt::format("{}\n{}", body.size(), body);
}

Result<std::string> unpack(std::string_view body) {
  if (body.substr(0, 1) == "v") return std::string(body.substr(1));
  if (body.size() < 2) return Error{ErrorKind::system, "the probe's result is malformed"};
  const std::size_t end = std::min(body.find('\0', 2), body.size());
  Error error{static_cast<ErrorKind>(body[1] - '0'), std::string(body.substr(2, end - 2))};
  if (end < body.size()) error.hint = std::string(body.substr(end + 1));
  return error;
}

/// The body once it has come in whole; an empty view before.
std::string_view whole_body(std::string_view received) {
  const std::size_t end = received.find('\n');
  if (end == std::string_view::npos) return {};
  const auto length = parse_natural(received.substr(0, end), static_cast<long>(kMaxAnswer));
  const std::string_view body = received.substr(end + 1);
  if (!length || *length < 1 || body.size() < static_cast<std::size_t>(*length)) return {};
  return body.substr(0, static_cast<std::size_t>(*length));
}

// ---- the child -------------------------------------------------------------------------------------

void clear_environment() {
  std::vector<std::string> names;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry) {
    const std::string_view pair = *entry;
    const std::string_view name = pair.substr(0, pair.find('='));
    if (is_device_variable(name) || name.starts_with("HWLOC_") ||
        std::ranges::count(kCleared, name) > 0)
      names.emplace_back(name);
  }
  for (const std::string& name : names) unsetenv(name.c_str());
}

void prepare_child(int remarks, pid_t parent) {
  prctl(PR_SET_PDEATHSIG, SIGKILL);
  if (getppid() != parent) _exit(1);
  for (const int crash : {SIGSEGV, SIGBUS, SIGABRT, SIGFPE, SIGILL}) std::signal(crash, SIG_DFL);
  rlimit no_core{};
  if (getrlimit(RLIMIT_CORE, &no_core) == 0) {
    no_core.rlim_cur = 0;
    setrlimit(RLIMIT_CORE, &no_core);
  }
  dup2(remarks, STDOUT_FILENO);
  dup2(remarks, STDERR_FILENO);
  clear_environment();
}

[[noreturn]] void answer_in_child(const std::function<Result<std::string>()>& function,
                                  int answer) {
  Result<std::string> result = Error{};
  try {
    result = function();
  } catch (const std::exception& error) {
    result = Error{ErrorKind::system, fmt::format("the probe failed: {}", error.what())};
  }
  _exit(sys::write_all(answer, pack(result)) ? 0 : 3);
}

// ---- the parent ------------------------------------------------------------------------------------

/// The last line that is not blank, cut to a length that fits a message.
std::string last_line(std::string_view remarks) {
  constexpr std::size_t kMaxLength = 200;
  remarks = trim(remarks);
  const std::string_view last = trim(remarks.substr(remarks.rfind('\n') + 1));
  return last.empty() ? "" : fmt::format("last line of its output: {}", shown(last, kMaxLength));
}

Error no_answer(int status, const std::string& remarks) {
  std::string message =
      WIFSIGNALED(status)
          ? fmt::format("the probe crashed: {}", sys::signal_name(WTERMSIG(status)))
          : fmt::format("the probe exited without a result (exit status {})", WEXITSTATUS(status));
  return Error{ErrorKind::system, std::move(message), last_line(remarks)};
}

/// What both pipes have brought so far.
struct Intake {
  std::string answer;
  std::string remarks;
  int answer_fd = -1;  ///< -1 from its end on, as remarks_fd
  int remarks_fd = -1;

  /// False: there was nothing.
  bool take(const sys::Wait& wait) {
    const bool answered = answer_fd >= 0 && wait.ready(answer_fd);
    const bool remarked = remarks_fd >= 0 && wait.ready(remarks_fd);
    if (answered && !sys::read_some(answer_fd, answer)) answer_fd = -1;
    if (remarked && !sys::read_some(remarks_fd, remarks)) remarks_fd = -1;
    if (remarks.size() > kMaxRemarks) remarks.erase(0, remarks.size() - kMaxRemarks);
    return answered || remarked;
  }
};

long milliseconds(double seconds) {
  return static_cast<long>(std::clamp(seconds, 0.0, 86400.0) * 1000);
}

// The rest of a result that is larger than the pipe needs time after the limit: at least a second.
Result<std::string> listen(sys::Child& child, Intake in, double limit_seconds, long start,
                           bool* late) {
  const long end = std::max(start + milliseconds(limit_seconds),
                            sys::clock_ms() + milliseconds(std::min(limit_seconds, 1.0)));
  do {
    // A descendant may keep the pipes open, and a child may close its end and live on: only its own end
    // counts, and what it wrote before that can be read by then.
    const bool ended = child.ended();
    sys::Wait wait;
    wait.on(in.answer_fd);
    wait.on(in.remarks_fd);
    wait.on(child.fd());
    wait.until(ended ? sys::clock_ms() : end);
    wait.run();
    const bool silent = !in.take(wait);
    const std::string_view body = whole_body(in.answer);
    if (!body.empty()) return unpack(body);
    if (in.answer.size() > kMaxAnswer)
      return Error{ErrorKind::system, "the probe's result is longer than 64 MiB"};
    if (ended && silent) return no_answer(child.status, in.remarks);
  } while (sys::clock_ms() < end);
  if (late != nullptr) *late = true;
  return Error{ErrorKind::system,
               fmt::format("the probe took longer than {} seconds and was killed", limit_seconds),
               last_line(in.remarks)};
}

}  // namespace

Result<std::string> run_in_child(const std::function<Result<std::string>()>& function,
                                 double limit_seconds, const std::function<void()>& meanwhile,
                                 bool* late) {
  sys::Pipe answer;
  sys::Pipe remarks;
  const bool piped = answer.open() && remarks.open();
  const pid_t parent = getpid();
  const long start = sys::clock_ms();
  const pid_t pid = piped ? fork() : -1;
  if (pid < 0) {
    Error error{ErrorKind::system,
                fmt::format("{}: {}", piped ? "fork" : "pipe", std::strerror(errno))};
    meanwhile();
    return error;
  }
  if (pid == 0) {
    prepare_child(remarks.write_end, parent);
    answer_in_child(function, answer.write_end);
  }
  sys::Child child(pid);
  answer.close_write();
  remarks.close_write();
  meanwhile();
  return listen(child, {{}, {}, answer.read_end, remarks.read_end}, limit_seconds, start, late);
}

}  // namespace hpclaunch::probe
