#include "sys/local/guard.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <charconv>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <system_error>
#include <utility>

#include "sys/local/sweep.h"

namespace hpclaunch::sys::local {
namespace {

constexpr char kName[] = "hpl-guard";

// `killall -9 hpclaunch` and `pkill -9 -f hpclaunch` shall leave one process to clean up behind
// them, so its name and its command line are different ones. Cosmetic: on failure they stay.
void rename_self() {
  prctl(PR_SET_NAME, kName);
  std::FILE* file = std::fopen("/proc/self/stat", "re");
  if (file == nullptr) return;
  char text[1024];
  const std::size_t size = std::fread(text, 1, sizeof text - 1, file);
  std::fclose(file);
  text[size] = '\0';
  const char* field = std::strrchr(text, ')');
  constexpr int kFirstAfterName = 3;
  constexpr int kArgStart = 48;
  for (int i = kFirstAfterName; field != nullptr && i <= kArgStart; ++i) {
    field = std::strchr(field + 1, ' ');
  }
  std::uintptr_t start = 0;
  std::uintptr_t end = 0;
  if (field == nullptr || std::sscanf(field, " %zu %zu", &start, &end) != 2) return;
  if (start == 0 || end < start + sizeof kName) return;
  char* const line = reinterpret_cast<char*>(start);
  std::memset(line, 0, end - start);
  std::memcpy(line, kName, sizeof kName);
}

[[noreturn]] void supervisor(const Job& job, int control) {
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGPIPE, SIG_IGN);
  const std::string message = encode(supervise(job, control));
  send(control, message.data(), message.size(), MSG_NOSIGNAL);
  _exit(0);
}

}  // namespace

void guard(const Job& job, int control) {
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t pid = fork();
  if (pid == 0) supervisor(job, control);
  if (pid < 0) {
    const std::string message = encode(Error{ErrorKind::system, "cannot start another process"});
    send(control, message.data(), message.size(), MSG_NOSIGNAL);
    _exit(0);
  }
  for (const int fd : {control, 0, 1, 2}) close(fd);
  rename_self();
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) != 0 && errno == EINTR) continue;
  end_children(kHopeless);
  _exit(0);
}

namespace {

// Fields of any bytes: their length, a colon, themselves.
void put(std::string& text, std::string_view field) {
  text += std::to_string(field.size());
  text += ':';
  text += field;
}

void put(std::string& text, int number) { put(text, std::to_string(number)); }

class Fields {
 public:
  explicit Fields(std::string_view text) : rest_(text) {}

  std::string take() {
    std::size_t size = 0;
    const char* const end = rest_.data() + rest_.size();
    const auto [colon, bad] = std::from_chars(rest_.data(), end, size);
    const auto left = static_cast<std::size_t>(end - colon);
    if (bad != std::errc{} || left == 0 || *colon != ':' || size > left - 1) {
      whole_ = false;
      rest_ = {};
      return {};
    }
    std::string field(colon + 1, size);
    rest_.remove_prefix(rest_.size() - left + 1 + size);
    return field;
  }
  int number() { return std::atoi(take().c_str()); }
  bool whole() const { return whole_; }

 private:
  std::string_view rest_;
  bool whole_ = true;
};

void put(std::string& text, const RankFailure& first) {
  for (const int number : {first.rank, first.local_rank, first.pid, first.exit_status, first.signal,
                           first.core ? 1 : 0, static_cast<int>(first.seconds * 1000)}) {
    put(text, number);
  }
  put(text, first.host);
  put(text, static_cast<int>(first.last_lines.size()));
  for (const std::string& line : first.last_lines) put(text, line);
}

RankFailure take_failure(Fields& fields) {
  RankFailure first;
  for (int* number :
       {&first.rank, &first.local_rank, &first.pid, &first.exit_status, &first.signal}) {
    *number = fields.number();
  }
  first.core = fields.number() == 1;
  first.seconds = fields.number() / 1000.0;
  first.host = fields.take();
  for (int lines = fields.number(); lines > 0 && fields.whole(); --lines) {
    first.last_lines.push_back(fields.take());
  }
  return first;
}

}  // namespace

// 'R' or 'E', fields, and a full stop that shows that nothing is missing.
std::string encode(const Result<Outcome>& outcome) {
  std::string text;
  if (!outcome) {
    const Error& error = outcome.error();
    text = "E";
    put(text, static_cast<int>(error.kind));
    put(text, error.message);
    put(text, error.hint);
    return text + '.';
  }
  const Ending& ending = outcome->ending;
  text = "R";
  for (const int number : {outcome->clean ? 1 : 0, ending.status, ending.ok, ending.failed,
                           ending.ended, ending.passed_on, ending.first ? 1 : 0}) {
    put(text, number);
  }
  if (ending.first) put(text, *ending.first);
  return text + '.';
}

std::optional<Result<Outcome>> decode(std::string_view message) {
  if (message.size() < 2 || message.back() != '.') return std::nullopt;
  Fields fields(message.substr(1, message.size() - 2));
  if (message[0] == 'E') {
    Error error;
    error.kind = static_cast<ErrorKind>(fields.number());
    error.message = fields.take();
    error.hint = fields.take();
    if (!fields.whole()) return std::nullopt;
    return Result<Outcome>(std::move(error));
  }
  Outcome outcome;
  outcome.clean = fields.number() == 1;
  Ending& ending = outcome.ending;
  for (int* number :
       {&ending.status, &ending.ok, &ending.failed, &ending.ended, &ending.passed_on}) {
    *number = fields.number();
  }
  if (fields.number() == 1) ending.first = take_failure(fields);
  if (!fields.whole()) return std::nullopt;
  return Result<Outcome>(std::move(outcome));
}

}  // namespace hpclaunch::sys::local
