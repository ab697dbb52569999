// Whom a question is put to, and what comes of it.
#include "sys/questions.h"

#include <string>
#include <vector>

#include "support/catch.h"

using namespace hpclaunch::sys;

namespace {

const std::vector<std::string> kHosts = {"n1", "n1", "n2", "n2", "n3"};

}  // namespace

TEST_CASE("NCCL is asked on another node where one gives no answer", "[questions]") {
  std::vector<std::string> missing(kHosts.size());
  int asked = 0;
  Questions questions({.count = static_cast<int>(kHosts.size()),
                       .host = [&](int rank) { return kHosts[rank]; },
                       .missing = [&](int rank) { return missing[rank]; },
                       .ask = [&](int number, bool) { asked = number; }});
  const auto put = [&](int answers) {  // the rank to which NCCL answers
    questions.ask(false, [](const std::vector<RankStacks>&) {});
    for (int rank = 0; rank < static_cast<int>(kHosts.size()); ++rank)
      questions.hear(asked, rank, rank == answers ? "stacks\nras\tOK\n" : "stacks\n", true);
    questions.turn();
    return questions.ras_rank();
  };
  CHECK(questions.ras_rank() == 0);
  CHECK(put(0) == 0);
  CHECK(put(-1) == 2);
  CHECK(put(2) == 2);
  missing[4] = "it has ended";
  CHECK(put(-1) == 0);
  missing[4] = "";
  missing[2] = "its node does not answer";
  CHECK(put(-1) == 4);
  CHECK(put(-1) == 0);
}
