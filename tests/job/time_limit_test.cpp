// --signal: what can be typed, when the allocation ends, and when the signal is sent.
#include "world/time_limit.h"

#include "support/catch.h"

namespace {

using namespace hpclaunch;
using namespace hpclaunch::job;

TEST_CASE("signals that --signal accepts", "[signal]") {
  for (const char* text : {"USR1@300", "SIGUSR1@300", "usr1@300", "sigusr1", "10@300"}) {
    INFO(text);
    const auto wish = parse_signal(text);
    REQUIRE(wish);
    CHECK(wish->signal == 10);
    CHECK(wish->seconds == 300);
  }
  CHECK(parse_signal("TERM@60")->seconds == 60);
  for (const char* text :
       {"", "@", "@300", "KILL@300", "STOP@5", "SEGV@5", "USR1@", "USR1@0", "USR1@-5", "USR1@1e3",
        "USR1@5 ", "USR1@99999999", "B:USR1@300", "USR3@5", "USR1@5@6"}) {
    INFO(text);
    const auto wish = parse_signal(text);
    REQUIRE_FALSE(wish);
    CHECK(wish.error().kind == ErrorKind::usage);
    CHECK_FALSE(wish.error().hint.empty());
  }
}

TEST_CASE("when the allocation ends", "[signal]") {
  const auto end = [](const std::string& typed, std::vector<std::string> env) {
    World world = this_world(EnvSnapshot(std::move(env)));
    world.clock = [] { return 1000LL; };
    return allocation_end(typed, world, find_batch(world.env));
  };
  CHECK(end("01:00:00", {"SLURM_JOB_END_TIME=5"})->at == 4600);
  CHECK(end("", {"SLURM_JOB_END_TIME=5000", "SLURM_JOB_ID=1"})->at == 5000);
  CHECK_FALSE(end("", {"SLURM_JOB_END_TIME=5000", "PBS_JOBID=1", "PBS_NODEFILE=f", "PATH="}));
  for (const auto& env :
       std::vector<std::vector<std::string>>{{},
                                             {"SLURM_JOB_ID=1", "PATH=/nowhere"},
                                             {"PBS_JOBID=1", "PATH="},
                                             {"FLUX_URI=x", "SLURM_JOB_END_TIME=5000"}}) {
    const auto unknown = end("", env);
    REQUIRE_FALSE(unknown);
    CHECK(unknown.error().hint.find("--ends-in") != std::string::npos);
  }
  CHECK_FALSE(end("3600", {}));
}

TEST_CASE("a signal in time, late, too late and never", "[signal]") {
  std::vector<Diagnostic> diagnostics;
  const SignalRequest wish{10, 300};
  const auto good = plan_signal(wish, {5000, "test"}, 1000, diagnostics);
  REQUIRE(good);
  CHECK(good->signal == TimeLimitSignal{10, 4700, 0, 5000});
  CHECK(good->why.find("1970-01-01T01:18:20Z, 300 s before") != std::string::npos);
  CHECK(diagnostics.empty());
  const auto late = plan_signal(wish, {1200, "test"}, 1000, diagnostics);
  REQUIRE(late);
  CHECK(late->signal == TimeLimitSignal{10, 1100, 0, 1200});
  REQUIRE(diagnostics.size() == 1);
  CHECK(diagnostics[0].id == "signal-late");
  const auto never = plan_signal(wish, {std::nullopt, "test"}, 1000, diagnostics);
  REQUIRE(never);
  CHECK(never->signal == TimeLimitSignal{});
  REQUIRE(diagnostics.size() == 2);
  CHECK(diagnostics[1].id == "signal-never");
  CHECK_FALSE(plan_signal(wish, {1000, "test"}, 1000, diagnostics));
}

}  // namespace
