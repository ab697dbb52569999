// Planted stalls as they are read, of 8 ranks of torch with gloo and of 64 of a program that has sockets alone.
#include "hpclaunch/text.h"
#include "stall/ranks.h"

using namespace hpclaunch;
using namespace hpclaunch::stacks;
using test::at;
using test::gloo;
using test::Made;
using test::Make;
using test::plain;
using Kind = Verdict::Kind;
using Sure = Verdict::Sure;

namespace {

struct Planted {
  std::string name;
  Make odd;  // of the rank that holds up the others
  Kind kind;
  Sure sure;
  std::string place, doing;
};

std::vector<Planted> planted() {
  const auto always = [](Made made) {
    return [made](int, int) { return std::vector<Made>{made}; };
  };
  Made loop{at("30 spin /home/ann/load.py"), "-", 'R', "-", "running"};
  const auto looping = [loop](int, int look) mutable {
    loop.cpu = 5000 * (look + 1);
    return std::vector<Made>{loop};
  };
  // Another thread is in C with the interpreter's lock; the main thread wants it.
  Made kept{at("12 work /home/ann/load.py"), "futex", 'S', "futex_wait_queue", "202"};
  kept.more =
      "thread\t4001\tR\t-\t100\t3\t-\trunning\t-\tgil\tloader\nframe\t77\thash_all\t/home/ann/"
      "native.py\n";
  Made worker{
      "31 wait /usr/lib/python3.11/multiprocessing/connection.py", "-", 'Z', "-", "-", 4010, 4000};
  worker.frames = "";
  Made queue{at("930 wait /usr/lib/python3.11/multiprocessing/connection.py;"
                "103 get /usr/lib/python3.11/multiprocessing/queues.py;"
                "1120 _try_get_data /usr/lib/python3/dist-packages/torch/utils/data/dataloader.py;"
                "64 epoch /home/ann/train.py"),
             "pipe", 'S', "do_poll"};
  Made other = queue;
  return {
      {"sleep", always({at("71 step /home/ann/load.py"), "sleep", 'S', "hrtimer_nanosleep", "230"}),
       Kind::outside, Sure::likely, "/home/ann/load.py:71 step", "sleeps"},
      {"lock", always({at("19 take /home/ann/load.py"), "futex", 'S', "futex_do_wait", "202"}),
       Kind::outside, Sure::likely, "/home/ann/load.py:19 take", "waits for a lock"},
      {"stopped", always({at("20 take /home/ann/load.py"), "-", 'T', "do_signal_stop"}),
       Kind::stopped, Sure::certain, "/home/ann/load.py:20 take", "is stopped (SIGSTOP)"},
      {"slow file system",
       always({at("25 read /home/ann/load.py"), "fifo /scratch/x.bin", 'S', "pipe_read", "0"}),
       Kind::outside, Sure::likely, "/home/ann/load.py:25 read",
       "waits for the FIFO /scratch/x.bin"},
      {"slow file system in the kernel",
       always({at("25 read /home/ann/load.py"), "file /scratch/x.bin", 'D', "folio_wait_bit_common",
               "0"}),
       Kind::driver, Sure::certain, "/home/ann/load.py:25 read",
       "is in the kernel: a disk or a driver folio_wait_bit_common"},
      {"flock",
       always({at("26 lock /home/ann/load.py"), "lock /home/ann/.lock", 'S',
               "flock_lock_inode_wait", "73"}),
       Kind::outside, Sure::likely, "/home/ann/load.py:26 lock",
       "waits for the lock of /home/ann/.lock"},
      {"busy loop", looping, Kind::outside, Sure::likely, "/home/ann/load.py:30 spin", "runs"},
      {"interpreter's lock held in C", always(kept), Kind::outside, Sure::likely,
       "/home/ann/native.py:77 hash_all", "has the interpreter's lock in C, in thread loader"},
      {"the same, and the main thread waits for a lock of Python", always([&] {
         Made waits = kept;
         waits.frames = at("327 wait /usr/lib/python3.11/threading.py;12 work /home/ann/load.py");
         return waits;
       }()),
       Kind::outside, Sure::likely, "/home/ann/native.py:77 hash_all",
       "has the interpreter's lock in C, in thread loader"},
      {"blocked connect",
       always({at("833 create_connection /usr/lib/python3.11/socket.py;15 fetch /home/ann/load.py"),
               "tcp 203.0.113.9:443", 'S', "wait_woken", "42"}),
       Kind::outside, Sure::likely, "/home/ann/load.py:15 fetch", "connects to 203.0.113.9:443"},
      {"dead DataLoader worker",
       [=](int, int) {
         return std::vector<Made>{queue, worker};
       },
       Kind::dead_worker, Sure::likely, "/home/ann/train.py:64 epoch",
       "waits for a queue (_try_get_data)"},
      {"lost node", always(test::missing(kNoAnswer)), Kind::gone, Sure::certain, "",
       "does not answer"},
      {"ended", always(test::missing(kEnded)), Kind::gone, Sure::certain, "", "has ended"},
  };
}

}  // namespace

TEST_CASE("of each planted stall the rank, its line and what it does are named", "[stall]") {
  for (const bool torch : {true, false}) {
    const int ranks = torch ? 8 : 64, odd = torch ? 5 : 31;
    for (const Planted& one : planted()) {
      INFO(one.name << (torch ? ", torch" : ", sockets"));
      const Verdict verdict = test::judged(
          [&](int rank, int look) {
            return rank == odd ? one.odd(rank, look) : std::vector<Made>{torch ? gloo() : plain()};
          },
          ranks);
      INFO(text(verdict));
      CHECK(to_string(verdict.kind) == to_string(one.kind));
      CHECK(to_string(verdict.sure) == to_string(one.sure));
      CHECK(verdict.culprits == std::vector<int>{odd});
      CHECK(verdict.place == one.place);
      CHECK(verdict.doing == one.doing);
      CHECK(verdict.hosts == std::vector<std::string>{fmt::format("n{}", odd / 4)});
      CHECK(verdict.waiters.size() == static_cast<std::size_t>(ranks - 1));
    }
  }
}

TEST_CASE("two ranks that receive from each other are a deadlock", "[stall]") {
  const auto make = [](int rank, int) -> std::vector<Made> {
    if (rank == 2) return {plain(40, "tcp 10.0.0.1:7003 10.0.0.1:7002")};
    if (rank == 3) return {plain(40, "tcp 10.0.0.1:7002 10.0.0.1:7003")};
    return {plain()};
  };
  const Verdict verdict = test::judged(make, 16);
  CHECK(verdict.kind == Kind::deadlock);
  CHECK(verdict.sure == Sure::likely);
  CHECK(verdict.culprits == std::vector<int>{2, 3});
  CHECK(verdict.place == "/home/ann/ring.py:40 barrier");

  SECTION("all receive and none sends") {
    const Verdict all =
        test::judged([](int, int) { return std::vector<Made>{gloo("recv", 50)}; }, 4);
    CHECK(all.kind == Kind::deadlock);
    CHECK(all.sure == Sure::likely);
    CHECK(all.culprits == std::vector<int>{0, 1, 2, 3});
  }
  SECTION("few receive, from whom is not known, and the rest are in a collective") {
    const auto few = [](int receivers) {
      return test::judged(
          [=](int rank, int) -> std::vector<Made> {
            return {rank >= 3 && rank < 3 + receivers ? gloo("recv", 50) : gloo()};
          },
          8);
    };
    CHECK(few(2).kind == Kind::deadlock);
    CHECK(few(2).sure == Sure::likely);
    CHECK(few(2).culprits == std::vector<int>{3, 4});
    CHECK(few(2).waiters == std::vector<int>{0, 1, 2, 5, 6, 7});
    CHECK(few(2).place == "/home/ann/train.py:50 step");
    CHECK(few(1).kind == Kind::outside);
    CHECK(few(1).culprits == std::vector<int>{3});
    CHECK(few(3).sure == Sure::unknown);
  }
  SECTION("by the flight recorder") {
    const auto exchange = [](int rank, int) -> std::vector<Made> {
      return {rank == 2 || rank == 6 ? gloo("recv", 50) : gloo()};
    };
    GroupProgress group;
    group.group = "default_pg";
    group.peer = {{2, 6}, {6, 2}};
    const Verdict recorded = test::judged(exchange, 8, {group});
    CHECK(recorded.kind == Kind::deadlock);
    CHECK(recorded.sure == Sure::likely);
    CHECK(recorded.culprits == std::vector<int>{2, 6});
  }
}

TEST_CASE("who waits for a rank that stands is not the culprit", "[stall]") {
  // 0 waits for 1, which waits for 2, which sleeps; the others wait for 0.
  const auto make = [](int rank, int) -> std::vector<Made> {
    Made made = plain(20 + (rank < 3 ? rank : 3));
    const auto ends = [&](int to) {
      return fmt::format("tcp 10.0.0.{}:6000 10.0.0.{}:{}", to + 1, rank + 1, 5000 + rank);
    };
    if (rank == 2)
      made = {at("71 step /home/ann/load.py"), "sleep", 'S'};
    else
      made.waits = ends(rank < 2 ? rank + 1 : 0);
    made.more = fmt::format("socket\t10.0.0.{}:6000\t-\n", rank + 1);
    return {made};
  };
  const Verdict verdict = test::judged(make, 8);
  CHECK(verdict.kind == Kind::outside);
  CHECK(verdict.culprits == std::vector<int>{2});

  SECTION("a pipeline of known sends and receives: the last of the chain") {
    const auto stage = [](int rank, int) -> std::vector<Made> {
      return {rank == 3 ? gloo("all_reduce") : gloo("recv", 60 + rank)};
    };
    GroupProgress group;
    group.group = "pipe";
    group.peer = {{0, 1}, {1, 2}, {2, 3}};
    const Verdict piped = test::judged(stage, 4, {group});
    CHECK(piped.culprits == std::vector<int>{3});
    CHECK(piped.sure == Sure::likely);
  }
}

TEST_CASE("different collectives are a mismatch", "[stall]") {
  const auto make = [](int rank, int) -> std::vector<Made> {
    return {rank == 1 ? gloo("broadcast", 44) : gloo()};
  };
  const Verdict verdict = test::judged(make, 8);
  CHECK(verdict.kind == Kind::mismatch);
  CHECK(verdict.sure == Sure::likely);
  CHECK(verdict.culprits == std::vector<int>{1});
  CHECK(verdict.place == "/home/ann/train.py:44 step");

  SECTION("by numbers it is certain") {
    GroupProgress group;
    group.group = "default_pg";
    group.ranks = {0, 1, 2};
    group.launched = {{0, 7}, {1, 7}, {2, 7}};
    group.operation = {{0, "all_reduce"}, {1, "broadcast"}, {2, "all_reduce"}};
    const auto device = [](int, int) -> std::vector<Made> {
      return {{at("560 synchronize /opt/conda/lib/python3.11/site-packages/torch/cuda/__init__.py"),
               "-", 'R', "-", "running"}};
    };
    CHECK(test::judged(device, 3, {group}).kind != Kind::mismatch);  // of RAS: at what is unknown
    group.current = {{0, 7}, {1, 7}, {2, 7}};
    const Verdict counted = test::judged(device, 3, {group});
    CHECK(counted.kind == Kind::mismatch);
    CHECK(counted.sure == Sure::certain);
    CHECK(counted.culprits == std::vector<int>{1});
    group.current = {{0, 7}, {1, 6}, {2, 7}};  // operations of different numbers say nothing
    CHECK(test::judged(device, 3, {group}).kind != Kind::mismatch);
    group.current.clear();
    group.operation.clear();
    group.launched[1] = 6;
    const Verdict behind = test::judged(device, 3, {group});
    CHECK(behind.kind == Kind::outside);
    CHECK(behind.culprits == std::vector<int>{1});
    GroupProgress earlier = group;
    earlier.launched[0] = 6;  // it moves
    const Verdict moving =
        judge(test::snapshot_of(device, 3, 0), test::snapshot_of(device, 3, 1), {group}, {earlier});
    CHECK(moving.culprits.empty());
  }
  SECTION("of two ranks both are named") {
    const Verdict both = test::judged(make, 2);
    CHECK(both.culprits == std::vector<int>{0, 1});
    CHECK(text(both).starts_with("ranks 0-1 are in different collectives\n"));
  }
}

TEST_CASE("who is behind in one group because of another one is not sure to be the culprit",
          "[stall]") {
  // 0 and 1 share a group, and 1 and 2 another one; 0 sleeps, 1 waits for it, 2 waits for 1.
  const auto make = [](int rank, int) -> std::vector<Made> {
    if (rank == 0) return {{at("71 step /home/ann/load.py"), "sleep", 'S'}};
    return {gloo("all_reduce", 40 + rank)};
  };
  GroupProgress second;
  second.group = "second";
  second.launched = {{1, 4}, {2, 5}};
  const Verdict behind = test::judged(make, 3, {second});
  CHECK(behind.sure == Sure::likely);
  GroupProgress first;
  first.group = "first";
  first.launched = {{0, 8}, {1, 9}};
  const Verdict both = test::judged(make, 3, {second, first});
  CHECK(both.culprits == std::vector<int>{0});
  CHECK(both.sure == Sure::certain);
  CHECK(both.evidence[0] == "group first: rank 0 started 8 collectives, others 9");
}

TEST_CASE("a node that does not answer while the others go on is not sure to be gone", "[stall]") {
  const auto make = [](int rank, int look) -> std::vector<Made> {
    if (rank == 3) return {test::missing(kNoAnswer)};
    return {gloo("all_reduce", 40 + look)};
  };
  CHECK(test::judged(make, 4).sure == Sure::likely);
  const auto ended = [](int rank, int look) -> std::vector<Made> {
    if (rank == 3) return {test::missing(kEnded)};
    return {gloo("all_reduce", 40 + look)};
  };
  CHECK(test::judged(ended, 4).kind == Kind::moves);
}

TEST_CASE("all in the same place: the network or a device", "[stall]") {
  const auto make = [](int, int) -> std::vector<Made> { return {gloo()}; };
  const Verdict verdict = test::judged(make, 8);
  CHECK(verdict.kind == Kind::same_place);
  CHECK(verdict.sure == Sure::likely);
  CHECK(verdict.culprits.empty());
  CHECK(text(verdict).starts_with("all ranks wait in the same place: the network or a device\n"));
}

TEST_CASE("calls of mpi4py have no frame: most ranks at one line wait", "[stall]") {
  const auto make = [](int rank, int look) -> std::vector<Made> {
    Made made{at("33 solve /home/ann/cg.py"), "-", 'R', "-", "running"};
    made.cpu = 5000 * (look + 1);
    if (rank == 3) made = {at("71 load /home/ann/cg.py"), "sleep", 'S'};
    return {made};
  };
  const Verdict verdict = test::judged(make, 8);
  CHECK(verdict.kind == Kind::outside);
  CHECK(verdict.sure == Sure::likely);
  CHECK(verdict.culprits == std::vector<int>{3});
}

TEST_CASE("of a program in C the rank that does not run while the others do is a suspect",
          "[stall]") {
  const auto make = [](int rank, int look) -> std::vector<Made> {
    Made made{"", "-", 'R', "-", "running"};
    made.python = "-";
    made.name = "solver";
    made.cpu = 5000 * (look + 1);
    if (rank == 3) {
      made.state = 'S';
      made.waits = "file /scratch/x";
      made.cpu = 100;
    }
    return {made};
  };
  const Verdict verdict = test::judged(make, 8);
  CHECK(verdict.culprits == std::vector<int>{3});
  CHECK(verdict.sure == Sure::likely);
  CHECK(verdict.doing == "waits for the file /scratch/x");
  CHECK(verdict.waiting == "at solver (runs)");
}

TEST_CASE("a rank that moves while others wait is no culprit", "[stall]") {
  const auto make = [](int rank, int look) -> std::vector<Made> {
    if (rank != 0) return {gloo("barrier")};
    Made made{at(look == 0 ? "9 evaluate /home/ann/eval.py" : "30 score /home/ann/eval.py"), "-",
              'R', "-", "running"};
    made.cpu = 5000 * (look + 1);
    return {made};
  };
  const Verdict verdict = test::judged(make, 8);
  CHECK(verdict.kind == Kind::moves);
  CHECK(verdict.sure == Sure::unknown);
  CHECK(text(verdict).starts_with("rank 0 moves, and the others wait for it\n"));

  SECTION("one look at a busy rank says nothing") {
    CHECK(judge({}, test::snapshot_of(make, 8)).sure == Sure::unknown);
  }
  SECTION("a rank that waits for a request is named as such") {
    const auto engine = [](int rank, int) -> std::vector<Made> {
      if (rank != 0) return {gloo("broadcast")};
      return {{at("468 select /usr/lib/python3.11/selectors.py;1900 _run_once "
                  "/usr/lib/python3.11/asyncio/base_events.py"),
               "-", 'S', "ep_poll"}};
    };
    CHECK(test::judged(engine, 4).kind == Kind::serving);
  }
}

TEST_CASE("a worker that hangs is named by its own line", "[stall]") {
  const auto make = [](int rank, int) -> std::vector<Made> {
    if (rank != 6) return {gloo()};
    Made main{
        at("930 wait /usr/lib/python3.11/multiprocessing/connection.py;"
           "1120 _try_get_data /usr/lib/python3/dist-packages/torch/utils/data/dataloader.py"),
        "pipe", 'S', "do_poll"};
    Made idle{
        "103 get /usr/lib/python3.11/multiprocessing/queues.py", "pipe", 'S', "-", "-", 4010, 4000};
    Made stuck{"12 __getitem__ /home/ann/data.py", "fifo /scratch/x", 'S', "-", "-", 4011, 4000};
    return {main, idle, stuck};
  };
  const Verdict verdict = test::judged(make, 8);
  CHECK(verdict.culprits == std::vector<int>{6});
  CHECK(verdict.place == "/home/ann/data.py:12 __getitem__");
  CHECK(text(verdict).find("which waits for the FIFO /scratch/x") != std::string::npos);
}

TEST_CASE("a verdict has at most 12 lines of the width, whatever the names are", "[stall]") {
  const auto make = [](int rank, int) -> std::vector<Made> {
    if (rank % 3 != 0) return {gloo()};
    return {{at("71 " + std::string(300, 'f') + " /home/" + std::string(300, 'd') +
                "/\\x1b[31mload.py"),
             "sleep", 'S'}};
  };
  const std::string shown = text(test::judged(make, 64), 100);
  CHECK(shown.starts_with(
      "ranks 0,3,6,9,12,15,18,21,... (22 in all) are not where the others wait: rank 0 sleeps\n"));
  INFO(shown);
  const auto lines = split(shown, '\n');
  CHECK(lines.size() <= 13);
  for (const std::string_view line : lines) CHECK(line.size() <= 100);
  CHECK(shown.find('\x1b') == std::string::npos);
}

TEST_CASE("JSON has the values", "[stall]") {
  const Snapshot snapshot =
      test::snapshot_of([](int, int) { return std::vector<Made>{gloo()}; }, 2);
  const Verdict verdict = judge(snapshot, snapshot);
  const std::string text = to_json(snapshot, &verdict);
  CHECK(text.starts_with(
      "{\n  \"verdict\": {\n    \"kind\": \"same-place\",\n    \"sure\": \"likely\","));
  CHECK(text.find("\"function\": \"all_reduce\"") != std::string::npos);
  CHECK(text.find("\"host\": \"n0\"") != std::string::npos);
}
