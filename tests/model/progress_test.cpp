// How far ranks are: dumps of the flight recorder (tests/data/flight_recorder/make.py), answers of RAS as its manual and
// sources have them.
#include "hpclaunch/progress.h"

#include <fstream>
#include <sstream>
#include <string>

#include "support/catch.h"

using namespace hpclaunch;
using namespace hpclaunch::stacks;

namespace {

std::string file(const std::string& name) {
  std::ifstream in(HPCLAUNCH_SOURCE_DIR "/tests/data/" + name, std::ios::binary);
  REQUIRE(in);
  std::stringstream text;
  text << in.rdbuf();
  return text.str();
}

Sequences recorder(int rank) {
  Result<Sequences> made =
      parse_flight_recorder(rank, file("flight_recorder/rank" + std::to_string(rank) + ".pickle"));
  REQUIRE(made);
  return *made;
}

GroupProgress ras(const std::string& name) {
  const Result<Sequences> made = parse_ras(file("ras/" + name));
  REQUIRE(made);
  REQUIRE(!made->empty());
  return made->front();
}

using Counts = std::map<int, long>;
using Ranks = std::vector<int>;

std::string refused(const std::string& pickle) {
  const Result<Sequences> made = parse_flight_recorder(0, pickle);
  return made ? "" : made.error().message;
}

}  // namespace

TEST_CASE("flight recorder: four ranks, one of which is late") {
  const Sequences all = merged({recorder(0), recorder(1), recorder(2), recorder(3)});
  REQUIRE(all.size() == 2);
  const GroupProgress& world = all[0];
  CHECK(world.group == "0 (default_pg)");
  CHECK(world.ranks == Ranks{0, 1, 2, 3});
  CHECK(world.launched == Counts{{0, 8}, {1, 7}, {2, 6}, {3, 7}});
  CHECK(world.completed == Counts{{0, 6}, {1, 6}, {2, 6}, {3, 6}});
  CHECK(world.current == Counts{{0, 7}, {1, 7}, {3, 7}});
  CHECK(world.operation.at(0) == "all_reduce");
  CHECK(world.operation.at(3) == "all_gather");  // not what the others call
  CHECK(world.sizes.at(0) == "[[1024, 8]]");
  CHECK(world.place.at(0) == "/home/u/train.py:41 step");
  CHECK(world.peer.empty());
  CHECK(stuck_ranks(world, world) == Ranks{2});
}

TEST_CASE("flight recorder: a receive between two ranks of a group") {
  const Sequences one = recorder(1);
  REQUIRE(one.size() == 2);
  CHECK(one[1].group == "5");
  CHECK(one[1].operation.at(1) == "recv");
  CHECK(one[1].current.at(1) == 3);
  CHECK(one[1].peer.at(1) == 3);  // the second of the group [1, 3]
  CHECK(one[1].sizes.at(1) == "[[4]]");
  CHECK(one[1].launched.empty());
}

TEST_CASE("flight recorder: a pickle that could run code is refused") {
  // os.system, as pickle.dumps writes it with protocol 2 and with 4
  CHECK(refused(std::string("\x80\x02") + "cposix\nsystem\nq\x01X\x02\x00\x00\x00idq\x02\x85R.")
            .find("opcode 0x63 is refused") != std::string::npos);
  CHECK(refused("\x80\x04\x8c\x05posix\x8c\x06system\x93\x8c\x02id\x85R.").find("0x93") !=
        std::string::npos);
  for (const char* opcode :
       {"R", "i", "o", "b", "P", "Q", "\x81", "\x82", "\x92", "I", "S", "l", "d"})
    CHECK(refused(std::string("\x80\x02") + opcode).find("is refused") != std::string::npos);
}

TEST_CASE("flight recorder: what is no dump") {
  CHECK(refused("").find("cut") != std::string::npos);
  CHECK(refused("\x80\x01N.").find("protocol 1") != std::string::npos);
  CHECK(refused("\x80\x02}.").find("version") != std::string::npos);
  CHECK(refused("\x80\x02NN.").find("not one value") != std::string::npos);
  CHECK(refused("\x80\x02u.").find("mark is missing") != std::string::npos);
  CHECK(refused("\x80\x02h\x07.").find("used before") != std::string::npos);
  CHECK(refused("\x80\x02(NNu.").find("missing") != std::string::npos);
  CHECK(refused("\x80\x02" + std::string(100, '(')).find("deep") != std::string::npos);
  CHECK(refused(std::string("\x80\x02X\xff\xff\xff\xff", 7) + "a").find("cut") !=
        std::string::npos);
  const std::string whole = file("flight_recorder/rank0.pickle");
  for (std::size_t size = 0; size < whole.size(); size += 13)
    CHECK(!parse_flight_recorder(0, whole.substr(0, size)));
  // A list that is in itself is a list.
  CHECK(refused(std::string("\x80\x02]q\x00h\x00"
                            "a.",
                            9))
            .find("version") != std::string::npos);
}

TEST_CASE("RAS: the text names who is behind; of the others there is one number") {
  const GroupProgress now = ras("mismatch.txt");
  CHECK(now.group == "27a079b828ff1a75");
  CHECK(now.ranks.size() == 32);
  CHECK(now.launched.size() == 32);
  for (const int rank : {0, 2, 3, 4, 5, 7}) CHECK(now.launched.at(rank) == 6649);
  for (const int rank : {1, 6, 31}) CHECK(now.launched.at(rank) == 6650);
  CHECK(stuck_ranks(now, now) == Ranks{0, 2, 3, 4, 5, 7});
}

TEST_CASE("RAS: the same ranks behind in two answers, or it moves") {
  const GroupProgress before = ras("mismatch.txt");
  GroupProgress now = before;
  for (const int rank : {0, 2, 3, 4, 5}) now.launched[rank] = 6651;
  for (auto& [rank, count] : now.launched)
    if (count == 6650) count = 6651;
  CHECK(stuck_ranks(before, now) == Ranks{7});
  now.launched[7] = 6650;
  CHECK(stuck_ranks(before, now).empty());
  CHECK(stuck_ranks(before, GroupProgress{}).empty());
}

TEST_CASE("RAS: counts by kind of collective, and what is no count") {
  const Result<Sequences> all = parse_ras(file("ras/kinds.txt"));
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  const GroupProgress& one = all->front();
  CHECK(one.launched == Counts{{0, 19}, {1, 11}, {2, 19}, {3, 19}});
  CHECK(one.operation == std::map<int, std::string>{{1, "AllGather"}});
  CHECK((*all)[1].launched.empty());
}

TEST_CASE("RAS: processes that do not answer, and dead ones") {
  CHECK(ras("incomplete.txt").silent == Ranks{21});
  CHECK(ras("incomplete.txt").dead.empty());
  CHECK(ras("dead.txt").silent == Ranks{20});
  CHECK(ras("dead.txt").dead == Ranks{21});
}

TEST_CASE("RAS: JSON") {
  const GroupProgress now = ras("answer.json");
  CHECK(now.group == "ae94423cfbb2ef4a");
  CHECK(now.ranks == Ranks{0, 1, 2, 3});
  CHECK(now.launched == Counts{{0, 31}, {3, 30}});
  CHECK(now.operation == std::map<int, std::string>{{3, "AllReduce"}});
  CHECK(now.silent == Ranks{1});
  CHECK(now.dead == Ranks{2});
  const Result<Sequences> behind =
      parse_ras("SERVER PROTOCOL 2\nOK\nOK\n" + file("ras/answer.json"));
  REQUIRE(behind);
  CHECK(behind->front().launched == now.launched);
}

TEST_CASE("RAS: a communicator of some ranks, by their processes") {
  const std::string answer = file("ras/answer.json");
  const auto of = [&](const Processes& job) {
    const Result<Sequences> made = parse_ras(answer, job);
    REQUIRE(made);
    return made->front();
  };
  const std::map<long, int> eight = {
      {1524344, 8}, {1524345, 9}, {1524346, 10}, {1524347, 11}, {7, 12}};
  const GroupProgress all = of({{"n1", {{1524344, 0}, {4, 1}}}, {"n2", eight}});
  CHECK(all.of_job);
  CHECK(all.ranks == Ranks{8, 9, 10, 11});
  CHECK(all.launched == Counts{{8, 31}, {11, 30}});
  CHECK(all.operation == std::map<int, std::string>{{11, "AllReduce"}});
  CHECK(all.silent == Ranks{9});
  CHECK(all.dead == Ranks{10});
  // Which of two hosts, unless it has the name; and one whose processes are not the job's.
  CHECK(!of({{"n1", eight}, {"n2", eight}}).of_job);
  CHECK(of({{"172.16.64.245", eight}, {"n2", eight}}).of_job);
  CHECK(!of({{"n1", {{1524344, 0}}}}).of_job);
  // Two devices of one process; and a process that has ended.
  CHECK(!of({{"n1", {{1524344, 0}, {1524347, 0}}}}).of_job);
  CHECK(of({{"n1", {{1524344, 2}, {1524347, 3}}}}).ranks == Ranks{2, 3});
}

TEST_CASE("RAS: silence, half an answer, and none") {
  CHECK(!parse_ras(""));
  CHECK(!parse_ras("ERROR: unknown command\n"));
  CHECK(!parse_ras("SSH-2.0-OpenSSH_9.2\r\n"));
  CHECK(!parse_ras("OK\n{\"communicators\":"));
  CHECK(!parse_ras("{\"communicators\":[{\"hash\":1}]}"));
  const std::string whole = file("ras/kinds.txt") + file("ras/dead.txt");
  for (std::size_t size = 0; size < whole.size(); size += 7) {
    const Result<Sequences> part = parse_ras(whole.substr(0, size));
    if (part) CHECK(part->size() <= 3);
  }
  const Result<Sequences> quiet = parse_ras("Job summary\n===========\n");
  REQUIRE(quiet);
  CHECK(quiet->empty());  // no rank differs
}
