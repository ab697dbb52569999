#include <algorithm>

#include "hpclaunch/check.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

Setting typed(const std::string& name, const std::string& value) {
  return {name, {{Layer::command_line, value, {"<command line>"}, "--set"}}};
}

Setting exported(const std::string& name, const std::string& value) {
  return {name,
          {{Layer::builtin, std::string("1"), {"hpclaunch"}, "why"},
           {Layer::environment, value, {"<environment>"}, "from the environment"}}};
}

std::vector<Diagnostic> diagnostics(std::vector<Setting> env,
                                    std::vector<std::string> exports = {}) {
  Plan plan;
  plan.hosts.names = {"n0"};
  plan.placement.classes = {NodeClass{{RankPlan{}}}};
  plan.placement.layout = {NodeRun{0, 1}};
  plan.environment.settings = std::move(env);
  return check_plan(plan, Topology{}, EnvSnapshot(std::move(exports)));
}

}  // namespace

TEST_CASE("what is typed is judged in full", "[check]") {
  const auto bad = diagnostics({typed("NCCL_IB_DISABLE", "true")});
  REQUIRE(bad.size() == 1);
  CHECK(bad[0].id == "bad-value");
  CHECK(bad[0].severity == Severity::error);
  CHECK(bad[0].fix == "--set NCCL_IB_DISABLE=1");

  const auto near = diagnostics({typed("NCCL_SOKET_IFNAME", "hsn0")});
  REQUIRE(near.size() == 1);
  CHECK(near[0].id == "unknown-variable");
  CHECK(near[0].severity == Severity::warning);
  CHECK(near[0].fix == "--set NCCL_SOCKET_IFNAME=hsn0");

  const auto old = diagnostics({typed("NCCL_TREE_THRESHOLD", "0")});
  REQUIRE(old.size() == 1);
  CHECK(old[0].id == "old-variable");
  CHECK(old[0].fix == "hpclaunch explain NCCL_ALGO");

  CHECK(diagnostics({typed("EPOCHS", "many"), typed("NCCL_IB_DISABLE", "1"),
                     typed("CUDA_VISIBLE_DEVICES", "")})
            .empty());
}

TEST_CASE("an unset variable and a value that lost are nobody's mistake", "[check]") {
  Setting unset{"FI_CXI_OVFLOW_BUF_SIZE",
                {{Layer::command_line, Unset{}, {"<command line>"}, "--unset"}}};
  CHECK(diagnostics({unset}).empty());
  Setting twice{"NCCL_IB_DISABLE",
                {{Layer::command_line, std::string("true"), {}, "--set"},
                 {Layer::command_line, std::string("1"), {}, "--set"}}};
  CHECK(diagnostics({twice}).empty());
}

TEST_CASE("exports are remarked only where the plan decides too, and never refused", "[check]") {
  const auto bad = diagnostics({exported("OMP_NUM_THREADS", "many")}, {"OMP_NUM_THREADS=many"});
  REQUIRE(bad.size() == 1);
  CHECK(bad[0].id == "bad-value");
  CHECK(bad[0].severity == Severity::warning);
  CHECK(bad[0].fix == "unset OMP_NUM_THREADS");

  CHECK(diagnostics({}, {"NCCL_IB_DISABLE=true", "NCCL_SOKET_IFNAME=x", "EPOCHS=3"}).empty());
  const auto misspelt = diagnostics({}, {"FI_CXI_OVFLOW_BUF_SIZE=8"});
  REQUIRE(misspelt.size() == 1);
  CHECK(misspelt[0].id == "unknown-variable");
  CHECK(misspelt[0].severity == Severity::warning);
  CHECK(misspelt[0].fix == "export FI_CXI_OFLOW_BUF_SIZE=8");
}

TEST_CASE("a secret's value stays out of the diagnostics", "[check]") {
  for (const Diagnostic& diagnostic :
       diagnostics({typed("PMI_SHARED_SECRET", "hunter2"), typed("HF_TOKEN", "hunter2"),
                    typed("NCCL_SECRETT", "hunter2")}))
    CHECK((diagnostic.message + diagnostic.fix).find("hunter2") == std::string::npos);
}
