// What long lists of hosts cost, in allocations.
#include <fmt/format.h>

#include "hpclaunch/hosts.h"
#include "support/allocations.h"
#include "support/catch.h"

using namespace hpclaunch;

TEST_CASE("the hosts of a large job cost few allocations, however many they are", "[hosts]") {
  std::string file;
  for (int node = 0; node < 100'000; ++node)
    for (int rank = 0; rank < 2; ++rank)
      file += fmt::format("x{:04}c0s0b0n0.domain\n", 1000 + node);
  long before = test::allocations();
  REQUIRE(parse_host_file(file, "h")->names.size() == 100'000);
  CHECK(test::allocations() - before < 200);
  before = test::allocations();
  REQUIRE(expand_hostlist("frontier[000001-100000]")->size() == 100'000);
  CHECK(test::allocations() - before < 200);
}
