#include <sys/prctl.h>
#include <sys/socket.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <cstdint>
#include <cstdio>
#include <cstring>
#include <utility>

#include "sys/descendants.h"
#include "sys/local/job.h"

namespace hpclaunch::sys::local {
namespace {

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

namespace {

// Both ends of the message are one program, so numbers cross as they are in memory, and texts behind their
// size. One list of the fields serves both directions.
struct Writer {
  std::string text;
  static constexpr bool complete = true;

  template <class Number>
  void field(Number& number) {
    text.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void field(std::string& value) {
    std::size_t size = value.size();
    field(size);
    text += value;
  }
};

struct Reader {
  std::string_view rest;
  bool complete = true;

  std::string_view take(std::size_t size) {
    complete = complete && size <= rest.size();
    const std::string_view taken = rest.substr(0, complete ? size : 0);
    rest.remove_prefix(taken.size());
    return taken;
  }
  template <class Number>
  void field(Number& number) {
    const std::string_view bytes = take(sizeof number);
    if (complete) std::memcpy(&number, bytes.data(), sizeof number);
  }
  void field(bool& value) {
    char byte = 0;
    field(byte);
    value = byte == 1;
  }
  void field(std::string& value) {
    std::size_t size = 0;
    field(size);
    value = take(size);
  }
};

template <class Wire>
void pass(Wire& wire, Error& error) {
  wire.field(error.kind);
  wire.field(error.message);
  wire.field(error.hint);
}

template <class Wire>
void pass(Wire& wire, Outcome& outcome) {
  Ending& ending = outcome.ending;
  bool failed = ending.first.has_value();
  wire.field(outcome.clean);
  wire.field(failed);
  for (int* number : {&ending.status, &ending.ok, &ending.failed, &ending.ended, &ending.passed_on})
    wire.field(*number);
  if (!failed) return;
  if (!ending.first) ending.first.emplace();
  RankFailure& first = *ending.first;
  for (int* number :
       {&first.rank, &first.local_rank, &first.pid, &first.exit_status, &first.signal})
    wire.field(*number);
  wire.field(first.core);
  wire.field(first.seconds);
  wire.field(first.host);
  std::size_t lines = first.last_lines.size();
  wire.field(lines);
  for (std::size_t i = 0; i < lines && wire.complete; ++i) {
    std::string line = i < first.last_lines.size() ? first.last_lines[i] : "";
    wire.field(line);
    if (i >= first.last_lines.size()) first.last_lines.push_back(std::move(line));
  }
}

template <class Value>
std::optional<Result<Outcome>> read(std::string_view fields) {
  Reader reader{fields};
  Value value;
  pass(reader, value);
  if (!reader.complete || !reader.rest.empty()) return std::nullopt;
  return Result<Outcome>(std::move(value));
}

}  // namespace

std::string encode(const Result<Outcome>& outcome) {
  Writer writer{outcome ? "R" : "E"};
  if (outcome) {
    Outcome copy = *outcome;
    pass(writer, copy);
  } else {
    Error copy = outcome.error();
    pass(writer, copy);
  }
  return writer.text;
}

std::optional<Result<Outcome>> decode(std::string_view message) {
  if (message.empty()) return std::nullopt;
  return message.front() == 'E' ? read<Error>(message.substr(1)) : read<Outcome>(message.substr(1));
}

}  // namespace hpclaunch::sys::local
