#include "hpclaunch/render.h"
#include "plans.h"
#include "support/catch.h"
#include "support/golden.h"

using namespace hpclaunch;

TEST_CASE("histories, newest first", "[render][explain]") {
  const Style style;
  test::check_golden("render/two_ranks.explain", explain(test::two_ranks().plan, {}, style));
  test::check_golden("render/two_nodes.explain", explain(test::two_nodes().plan, {}, style));
  test::check_golden("render/uneven.explain", explain(test::uneven().plan, {}, {false, false, 50}));
}

TEST_CASE("only what was asked for, in that order", "[render][explain]") {
  const Plan plan = test::two_ranks().plan;
  const std::string text = explain(plan, {"RANK", "launcher"}, {});
  CHECK(text.substr(0, 5) == "RANK\n");
  CHECK(text.find("\nlauncher\n") != std::string::npos);
  CHECK(text.find("cpu-bind") == std::string::npos);
  CHECK(explain(plan, {"NO_SUCH"}, {}).empty());
}

TEST_CASE("secrets stay hidden, whoever gave them", "[render][explain]") {
  Plan plan = test::two_ranks().plan;
  plan.environment.settings = {{"MY_API_KEY",
                                {{Layer::environment, "from-env", {"<environment>"}, "exported"},
                                 {Layer::command_line, "from-line", {"<command line>"}, "typed"},
                                 {Layer::command_line, Unset{}, {"<command line>"}, "typed"}}}};
  const std::string text = explain(plan, {}, {});
  CHECK(text.find("from-") == std::string::npos);
  CHECK(text.find("(unset)") != std::string::npos);
}
