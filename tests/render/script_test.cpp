#include "hpclaunch/render.h"
#include "plans.h"
#include "support/catch.h"
#include "support/golden.h"

using namespace hpclaunch;

namespace {

const std::vector<EnvChange> kChanges = {{"MASTER_ADDR", "node01", "host of rank 0"},
                                         {"OMP_PLACES", std::nullopt, "would move\nthreads"},
                                         {"NOTE", "it's $HOME", ""}};

}  // namespace

TEST_CASE("dry-run scripts", "[render][script]") {
  const auto sample = test::two_nodes();
  test::check_golden("render/two_nodes.sh", *render_script(kChanges, sample.argv, true));
  test::check_golden("render/two_ranks.sh",
                     *render_script({}, test::two_ranks().plan.launch.command, false));
}

TEST_CASE("a script needs a program, and words without zero bytes", "[render][script]") {
  CHECK(render_script({}, {}, false).error().kind == ErrorKind::usage);
  CHECK(render_script({}, {"/bin/echo", std::string("a\0b", 3)}, false).error().kind ==
        ErrorKind::unsupported);
  CHECK(render_script({{"A-B", "1", ""}}, {"/bin/true"}, false).error().message ==
        "sh cannot represent A-B: a name must be letters, digits and underscores");
}
