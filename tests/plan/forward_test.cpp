// What a launcher reads itself: variables that it must be told by name, that it needs, that it must not see.
#include <algorithm>

#include "hpclaunch/check.h"
#include "hpclaunch/make_plan.h"
#include "plan/jobs.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

PlanInput job(int hosts, std::vector<std::string> exported) {
  PlanInput in = test::job_on(test::even_machine(1, 1, 4), hosts);
  in.env = EnvSnapshot(std::move(exported));
  in.launcher.local_rank_var = "L";
  in.launcher.binds_sets = false;
  in.launcher.names_variables = true;
  return in;
}

Plan plan_of(const PlanInput& in) {
  Result<Plan> plan = make_plan(in);
  if (!plan) FAIL(plan.error().message);
  return std::move(*plan);
}

bool has(const Plan& plan, const char* name) {
  return std::find(plan.environment.forward.begin(), plan.environment.forward.end(), name) !=
         plan.environment.forward.end();
}

const Setting& setting(const Plan& plan, const char* name) {
  const Setting* found = plan.find_env(name);
  REQUIRE(found != nullptr);
  return *found;
}

}  // namespace

TEST_CASE("what a launcher must be told by name", "[plan][forward]") {
  PlanInput in = job(2, {"PATH=/bin", "LD_LIBRARY_PATH=/l", "MINE=1", "OMP_NUM_THREADS=3",
                         "EMPTY=", "RANK=7", "GONE=1", "HPCLAUNCH_PROFILE_PATH=/p", "NO_EQUALS"});
  asked(in).set = {{"TYPED", "1"}, {"TERM", "vt100"}};
  asked(in).unset = {"GONE", "NEVER"};
  const Plan plan = plan_of(in);
  CHECK(std::is_sorted(plan.environment.forward.begin(), plan.environment.forward.end()));
  for (const char* name : {"PATH", "LD_LIBRARY_PATH", "MINE", "EMPTY", "OMP_NUM_THREADS", "TYPED",
                           "TERM", "HPCLAUNCH_PLAN", "HPCLAUNCH_PROFILE_PATH", "MASTER_ADDR",
                           "MASTER_PORT", "WORLD_SIZE", "PYTHONUNBUFFERED", "HPCLAUNCH_CHANNEL"}) {
    INFO(name);
    CHECK(has(plan, name));
  }
  for (const char* name : {"GONE", "NEVER", "RANK", "LOCAL_RANK", "NO_EQUALS"}) {
    INFO(name);
    CHECK_FALSE(has(plan, name));
  }
  asked(in).supervise = false;
  CHECK_FALSE(has(plan_of(in), "HPCLAUNCH_CHANNEL"));
}

TEST_CASE("what belongs to this host, this login or a launcher stays here", "[plan][forward]") {
  const std::vector<std::string> here = {"_=/x",         "HOSTNAME=h",
                                         "PWD=/",        "OLDPWD=/",
                                         "SHLVL=1",      "DISPLAY=:0",
                                         "TERM=x",       "TERM_PROGRAM=x",
                                         "SSH_CLIENT=1", "XDG_RUNTIME_DIR=/r",
                                         "USER=me",      "SLURM_JOB_ID=1",
                                         "PBS_JOBID=1",  "OMPI_MCA_btl=self",
                                         "PMIX_RANK=0",  "PRTE_MCA_x=1",
                                         "LSB_JOBID=1",  "BASH_FUNC_ml%%=() {  :; }",
                                         "1X=1",         "with space=1",
                                         "a.b=1"};
  const Plan plan = plan_of(job(2, here));
  for (const std::string& entry : here) {
    INFO(entry);
    CHECK_FALSE(has(plan, entry.substr(0, entry.find('=')).c_str()));
  }
}

TEST_CASE("one node, and a launcher that passes everything on, need no names", "[plan][forward]") {
  PlanInput in = job(1, {"A=1"});
  CHECK_FALSE(plan_of(in).environment.forward.empty());  // that node may be another machine
  in.first_is_here = true;
  CHECK(plan_of(in).environment.forward.empty());
  in = job(2, {"A=1"});
  in.first_is_here = true;
  CHECK_FALSE(plan_of(in).environment.forward.empty());
  in.launcher.names_variables = false;
  CHECK(plan_of(in).environment.forward.empty());
}

TEST_CASE("variables of the launcher's own are set, those for root only for root",
          "[plan][presets]") {
  PlanInput in = job(1, {"PIN=1", "ROOT=0"});
  in.launcher.presets = {{"PIN", "0", "the shim binds"},
                         {"ROOT", "1", "it refuses", LauncherTraits::Preset::as_root}};
  Plan plan = plan_of(in);
  CHECK(setting(plan, "PIN").value() == Value(std::string("0")));
  CHECK(setting(plan, "PIN").history.back().why == "the shim binds");
  CHECK(plan.find_env("ROOT") == nullptr);
  in.as_root = true;
  plan = plan_of(in);
  CHECK(setting(plan, "ROOT").value() == Value(std::string("0")));  // what was exported was meant
  in.env = EnvSnapshot();
  plan = plan_of(in);
  CHECK(setting(plan, "ROOT").value() == Value(std::string("1")));
  CHECK(setting(plan, "ROOT").history.back().why == "it refuses");
  asked(in).set = {{"PIN", "2"}};
  asked(in).unset = {"ROOT"};
  plan = plan_of(in);
  CHECK(setting(plan, "PIN").value() == Value(std::string("2")));
  CHECK(setting(plan, "ROOT").value() == Value(Unset{}));
}

TEST_CASE("a variable for qualified hosts is set where one is, and yields to an exported one",
          "[plan][presets]") {
  const auto value = [](const std::vector<std::string>& hosts,
                        const std::vector<std::string>& env = {}) {
    PlanInput in = job(static_cast<int>(hosts.size()), env);
    in.hosts = hosts;
    in.launcher.presets = {{"KEEP", "1", "domains", LauncherTraits::Preset::qualified_hosts}};
    const Plan plan = plan_of(in);
    return plan.find_env("KEEP") == nullptr ? Value(Unset{}) : setting(plan, "KEEP").value();
  };
  CHECK(value({"n1", "n2"}) == Value(Unset{}));
  CHECK(value({"n1", "10.0.0.1"}) == Value(Unset{}));
  CHECK(value({"n1", "n2.example.org"}) == Value(std::string("1")));
  CHECK(value({"n1.a", "n1.b"}, {"KEEP=0"}) == Value(std::string("0")));
}

TEST_CASE("what a launcher takes from its ranks is not expected there", "[plan][presets]") {
  PlanInput in = job(2, {"PRTE_MCA_x=1", "OMPI_MCA_x=1"});
  in.launcher.removes = "PMIX_ PRTE_";
  asked(in).set = {{"PRTE_Y", "2"}, {"PMIX_Z", "3"}, {"OTHER", "4"}};
  const Plan plan = plan_of(in);
  CHECK(plan.environment.launcher_only == std::vector<std::string>{"PMIX_Z", "PRTE_Y"});
  const std::vector<std::string> names = names_to_report(plan, in.env);
  CHECK(std::ranges::count(names, "OTHER") == 1);
  CHECK(std::ranges::count(names, "PRTE_Y") == 0);
}

TEST_CASE("conflicting may be all names that begin alike", "[plan][conflicting]") {
  PlanInput in = job(1, {"PIN_A=1", "PIN_B=2", "PIN=3", "PINS=4", "X=5"});
  in.launcher.conflicting = {{"PIN_", "it would bind again", false, false, true},
                             {"X", "it would start more", false, false, false}};
  const Plan plan = plan_of(in);
  for (const char* name : {"PIN_A", "PIN_B", "X"})
    CHECK(setting(plan, name).value() == Value(Unset{}));
  CHECK(setting(plan, "PIN_B").history.back().why == "it would bind again");
  CHECK(plan.find_env("PIN") == nullptr);
  CHECK(plan.find_env("PINS") == nullptr);
}

TEST_CASE("a variable may conflict only beside or without another one", "[plan][conflicting]") {
  LauncherTraits::ConflictingVariable total{"TOTAL", "two numbers"};
  total.beside = {"EACH"};
  total.without = {"HAVE"};
  const auto removed = [&](const std::vector<std::string>& env) {
    PlanInput in = job(1, env);
    in.launcher.conflicting = {total};
    const Plan plan = plan_of(in);
    return plan.find_env("TOTAL") != nullptr && setting(plan, "TOTAL").value() == Value(Unset{});
  };
  CHECK(removed({"TOTAL=1", "EACH=2", "HAVE=1"}));
  CHECK(removed({"TOTAL=1"}));
  CHECK_FALSE(removed({"TOTAL=1", "HAVE=1"}));
}

TEST_CASE("names of another launcher are set where this one has none", "[plan][identity]") {
  PlanInput in = job(2, {"THEIR_RANK=7", "THEIR_SIZE=9"});
  in.launcher.aliases = {{Identity::local_rank, "THEIR_RANK"},
                         {Identity::local_size, "THEIR_SIZE"}};
  in.launcher.conflicting = {{"THEIR_RANK", "of another launch"},
                             {"THEIR_SIZE", "of another launch"}};
  const Plan plan = plan_of(in);
  CHECK(setting(plan, "THEIR_RANK").value() == Value(RankFact::local_rank));
  CHECK(setting(plan, "THEIR_SIZE").value() == setting(plan, "LOCAL_WORLD_SIZE").value());
  asked(in).agent = true;  // which is no rank
  CHECK(setting(plan_of(in), "THEIR_RANK").value() == Value(Unset{}));
}

TEST_CASE("a shell inside a step is noticed", "[plan][step]") {
  const auto inside = [](const char* value) {
    PlanInput in = job(1, {std::string("STEP=") + value});
    in.launcher.step_var = "STEP";
    const Plan plan = plan_of(in);
    CHECK((plan.find_choice("inside-step") != nullptr) == plan.launch.beside_steps);
    return plan.launch.beside_steps;
  };
  CHECK(inside("0"));
  CHECK(inside("17"));
  CHECK_FALSE(inside(""));
  CHECK_FALSE(inside("batch"));
  CHECK_FALSE(inside("4294967290"));  // the interactive step, which shares its nodes by itself
  PlanInput in = job(1, {"STEP=1"});
  CHECK_FALSE(plan_of(in).launch.beside_steps);
}
