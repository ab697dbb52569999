// Where a control group grants time and no CPUs, ranks have as many threads as that and are not bound.
#include <numeric>

#include "plan/jobs.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

struct Found {
  std::vector<int> cores;
  BindVia via = BindVia::shim;
  std::string report;  ///< severity and message
};

Found with_quota(const PlanInput& input) {
  const Result<Plan> plan = make_plan(input);
  REQUIRE(plan);
  Found found;
  found.via = plan->placement.bind_via;
  for (const RankPlan& rank : plan->placement.classes[0].ranks) {
    found.cores.push_back(rank.cores);
    CHECK(rank.cpus.empty() == (found.via == BindVia::none));
  }
  for (const Diagnostic& one : plan->explanation.reports)
    if (one.id == "cpu-quota") found.report = one.message;
  return found;
}

}  // namespace

TEST_CASE("a quota is divided by the ranks of a node", "[plan][quota]") {
  PlanInput in = test::job_on(test::even_machine(2, 1, 32), 1);
  in.cpu_quota = 2;
  in.cpu_quota_why = "cpu.max: 200000 100000";
  asked(in).ranks_per_node = 1;
  Found found = with_quota(in);
  CHECK(found.cores == std::vector<int>{2});
  CHECK(found.via == BindVia::none);
  CHECK(found.report ==
        "the control group grants the time of 2 CPUs and allows 64 (cpu.max: 200000 100000): "
        "2 threads on each node, ranks are not bound");
  in.cpu_quota = 7;
  asked(in).ranks_per_node = 3;
  CHECK(with_quota(in).cores == std::vector<int>{3, 2, 2});
  asked(in).ranks_per_node = 9;
  found = with_quota(in);
  CHECK(found.cores == std::vector<int>(9, 1));
  CHECK_THAT(found.report, ContainsSubstring("9 threads on each node"));
}

TEST_CASE("what was typed is stronger than a quota, and one that limits nothing is none",
          "[plan][quota]") {
  PlanInput in = test::job_on(test::even_machine(1, 1, 8), 1);
  in.cpu_quota = 2;
  asked(in).ranks_per_node = 2;
  asked(in).bind_via = BindVia::shim;
  CHECK(with_quota(in).cores == std::vector<int>{1, 1});
  CHECK(with_quota(in).via == BindVia::shim);
  asked(in).cores_per_rank = 3;
  CHECK(with_quota(in).cores == std::vector<int>{3, 3});
  asked(in) = {};
  asked(in).ranks_per_node = 2;
  for (const int quota : {0, 8, 64}) {
    in.cpu_quota = quota;
    const Found found = with_quota(in);
    CHECK(found.cores == std::vector<int>{4, 4});
    CHECK((found.via == BindVia::launcher && found.report.empty()));
  }
  in.cpu_quota = 4;  // a cpuset of as many CPUs: they are this group's own
  in.node.allowed = *CpuSet::parse("2-5");
  CHECK(with_quota(in).via == BindVia::launcher);
}

TEST_CASE("CPUs that a batch system counts leave ranks unbound and say so", "[plan][quota]") {
  PlanInput in = test::job_on(test::even_machine(2, 1, 8), 1);
  in.cpu_quota = 2;
  in.cpu_quota_why = "exec_host=pn1/0*2, place=free";
  in.cpu_quota_by = "PBS";
  in.cpu_quota_fix = "-l place=scatter:excl";
  asked(in).ranks_per_node = 2;
  asked(in).cores_per_rank = 1;
  const Found found = with_quota(in);
  CHECK(found.cores == std::vector<int>{1, 1});
  CHECK(found.via == BindVia::none);
  CHECK(found.report ==
        "PBS grants 2 of 16 CPUs on each node, and which ones is not known (exec_host=pn1/0*2, "
        "place=free): 2 threads on each node, ranks are not bound");
}
