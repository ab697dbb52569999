#include "probe/child.h"

#include <fcntl.h>
#include <sys/wait.h>
#include <unistd.h>

#include <cerrno>
#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <filesystem>
#include <stdexcept>

#include "support/catch.h"

using namespace hpclaunch;
using probe::run_in_child;

namespace {

constexpr double kPatience =
    60;  ///< for what must not run into the limit, on a machine of any load

int open_descriptors() {
  int count = 0;
  for (const auto& entry : std::filesystem::directory_iterator("/proc/self/fd")) {
    static_cast<void>(entry);
    ++count;
  }
  return count;
}

bool has_children() { return waitpid(-1, nullptr, WNOHANG) >= 0 || errno != ECHILD; }

/// Runs it, and checks what must hold whatever happened.
Result<std::string> run(const std::function<Result<std::string>()>& function,
                        double limit = kPatience) {
  const int before = open_descriptors();
  Result<std::string> result = run_in_child(function, limit);
  CHECK_FALSE(has_children());
  CHECK(open_descriptors() == before);
  return result;
}

std::string message_of(const std::function<Result<std::string>()>& function) {
  const Result<std::string> result = run(function);
  REQUIRE_FALSE(result);
  CHECK(result.error().kind == ErrorKind::system);
  return result.error().message;
}

}  // namespace

TEST_CASE("a child's answer comes back byte for byte", "[child]") {
  for (const std::string& text :
       {std::string(), std::string("v"), std::string("a\0\n\xFF", 4), std::string(1 << 20, 'x')}) {
    const auto got = run([&]() -> Result<std::string> { return text; });
    REQUIRE(got);
    CHECK(*got == text);
  }
}

TEST_CASE("a child's own error comes back whole", "[child]") {
  const auto got = run([]() -> Result<std::string> {
    return Error{ErrorKind::unsupported, "what it was", "what to do"};
  });
  REQUIRE_FALSE(got);
  CHECK(got.error().kind == ErrorKind::unsupported);
  CHECK(got.error().message == "what it was");
  CHECK(got.error().hint == "what to do");
}

TEST_CASE("a child that crashes is reported by signal", "[child]") {
  CHECK(message_of([]() -> Result<std::string> {
          std::raise(SIGSEGV);
          return std::string();
        }) == "the probe crashed: SIGSEGV");
  CHECK(message_of([]() -> Result<std::string> { std::abort(); }) == "the probe crashed: SIGABRT");
  CHECK(message_of([]() -> Result<std::string> {
          std::raise(SIGKILL);
          return std::string();
        }) == "the probe crashed: SIGKILL");
}

TEST_CASE("a child that hangs is killed at the limit", "[child]") {
  const auto got = run(
      []() -> Result<std::string> {
        std::fputs("waiting for a driver\n", stderr);
        for (;;) pause();
      },
      0.2);
  REQUIRE_FALSE(got);
  CHECK(got.error().message == "the probe took longer than 0.2 seconds and was killed");
  CHECK(got.error().hint == "last line of its output: waiting for a driver");
}

TEST_CASE("a child that ignores every polite signal is killed as well", "[child]") {
  const auto got = run(
      []() -> Result<std::string> {
        for (int signal = 1; signal < 32; ++signal) std::signal(signal, SIG_IGN);
        for (;;) pause();
      },
      0.1);
  CHECK_FALSE(got);
}

TEST_CASE("a child that talks a lot does not block and does not reach our output", "[child]") {
  const auto talk = [](std::FILE* stream) {
    const std::string line(1023, '#');
    for (int i = 0; i < 1024; ++i) std::fprintf(stream, "%s\n", line.c_str());
    std::fflush(stream);
  };
  const auto got = run([&]() -> Result<std::string> {
    talk(stdout);
    talk(stderr);
    return std::string(1 << 20, 'y');
  });
  REQUIRE(got);
  CHECK(*got == std::string(1 << 20, 'y'));
}

TEST_CASE("a child that ends by itself is not mistaken for an answer", "[child]") {
  CHECK(message_of([]() -> Result<std::string> { _exit(0); }) ==
        "the probe exited without a result (exit status 0)");
  CHECK(message_of([]() -> Result<std::string> { _exit(7); }) ==
        "the probe exited without a result (exit status 7)");
  CHECK(message_of([]() -> Result<std::string> { throw std::runtime_error("no memory"); }) ==
        "the probe failed: no memory");
}

TEST_CASE("a child that closes every descriptor is noticed", "[child]") {
  CHECK(message_of([]() -> Result<std::string> {
          for (int fd = 0; fd < 256; ++fd) close(fd);
          return std::string("lost");
        }) == "the probe exited without a result (exit status 3)");
  const auto got = run(
      []() -> Result<std::string> {
        for (int fd = 0; fd < 256; ++fd) close(fd);
        for (;;) pause();
      },
      0.2);
  CHECK_FALSE(got);
}

TEST_CASE("a grandchild that keeps the pipes open does not keep us", "[child]") {
  int hold[2];
  REQUIRE(pipe(hold) == 0);
  const auto got = run([&]() -> Result<std::string> {
    if (fork() == 0) {
      close(hold[1]);
      char byte = 0;
      while (read(hold[0], &byte, 1) > 0) {
      }
      _exit(0);
    }
    _exit(5);
  });
  close(hold[0]);
  close(hold[1]);
  REQUIRE_FALSE(got);
  CHECK(got.error().message == "the probe exited without a result (exit status 5)");
}

TEST_CASE("the quoted output is one short line without control bytes", "[child]") {
  const auto got = run([]() -> Result<std::string> {
    std::fputs("first\n\x1b[31mbad\tthing\n  \n", stderr);
    std::fflush(stderr);
    std::abort();
  });
  REQUIRE_FALSE(got);
  CHECK(got.error().hint == "last line of its output: ?[31mbad?thing");
}

TEST_CASE("a child sees no variable that filters devices or hwloc", "[child]") {
  const char* cleared[] = {"HWLOC_XMLFILE", "HWLOC_COMPONENTS", "CUDA_VISIBLE_DEVICES",
                           "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"};
  for (const char* name : cleared) setenv(name, "1", 1);
  setenv("HPCLAUNCH_TEST_KEPT", "kept", 1);
  const auto got = run([&]() -> Result<std::string> {
    for (const char* name : cleared) {
      if (std::getenv(name) != nullptr) return std::string(name);
    }
    return std::string(std::getenv("HPCLAUNCH_TEST_KEPT"));
  });
  REQUIRE(got);
  CHECK(*got == "kept");
  for (const char* name : cleared) {
    CHECK(std::getenv(name) != nullptr);  // ours are as they were
    unsetenv(name);
  }
}

TEST_CASE("a caller without standard descriptors, or that ignores SIGCHLD, is served", "[child]") {
  const auto got = run([]() -> Result<std::string> {
    for (const int fd : {0, 1, 2}) close(fd);
    std::signal(SIGCHLD, SIG_IGN);
    const auto inner = run_in_child(
        []() -> Result<std::string> {
          std::puts("noise");
          return std::string("inner");
        },
        kPatience);
    if (!inner) return inner;
    const bool untouched = fcntl(0, F_GETFD) < 0 && fcntl(1, F_GETFD) < 0 && fcntl(2, F_GETFD) < 0;
    return *inner + (untouched ? "" : ", but descriptors were changed");
  });
  REQUIRE(got);
  CHECK(*got == "inner");
}
