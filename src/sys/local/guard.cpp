#include "sys/local/guard.h"

#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstdlib>
#include <cstring>

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

// 'R' clean status, or 'E' kind message \0 hint; then a full stop that shows that nothing is
// missing.
std::string encode(const Result<Outcome>& outcome) {
  if (!outcome) {
    const Error& error = outcome.error();
    std::string text = "E";
    text += static_cast<char>(error.kind);
    return text + error.message + '\0' + error.hint + '.';
  }
  std::string text = "R";
  text += outcome->clean ? '1' : '0';
  return text + std::to_string(outcome->status) + '.';
}

std::optional<Result<Outcome>> decode(std::string_view message) {
  if (message.size() < 4 || message.back() != '.') return std::nullopt;
  message.remove_suffix(1);
  const std::string rest(message.substr(2));
  if (message[0] == 'R') return Outcome{std::atoi(rest.c_str()), message[1] == '1'};
  const std::size_t middle = rest.find('\0');
  return Error{static_cast<ErrorKind>(message[1]), rest.substr(0, middle), rest.substr(middle + 1)};
}

}  // namespace hpclaunch::sys::local
