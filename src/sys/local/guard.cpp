#include <fcntl.h>
#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sys/descendants.h"
#include "sys/local/job.h"

namespace hpclaunch {
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Error, kind, message, hint)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Raised, type, message, file, line, function)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Traceback, raised, cause, fatal, begin, end)
}  // namespace hpclaunch

namespace hpclaunch::sys {
// What the local launcher knows of a failure, and of a job.
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(RankFailure, rank, local_rank, pid, exit_status, signal, core,
                                   seconds, peak_kib, oom_kills, host, last_lines, traceback, log)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(Ending, status, ok, failed, ended, passed_on, interrupted_by,
                                   time_limit, stalled, stall, stacks)
}  // namespace hpclaunch::sys

namespace hpclaunch::sys::local {
namespace {

using Json = nlohmann::json;

constexpr char kName[] = "hpl-guard";

// `killall -9 hpclaunch` and `pkill -9 -f hpclaunch` must not kill the guard, so its name and its command
// line are changed. On failure they stay.
void rename_self() {
  prctl(PR_SET_NAME, kName);
  char text[2048];  // without the heap and the locale: each of their pages is one more to copy
  const int file = open("/proc/self/stat", O_RDONLY | O_CLOEXEC);
  const ssize_t size = read(file, text, sizeof text - 1);
  close(file);
  text[std::max<ssize_t>(size, 0)] = '\0';
  char* field = std::strrchr(text, ')');
  constexpr int kFirstAfterName = 3;
  constexpr int kArgStart = 48;
  for (int i = kFirstAfterName; field != nullptr && i <= kArgStart; ++i) {
    field = std::strchr(field + 1, ' ');
  }
  if (field == nullptr) return;
  const std::uintptr_t start = std::strtoul(field, &field, 10);
  const std::uintptr_t end = std::strtoul(field, nullptr, 10);
  if (start == 0 || end < start + sizeof kName) return;
  char* const line = reinterpret_cast<char*>(start);
  std::memset(line, 0, end - start);
  std::memcpy(line, kName, sizeof kName);
}

[[noreturn]] void finish(int control, const Result<Ending>& outcome) {
  const std::string message = encode(outcome);
  send(control, message.data(), message.size(), MSG_NOSIGNAL);
  shutdown(control,
           SHUT_WR);  // the end of our memory takes its time, and comes before that of our files
  _exit(0);
}

[[noreturn]] void supervisor(const Job& job, int control) {
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  signal(SIGPIPE, SIG_IGN);
  finish(control, supervise(job, control));
}

}  // namespace

void guard(const Job& job, int control) {
  setsid();
  prctl(PR_SET_CHILD_SUBREAPER, 1);
  const pid_t pid = fork();
  if (pid == 0) supervisor(job, control);
  if (pid < 0) finish(control, Error{ErrorKind::system, "cannot start another process"});
  for (const int fd : {control, 0, 1, 2}) close(fd);
  rename_self();
  siginfo_t info{};
  while (waitid(P_PID, static_cast<id_t>(pid), &info, WEXITED) != 0 && errno == EINTR) continue;
  end_descendants(kKillPatience);
  _exit(0);
}

// CBOR, since the output of a rank may be any bytes; `true` is the end of a whole message.
std::string encode(const Result<Ending>& outcome) {
  Json message = outcome ? Json(*outcome) : Json(outcome.error());
  if (outcome && outcome->first) message["first"] = *outcome->first;
  std::string bytes;
  Json::to_cbor(Json::array({message, true}), bytes);
  return bytes;
}

std::optional<Result<Ending>> decode(std::string_view bytes) {
  const Json whole = Json::from_cbor(bytes.begin(), bytes.end(), true, false);
  if (!whole.is_array() || whole.back() != true) return std::nullopt;
  const Json& message = whole.front();
  if (message.contains("hint")) return message.get<Error>();
  Ending ending = message.get<Ending>();
  if (message.contains("first")) ending.first = message["first"].get<RankFailure>();
  return ending;
}

}  // namespace hpclaunch::sys::local
