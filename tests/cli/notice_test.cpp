// --signal: what can be typed, what batch systems print, and what follows.
#include <cstdlib>
#include <ctime>

#include "job/time_limit.h"
#include "support/catch.h"

namespace {

using namespace hpclaunch;
using namespace hpclaunch::cli;

TEST_CASE("signals that can be a notice", "[notice]") {
  for (const char* text : {"USR1@300", "SIGUSR1@300", "usr1@300", "sigusr1", "10@300"}) {
    INFO(text);
    const auto wish = parse_notice(text);
    REQUIRE(wish);
    CHECK(wish->signal == 10);
    CHECK(wish->seconds == 300);
  }
  CHECK(parse_notice("TERM@60")->seconds == 60);
  for (const char* text :
       {"", "@", "@300", "KILL@300", "STOP@5", "SEGV@5", "USR1@", "USR1@0", "USR1@-5", "USR1@1e3",
        "USR1@5 ", "USR1@99999999", "B:USR1@300", "USR3@5", "USR1@5@6"}) {
    INFO(text);
    const auto wish = parse_notice(text);
    REQUIRE_FALSE(wish);
    CHECK(wish.error().kind == ErrorKind::usage);
    CHECK_FALSE(wish.error().hint.empty());
  }
}

TEST_CASE("durations", "[notice]") {
  CHECK(parse_duration("01:30:00") == 5400);
  CHECK(parse_duration("5:07") == 307);
  CHECK(parse_duration("0:05") == 5);
  CHECK(parse_duration("1-02:03:04") == 93784);
  CHECK(parse_duration("1:02:03:04") == 93784);
  CHECK(parse_duration("100:00:00") == 360000);
  for (const char* text : {"", "5", "90", "1:60", "1:2:3:4:5", "a:b", ":", "1:", ":1", "-1:00",
                           "1-2", "1-2:3", "1:-2", " 1:00", "99999999999999999999:00"}) {
    INFO(text);
    CHECK_FALSE(parse_duration(text));
  }
}

TEST_CASE("what batch systems print", "[notice]") {
  CHECK(squeue_left("1:00:00\n")->seconds == 3600);
  CHECK(squeue_left("2-00:00:01\n")->seconds == 172801);
  CHECK_FALSE(squeue_left("UNLIMITED\n")->seconds);
  for (const char* text :
       {"", "NOT_SET\n", "INVALID\n", "slurm_load_jobs error: Invalid job id specified"}) {
    CHECK_FALSE(squeue_left(text));
  }
  CHECK(flux_left("3599\n")->seconds == 3599);
  CHECK(flux_left("3599.25\n")->seconds == 3599);
  CHECK_FALSE(flux_left("infinity\n")->seconds);
  CHECK_FALSE(flux_left("flux-job: ERROR: no job"));
  CHECK(bjobs_left("1:05 L\n")->seconds == 3900);
  CHECK_FALSE(bjobs_left("-\n")->seconds);
  CHECK_FALSE(bjobs_left("Job <7> is not found"));
}

TEST_CASE("qstat -f: when it began and how long it may take", "[notice]") {
  setenv("TZ", "UTC", 1);
  tzset();
  const std::string head =
      "Job Id: 12.server\n    Job_Name = train\n    Resource_List.walltime = 01:00:00\n";
  constexpr long long kBegan = 1'795'266'747;  // Sat Nov 21 13:12:27 2026 UTC
  const std::string began = "    stime = Sat Nov 21 13:12:27 2026\n";
  CHECK(qstat_left(head + began, kBegan + 600)->seconds == 3000);
  CHECK(qstat_left(head + "    start_time = Sat Nov 21 13:12:27 2026\n", kBegan + 600)->seconds ==
        3000);
  CHECK(qstat_left(head + began + "    resources_used.walltime = 00:00:10\n", kBegan + 600)
            ->seconds == 3000);
  CHECK(qstat_left(head + "    resources_used.walltime = 00:20:00\n", kBegan)->seconds == 2400);
  CHECK(qstat_left("    Resource_List.walltime = 3600\n" + began, kBegan)->seconds == 3600);
  CHECK_FALSE(qstat_left(head, kBegan));
  CHECK_FALSE(qstat_left(began, kBegan));
  CHECK_FALSE(qstat_left("qstat: Unknown Job Id 12\n", kBegan));
}

TEST_CASE("when the allocation ends", "[notice]") {
  const auto end = [](const std::string& typed, std::vector<std::string> env) {
    return allocation_end(typed, EnvSnapshot(std::move(env)), 1000);
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

TEST_CASE("a notice in time, late, too late and never", "[notice]") {
  std::vector<Diagnostic> diagnostics;
  const NoticeWish wish{10, 300};
  const auto good = plan_notice(wish, {5000, "test"}, 1000, diagnostics);
  REQUIRE(good);
  CHECK(good->notice == TimeLimitSignal{10, 4700});
  CHECK(good->why.find("1970-01-01T01:18:20Z, 300 s before") != std::string::npos);
  CHECK(diagnostics.empty());
  const auto late = plan_notice(wish, {1200, "test"}, 1000, diagnostics);
  REQUIRE(late);
  CHECK(late->notice == TimeLimitSignal{10, 1100});
  REQUIRE(diagnostics.size() == 1);
  CHECK(diagnostics[0].id == "notice-late");
  const auto never = plan_notice(wish, {std::nullopt, "test"}, 1000, diagnostics);
  REQUIRE(never);
  CHECK(never->notice == TimeLimitSignal{});
  REQUIRE(diagnostics.size() == 2);
  CHECK(diagnostics[1].id == "notice-never");
  CHECK_FALSE(plan_notice(wish, {1000, "test"}, 1000, diagnostics));
}

}  // namespace
