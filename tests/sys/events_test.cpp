// The event core and the commands that run on it.
#include "hpclaunch/events.h"

#include <sys/wait.h>
#include <unistd.h>

#include <csignal>
#include <string>
#include <vector>

#include "hpclaunch/sys.h"
#include "support/catch.h"
#include "sys/descendants.h"

namespace {

using namespace hpclaunch::sys;

hpclaunch::Result<Captured> shell(const std::string& script, double limit = 60) {
  return capture({"/bin/sh", "-c", script}, limit);
}

// Waits without a deadline: a wake-up that is lost makes the test hang, and ctest end it.
int wait_for(Child& child) {
  while (!child.ended()) {
    Wait wait;
    wait.on(child.fd());
    wait.run();
  }
  return child.shell_status();
}

pid_t start(int pause_us, int status) {
  const pid_t pid = fork();
  if (pid != 0) return pid;
  usleep(static_cast<useconds_t>(pause_us));
  _exit(status);
}

TEST_CASE("a child's end wakes us", "[events]") {
  for (const int pause_us : {0, 20'000}) {
    Child child(start(pause_us, 7));
    CHECK(wait_for(child) == 7);
    CHECK(child.fd() == -1);
  }
  sigset_t mask;
  sigprocmask(SIG_BLOCK, nullptr, &mask);
  CHECK_FALSE(sigismember(&mask, SIGCHLD));
}

TEST_CASE("of two children each wakes who waits for it", "[events]") {
  for (const int pause_us : {0, 20'000}) {
    Child outer(start(pause_us, 7));
    {
      Child inner(start(20'000 - pause_us, 8));
      CHECK(wait_for(inner) == 8);
    }
    CHECK(wait_for(outer) == 7);
  }
}

TEST_CASE("a child is gone at the latest with its object", "[events]") {
  const pid_t pid = fork();
  if (pid == 0)
    for (;;) pause();
  { const Child child(pid); }
  CHECK(kill(pid, 0) != 0);
}

TEST_CASE("children that are not to be waited for are left alone", "[events]") {
  const pid_t left = start(600'000'000, 0), other = start(600'000'000, 0);
  CHECK(end_descendants(60, {left}));
  CHECK(kill(other, 0) != 0);
  CHECK(kill(left, 0) == 0);
  CHECK(signal_children(SIGKILL, {left}) == 0);
  CHECK(signal_children(SIGKILL) == 1);
  CHECK(waitpid(left, nullptr, 0) == left);
}

TEST_CASE("signals come out of a descriptor while they are blocked", "[events]") {
  Signals signals(signal_set({SIGUSR1}));
  CHECK_FALSE(signals.next());
  raise(SIGUSR1);
  Wait wait;
  wait.on(signals.fd());
  wait.run();
  CHECK(wait.ready(signals.fd()));
  const auto seen = signals.next();
  REQUIRE(seen);
  CHECK(seen->ssi_signo == SIGUSR1);
  CHECK(signal_name(SIGUSR1) == "SIGUSR1");
  CHECK(signal_name(SIGSYS) == "SIGSYS");
  CHECK(signal_name(SIGRTMIN + 3) == "SIGRTMIN+3");
}

TEST_CASE("a deadline ends a wait, the nearest one first", "[events]") {
  const long start = clock_ms();
  Wait wait;
  wait.until(kNever);
  wait.until(start + 60'000);
  wait.until(start + 20);
  wait.run();
  CHECK(clock_ms() - start >= 20);
  CHECK(clock_ms() - start < 30'000);
}

TEST_CASE("whole lines are taken, the rest stays", "[events]") {
  std::string begun = "a\n\nb";
  std::vector<std::string> lines;
  take_lines(begun, [&](std::string_view line) { lines.emplace_back(line); });
  CHECK(lines == std::vector<std::string>{"a", ""});
  CHECK(begun == "b");
}

TEST_CASE("a command's status, stdout and stderr come apart", "[command]") {
  const auto got = shell("echo node1,node2; echo 'flux: WARNING: a thing' >&2; exit 3");
  REQUIRE(got);
  CHECK(got->status == 3);
  CHECK(got->out == "node1,node2\n");
  CHECK(got->err == "flux: WARNING: a thing\n");
  CHECK(got->complaint() == "flux: WARNING: a thing");
  CHECK(shell("kill -TERM $$")->status == 128 + SIGTERM);
  CHECK(shell("head -c 300000 /dev/zero; head -c 300000 /dev/zero >&2")->out.size() == 300'000);
  CHECK(shell("yes")->out.size() < (2u << 20));
  CHECK(shell("cat")->out.empty());
}

TEST_CASE("a command that runs too long is killed with its children", "[command]") {
  const long start = clock_ms();
  const auto got = shell("trap '' TERM; sleep 1000 & sleep 1000", 0.1);
  REQUIRE_FALSE(got);
  CHECK(got.error().message == "\"/bin/sh\" did not answer within 0.1 seconds");
  CHECK(clock_ms() - start < 30'000);
}

TEST_CASE("a descendant that keeps the output open does not delay the answer", "[command]") {
  const long start = clock_ms();
  const auto got = shell("sleep 1000 & echo said");
  REQUIRE(got);
  CHECK(got->out == "said\n");
  CHECK(clock_ms() - start < 30'000);
  CHECK_FALSE(capture({"/no/such/program"}, 1));
}

TEST_CASE("each line of a command is heard while it runs", "[command]") {
  std::vector<std::string> lines;
  const auto take = [&](std::string_view line, double) { lines.emplace_back(line); };
  const auto ended = listen_to({"/bin/sh", "-c", "echo one; echo two; printf three; exit 4"},
                               environment(), 60, 1, take);
  REQUIRE(ended);
  CHECK(ended->status == 4);
  CHECK(lines == std::vector<std::string>{"one", "two", "three"});
  const auto late =
      listen_to({"/bin/sh", "-c", "trap '' TERM; sleep 1000"}, environment(), 0.1, 0.1, take);
  REQUIRE(late);
  CHECK(late->too_late);
  CHECK(late->status == 128 + SIGKILL);
}

}  // namespace
