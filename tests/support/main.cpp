// What a failed test case prints last: the command that repeats it alone.
#if __has_include(<catch2/catch_all.hpp>)
#include <catch2/catch_session.hpp>
#include <catch2/reporters/catch_reporter_event_listener.hpp>
#include <catch2/reporters/catch_reporter_registrars.hpp>
using Listener = Catch::EventListenerBase;
#else
#define CATCH_CONFIG_RUNNER
#include <catch2/catch.hpp>
using Listener = Catch::TestEventListenerBase;
#endif
#include <cstdio>
#include <string>
#include <type_traits>

namespace {

std::string program;

// A value in Catch2 2, a pointer in 3.
template <class Info>
std::string name_of(const Info& info) {
  if constexpr (std::is_pointer_v<Info>)
    return info->name;
  else
    return info.name;
}

// As a pattern of Catch2 inside quotes of the shell.
std::string quoted(const std::string& name) {
  std::string text;
  for (const char c : name) {
    if (c == ',' || c == '[' || c == '"') text += "\\";
    text += c == '\'' ? std::string("'\\''") : std::string(1, c);
  }
  return "'" + text + "'";
}

struct Again : Listener {
  using Listener::Listener;
  void testCaseEnded(const Catch::TestCaseStats& stats) override {
    if (stats.totals.assertions.failed == 0) return;
    again += "again: " + program + " " + quoted(name_of(stats.testInfo)) + "\n";
  }
  void testRunEnded(const Catch::TestRunStats&) override { std::fputs(again.c_str(), stderr); }
  std::string again;
};

}  // namespace

CATCH_REGISTER_LISTENER(Again)

int main(int argc, char** argv) {
  program = argv[0];
  // Catch2 ends with the number of failures: 77 of them would read as a test that was left out.
  return Catch::Session().run(argc, argv) == 0 ? 0 : 1;
}
