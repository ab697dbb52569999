// The shim's reading of HPCLAUNCH_PLAN and of the environment. What fits a line is asserted beside
// the functions themselves.
#include <array>

#include "hpclaunch/wire.h"
#include "shim/run_rank.h"
#include "support/catch.h"

using namespace hpclaunch;
using hpclaunch::test::run_rank;
using hpclaunch::test::wire_of;
using Entries = std::vector<std::string>;

static_assert(shim::kMaxClasses == kMaxWireClasses && shim::kMaxSet == kMaxWireVariables);
// Whatever fits the wire fits the arena: a fact takes 6 bytes there and 10 here, a zero ends each.
static_assert(shim::kArenaBytes >= kMaxWireBytes + kMaxWireVariables * 16);

namespace {
const std::string kHead = ":rank=R:verify=strict:layout=0*2/1*3/0*1";
}

TEST_CASE("a rank gets its column, its facts and what is for everybody", "[shim]") {
  const std::string wire = wire_of(kHead +
                                   ":RANK=@.rank:LOCAL_RANK=@.local-rank:NODE=@.node"
                                   ":LOCAL_SIZE=@.local-size:ALL=x%3Dy"
                                   ":class=2:MASK=0.0/0.1:cpus=1-8,104/9"
                                   ":class=1:%68ttp=a%2Fb%3A%40%25%20%FF:EMPTY=");
  // Nodes 0, 1 and 5 hold two ranks each, nodes 2, 3 and 4 one.
  const auto first = run_rank(wire, 0);
  CHECK(first.fault.empty());
  CHECK(first.verify == shim::Verify::strict);
  CHECK(first.environment ==
        Entries{"RANK=0", "LOCAL_RANK=0", "NODE=0", "LOCAL_SIZE=2", "ALL=x=y", "MASK=0.0"});
  CHECK(first.binding == shim::Binding::bind);
  CHECK(first.mask.has(1));
  CHECK(first.mask.has(8));
  CHECK(first.mask.has(104));
  CHECK(!first.mask.has(0));
  CHECK(!first.mask.has(9));

  const auto middle = run_rank(wire, 5);
  CHECK(middle.environment == Entries{"RANK=5", "LOCAL_RANK=0", "NODE=3", "LOCAL_SIZE=1", "ALL=x=y",
                                      "http=a/b:@% \xFF", "EMPTY="});
  CHECK(middle.binding == shim::Binding::none);

  const auto last = run_rank(wire, 8);
  CHECK(last.environment ==
        Entries{"RANK=8", "LOCAL_RANK=1", "NODE=5", "LOCAL_SIZE=2", "ALL=x=y", "MASK=0.1"});
  CHECK(run_rank(wire, 9).beyond);
  CHECK(run_rank(wire, 2147483647).beyond);
}

TEST_CASE("an empty item in a list of CPUs binds nothing", "[shim]") {
  const std::string wire = wire_of(":rank=R:layout=0*1:class=3:expect=0//2");
  CHECK(run_rank(wire, 0).binding == shim::Binding::expect);
  CHECK(run_rank(wire, 1).binding == shim::Binding::none);
  CHECK(run_rank(wire, 2).binding == shim::Binding::expect);
}

TEST_CASE("limits and directories are everybody's", "[shim]") {
  const std::string body = ":rank=R:core=0:dir=%2Ftmp%2Fa%20b/%2Ftmp%2F%FF:layout=0*2:class=1:A=x";
  for (const int rank : {0, 1}) {
    const auto result = run_rank(wire_of(body), rank);
    CHECK(result.fault.empty());
    CHECK(result.core == "0");
    CHECK(result.directories == Entries{"/tmp/a b", "/tmp/\xFF"});
    CHECK(result.environment == Entries{"A=x"});
  }
  const auto none = run_rank(wire_of(":rank=R:layout=0*1:class=1"), 0);
  CHECK(none.core.empty());
  CHECK(none.directories.empty());
  CHECK(run_rank(wire_of(":rank=R:core=unlimited:layout=0*1:class=1"), 0).core == "unlimited");
  const std::string longest(shim::kMaxPath - 2, 'x');
  CHECK(run_rank(wire_of(":rank=R:dir=%2F" + longest + ":layout=0*1:class=1"), 0).directories ==
        Entries{"/" + longest});
}

TEST_CASE("what another version has written is refused by every rank", "[shim]") {
  for (const char* directive : {"colour=red", "verify=loud", "stay=long", "end=now", "import=last",
                                "port=0x1", "notice=10", "class=x", "class=0"}) {
    INFO(directive);
    const auto result =
        run_rank(wire_of(std::string(":rank=R:") + directive + ":layout=0*1:class=1"), 0);
    CHECK(result.fault == "unknown directive");
    CHECK(result.piece == directive);
  }
}

TEST_CASE("what is compared and who stays", "[shim]") {
  const std::string wire = wire_of(
      ":rank=R:absent=GONE/AWAY:port=65535:same=A*abcde/B*-_019:stay=kill"
      ":notice=10*9999999999:end=with-parent:hosts=abc...-_0:layout=0*2/1*1"
      ":class=2:granted=8:part=0-3/4-7:class=1:granted=2:part=0-1");
  const auto plan = std::make_unique<shim::Plan>();
  REQUIRE(shim::read_plan({wire.data(), static_cast<int>(wire.size())}, *plan).what == nullptr);
  CHECK(plan->absent == "GONE/AWAY");
  CHECK(plan->port == 65535);
  CHECK(plan->same == "A*abcde/B*-_019");
  CHECK(plan->stay == shim::Stay::kill);
  CHECK(plan->with_parent);
  CHECK(plan->signal == 10);
  CHECK(plan->signal_at == 9999999999ULL);
  CHECK(plan->hosts == "abc...-_0");
  CHECK(run_rank(wire, 1, {"GONE=1", "STAYS=2", "AWAY=", "HPCLAUNCH_CHANNEL=1"}).environment ==
        Entries{"STAYS=2"});
  for (const auto& [rank, granted, first, last] :
       {std::array{1, 8, 4, 7}, std::array{2, 8, 0, 3}, std::array{4, 2, 0, 1}}) {
    shim::Place place;
    place.rank = rank;
    REQUIRE(shim::locate(*plan, place));
    const auto task = std::make_unique<shim::Task>();
    REQUIRE(shim::read_task(*plan, place, *task).what == nullptr);
    CHECK(task->binding == shim::Binding::part);
    CHECK(task->granted == granted);
    CHECK(task->part_first == first);
    CHECK(task->part_last == last);
  }
}

TEST_CASE("the checksum catches a cut at every byte, a change of any, and anything put behind",
          "[shim]") {
  const std::string wire = wire_of(kHead + ":class=2:A=1/2:class=1:B=3");
  REQUIRE(run_rank(wire, 0).fault.empty());
  for (std::size_t at = 4; at < wire.size(); ++at) {
    INFO(wire.substr(0, at));
    CHECK(run_rank(wire.substr(0, at), 0).fault == "cut short or changed on its way");
    for (int bit = 0; bit < 8; ++bit) {
      std::string changed = wire;
      changed[at] = static_cast<char>(changed[at] ^ (1 << bit));
      CHECK(run_rank(changed, 0).fault == "cut short or changed on its way");
    }
  }
  CHECK(run_rank(wire + ":C=4", 0).fault == "cut short or changed on its way");
  for (const std::string& other : {"hl1" + wire.substr(3), wire.substr(0, 3), std::string()})
    CHECK(run_rank(other, 0).fault == "unknown version");
}

TEST_CASE("the environment keeps everything but what the plan says", "[shim]") {
  const std::string wire = wire_of(":rank=R:layout=0*1:class=1:SET=new:LD=x:OTHER=a");
  const Entries before = {"Z=1",
                          "SET=old",
                          "SET2=kept",
                          "no equals sign",
                          "SET",
                          "Z=2",
                          "=odd=",
                          "SET=old",
                          "HPCLAUNCH_PLAN=",
                          "HPCLAUNCH_PLANS=k",
                          "HPCLAUNCH_PLAN=x",
                          "A=\n\xFF=b"};
  CHECK(run_rank(wire, 0, before).environment ==
        Entries{"Z=1", "SET2=kept", "no equals sign", "SET", "Z=2", "=odd=", "HPCLAUNCH_PLANS=k",
                "A=\n\xFF=b", "SET=new", "LD=x", "OTHER=a"});
}

TEST_CASE("of a name that the plan sets twice, the later one holds", "[shim]") {
  const std::string wire = wire_of(":rank=R:A=all:layout=0*1:class=1:A=class:%41=escaped");
  CHECK(run_rank(wire, 0).environment == Entries{"A=escaped"});
}

TEST_CASE("limits are reported, not overrun", "[shim]") {
  std::string fields = ":rank=R:layout=0*1:class=1";
  for (int i = 0; i < shim::kMaxSet; ++i) fields += ":V" + std::to_string(i) + "=x";
  CHECK(run_rank(wire_of(fields), 0).environment.size() == shim::kMaxSet);
  CHECK(run_rank(wire_of(fields + ":ONE_MORE=x"), 0).fault == "too many variables, or too long");

  const std::string small = wire_of(":rank=R:layout=0*1:class=1:AB=cd:F=@.rank");  // AB=cd. F=0.
  CHECK(run_rank(small, 0, {}, 10).fault.empty());
  for (int room = 0; room < 10; ++room) {
    CHECK(run_rank(small, 0, {}, room).fault == "too many variables, or too long");
  }
  CHECK(run_rank(small, 0, {"X=1"}, 64, 4).environment.size() == 3);
  for (int room = 1; room < 4; ++room) {
    CHECK(run_rank(small, 0, {"X=1"}, 64, room).fault == "environment full");
  }

  std::string classes = ":rank=R:layout=0*1";
  for (int i = 0; i < shim::kMaxClasses; ++i) classes += ":class=1";
  CHECK(run_rank(wire_of(classes), 0).fault.empty());
  CHECK(run_rank(wire_of(classes + ":class=1"), 0).fault == "unknown directive");
}

TEST_CASE("a fault of all ranks is reported by rank 0, and never by nobody", "[shim]") {
  const auto reports = [](const Entries& entries, shim::Text name) {
    test::Environment environment(entries);
    return shim::reports(environment.get(), name);
  };
  CHECK(reports({"R=0"}, "R"));
  CHECK(!reports({"R=1"}, "R"));
  CHECK(!reports({"R=1", "PMI_RANK=0"}, "R"));
  CHECK(reports({"PMI_RANK=0"}, {}));
  CHECK(!reports({"PMI_RANK=3"}, {}));
  CHECK(!reports({"FLUX_TASK_RANK=3"}, "R"));
  CHECK(reports({}, "R"));
  CHECK(reports({"R=", "X=1"}, "R"));
  CHECK(reports({"PMIX_RANK=junk"}, {}));
  // One node may lack the plan where rank 0 has it.
  CHECK(reports({"PMI_RANK=2", "MPI_LOCALRANKID=0"}, {}));
  CHECK(!reports({"PMI_RANK=3", "MPI_LOCALRANKID=1"}, {}));
  CHECK(!reports({"R=2", "SLURM_LOCALID=0"}, "R"));
  // A job inside a job: two launchers' variables disagree, so better one line too many.
  CHECK(reports({"SLURM_PROCID=5", "OMPI_COMM_WORLD_RANK=0"}, {}));
}
