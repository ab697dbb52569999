#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <nlohmann/json.hpp>

#include "sys/descendants.h"
#include "sys/local/job.h"

namespace hpclaunch::sys::local {
namespace {

using Json = nlohmann::ordered_json;

constexpr char kName[] = "hpl-guard";

// `killall -9 hpclaunch` and `pkill -9 -f hpclaunch` must not kill the guard, so its name and its command
// line are changed. On failure they stay.
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

[[noreturn]] void finish(int control, const Result<Outcome>& outcome) {
  const std::string message = encode(outcome);
  send(control, message.data(), message.size(), MSG_NOSIGNAL);
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

// CBOR, since the output of a rank may be any bytes.
std::string encode(const Result<Outcome>& outcome) {
  Json message;
  if (!outcome) {
    const Error& error = outcome.error();
    message = {{"error", error.kind}, {"message", error.message}, {"hint", error.hint}};
  } else {
    const Ending& ending = outcome->ending;
    message = {{"status", ending.status},
               {"ok", ending.ok},
               {"failed", ending.failed},
               {"ended", ending.ended},
               {"passed_on", ending.passed_on}};
    if (const auto& first = ending.first)
      message["first"] = {{"rank", first->rank},
                          {"local_rank", first->local_rank},
                          {"pid", first->pid},
                          {"exit_status", first->exit_status},
                          {"signal", first->signal},
                          {"core", first->core},
                          {"seconds", first->seconds},
                          {"host", first->host},
                          {"last_lines", first->last_lines}};
    message["clean"] = outcome->clean;
  }
  std::string bytes;
  Json::to_cbor(message, bytes);
  return bytes;
}

std::optional<Result<Outcome>> decode(std::string_view bytes) {
  const Json message = Json::from_cbor(bytes.begin(), bytes.end(), true, false);
  if (!message.is_object()) return std::nullopt;
  if (message.contains("error"))
    return Error{message["error"], message["message"], message["hint"]};
  Outcome outcome;
  outcome.clean = message["clean"];
  Ending& ending = outcome.ending;
  ending.status = message["status"];
  ending.ok = message["ok"];
  ending.failed = message["failed"];
  ending.ended = message["ended"];
  ending.passed_on = message["passed_on"];
  if (!message.contains("first")) return outcome;
  const Json& fields = message["first"];
  RankFailure& first = ending.first.emplace();
  first.rank = fields["rank"];
  first.local_rank = fields["local_rank"];
  first.pid = fields["pid"];
  first.exit_status = fields["exit_status"];
  first.signal = fields["signal"];
  first.core = fields["core"];
  first.seconds = fields["seconds"];
  first.host = fields["host"];
  first.last_lines = fields["last_lines"].get<std::vector<std::string>>();
  return outcome;
}

}  // namespace hpclaunch::sys::local
