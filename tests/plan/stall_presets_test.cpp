// What --stall sets for the libraries of collectives.
#include "hpclaunch/make_plan.h"
#include "plan/jobs.h"
#include "support/catch.h"
#include "support/random_topology.h"

using namespace hpclaunch;

namespace {

PlanInput node_of(const char* vendor) {
  PlanInput in = test::job_on(test::even_machine(1, 2, 4), 2);
  if (*vendor != '\0') test::add_devices({0, 1}, vendor, in.node);
  in.launch_key = "key";
  return in;
}

Plan planned(PlanInput in, std::optional<int> stall) {
  asked(in).output.stall_seconds = stall;
  const Result<Plan> plan = make_plan(in);
  REQUIRE(plan);
  return *plan;
}

// "" where it is not set.
std::string value(const Plan& plan, const char* name) {
  const Setting* setting = plan.find_env(name);
  const auto* text = setting == nullptr ? nullptr : std::get_if<std::string>(&setting->value());
  return text == nullptr ? "" : *text;
}

constexpr const char* kAll[] = {"TORCH_FR_BUFFER_SIZE",
                                "TORCH_NCCL_TRACE_BUFFER_SIZE",
                                "TORCH_FR_DUMP_TEMP_FILE",
                                "TORCH_NCCL_DEBUG_INFO_TEMP_FILE",
                                "TORCH_FR_DUMP_ON_TIMEOUT",
                                "TORCH_NCCL_DUMP_ON_TIMEOUT",
                                "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
                                "TORCH_FR_DEBUG_INFO_PIPE_FILE",
                                "NCCL_RAS_ADDR"};

}  // namespace

TEST_CASE("--stall: the recorder under both names, and a port of RAS for the launch", "[plan]") {
  for (const char* vendor : {"nvidia", "amd"}) {
    INFO(vendor);
    const Plan plan = planned(node_of(vendor), 300);
    const std::string folder = "/tmp/hpclaunch-stall-key";
    for (const char* name : {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE"})
      CHECK(value(plan, name) == "2000");
    for (const char* name : {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"})
      CHECK(value(plan, name) == folder + "/flight-recorder-");
    for (const char* name : {"TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT"})
      CHECK(value(plan, name) == "1");
    CHECK(value(plan, "TORCH_NCCL_DEBUG_INFO_PIPE_FILE") == folder + "/pipe-");
    CHECK(value(plan, "NCCL_RAS_ADDR") == "localhost:12349");  // beside MASTER_PORT
    CHECK(plan.environment.make_dirs == std::vector<std::string>{folder});
    CHECK(plan.find_env("NCCL_RAS_ADDR")->history.back().why.starts_with("--stall: "));
  }
}

TEST_CASE("--stall: the recorder of XCCL has its own names", "[plan]") {
  const Plan plan = planned(node_of("intel"), kLearned);
  CHECK(value(plan, "TORCH_FR_BUFFER_SIZE") == "2000");
  CHECK(value(plan, "TORCH_FR_DEBUG_INFO_PIPE_FILE") == "/tmp/hpclaunch-stall-key/pipe-");
  for (const char* name : {"TORCH_NCCL_TRACE_BUFFER_SIZE", "TORCH_NCCL_DEBUG_INFO_PIPE_FILE",
                           "TORCH_FR_DUMP_ON_TIMEOUT", "NCCL_RAS_ADDR"})
    CHECK(plan.find_env(name) == nullptr);
}

TEST_CASE("--stall: nothing without it, without devices, or where they are hidden", "[plan]") {
  PlanInput hidden = node_of("nvidia");
  asked(hidden).devices_per_rank = 0;
  for (const Plan& plan : {planned(node_of("nvidia"), std::nullopt), planned(node_of(""), 300),
                           planned(hidden, 300)}) {
    for (const char* name : kAll) CHECK(plan.find_env(name) == nullptr);
    CHECK(plan.environment.make_dirs.empty());
  }
}

TEST_CASE("--stall: what the user chose stays, under either name", "[plan]") {
  PlanInput in = node_of("nvidia");
  in.env = EnvSnapshot({"TORCH_NCCL_TRACE_BUFFER_SIZE=9"});
  asked(in).set = {{"TORCH_FR_DUMP_TEMP_FILE", "/logs/dump-"},
                   {"NCCL_RAS_ADDR", "localhost:7"},
                   {"MASTER_PORT", "65535"}};
  const Plan plan = planned(in, 300);
  CHECK(plan.find_env("TORCH_FR_BUFFER_SIZE") == nullptr);
  CHECK(plan.find_env("TORCH_NCCL_DEBUG_INFO_TEMP_FILE") == nullptr);
  CHECK(value(plan, "TORCH_FR_DUMP_TEMP_FILE") == "/logs/dump-");
  CHECK(value(plan, "NCCL_RAS_ADDR") == "localhost:7");
  std::vector<TypedVariable>& set = asked(in).set;
  set.erase(set.begin() + 1);
  CHECK(value(planned(in, 300), "NCCL_RAS_ADDR") == "localhost:65531");
}

TEST_CASE("--stall needs hpclaunch beside the launcher", "[plan]") {
  PlanInput in = node_of("nvidia");
  asked(in).output.stall_seconds = 300;
  asked(in).supervise = false;
  const Result<Plan> plan = make_plan(in);
  REQUIRE(!plan);
  CHECK(plan.error().message == "--no-supervise and --stall exclude each other");
}
