// The text of hpclaunch-stacks as values, and the tree of all ranks.
#include "hpclaunch/text.h"
#include "stall/ranks.h"

using namespace hpclaunch;
using namespace hpclaunch::stacks;
using test::gloo;
using test::Made;

namespace {

const std::string kProcess = "process\t7\t1\tS\t10\t3\t-\t3.11\tpython3\tpython3 x.py\n";
const std::string kThread = "thread\t7\tS\tmain\t10\t3\tfutex_wait\t202\tfutex\tgil\tpython3\n";

std::string error_of(std::string_view text) {
  const Result<Rank> read = parse(3, "n1", text);
  return read ? "" : read.error().message;
}

}  // namespace

TEST_CASE("a snapshot is read as it is written", "[stall]") {
  const Result<Rank> read =
      parse(3, "n1",
            "stacks\t1\t1500\n" + kProcess +
                "thread\t7\tS\tmain\t10\t3\tfutex_wait\t202\ttcp 10.0.0.2:4711\tgil\t\\x2d\n"
                "frame\t12\tinner\t/a\\x09b.py\nframe\t0\touter\t/c.py\n"
                "thread\t8\tR\t-\t1\t1\t-\trunning\t-\t-\tpt_nccl\n"
                "unread\tYama's ptrace_scope is 2\nnews\tof a later version\ncut\tframes\nend\n");
  REQUIRE(read);
  CHECK(read->rank == 3);
  CHECK(read->at == 1.5);
  CHECK(read->cut == std::vector<std::string>{"frames"});
  REQUIRE(read->processes.size() == 1);
  const Process& process = read->processes[0];
  CHECK(process.bytes == -1);
  CHECK(process.unread == "Yama's ptrace_scope is 2");
  REQUIRE(process.threads.size() == 2);
  const Thread& main = process.threads[0];
  CHECK(main.name == "-");
  CHECK(main.waits_for == "tcp 10.0.0.2:4711");
  CHECK(main.has_gil);
  REQUIRE(main.frames.size() == 2);
  CHECK(main.frames[0].function == "outer");
  CHECK(main.frames[1].file == "/a\tb.py");
  CHECK(main.frames[1].line == 12);
  CHECK(process.threads[1].system_call == -2);
  CHECK(parse(0, "", "missing\tit has ended\n")->missing == kEnded);
}

TEST_CASE("what is malformed is an error with its line, what is too much is cut", "[stall]") {
  const std::string head = "stacks\t1\t0\n";
  CHECK(error_of("") == "no process in the stacks of rank 3");
  CHECK(error_of("hello\n") == "line 1 of the stacks of rank 3 is malformed");
  CHECK(error_of(head + "process\t7\n") == "line 2 of the stacks of rank 3 is malformed");
  CHECK(error_of(head + kThread) == "line 2 of the stacks of rank 3 is malformed");
  CHECK(error_of(head + kProcess + "frame\t-1\tf\tx\n") ==
        "line 3 of the stacks of rank 3 is malformed");
  CHECK(error_of("stacks\t2\tx\ty\n") == "the stacks of rank 3 are in a later format (version 2)");
  CHECK(error_of(head + "process\t99999999999\t1\tS\t1\t1\t-\t-\tx\tx\n") ==
        "line 2 of the stacks of rank 3 is malformed");

  CHECK(parse(3, "", head + kProcess)->cut == std::vector<std::string>{"bytes"});
  CHECK(parse(3, "", head + kProcess + kThread + "fra")->cut == std::vector<std::string>{"bytes"});
  std::string deep = head + kProcess + kThread;
  for (int i = 0; i < 1000; ++i) deep += "frame\t1\tf\t/x.py\n";
  const Result<Rank> cut = parse(3, "", deep + "end\n");
  CHECK(cut->processes[0].threads[0].frames.size() == 200);
  CHECK(cut->cut == std::vector<std::string>{"frames"});
  std::string many = head;
  for (int i = 0; i < 100; ++i) many += kProcess + kThread;
  CHECK(parse(3, "", many + "end\n")->processes.size() == 64);
  const Result<Rank> large = parse(3, "", head + kProcess + std::string(3 << 20, 'x') + "\nend\n");
  CHECK(large->cut == std::vector<std::string>{"bytes"});
}

TEST_CASE("the tree has a branch where ranks part", "[stall]") {
  const auto make = [](int rank, int) -> std::vector<Made> {
    if (rank == 3)
      return {{"71 load /home/ann/data.py;41 step /home/ann/train.py;" + test::kMain,
               "file /scratch/x.bin"}};
    if (rank == 7) return {test::missing(kNoAnswer)};
    return {gloo()};
  };
  const Snapshot snapshot = test::snapshot_of(make, 8);
  CHECK(tree_text(snapshot) ==
        "ranks 0-7 (8)\n"
        "    ranks 0-6 (7)\n"
        "      /home/ann/train.py:97 <module>\n"
        "      /home/ann/train.py:88 main\n"
        "      /home/ann/train.py:41 step\n"
        "        ranks 0-2,4-6 (6)\n"
        "          torch/distributed/distributed_c10d.py:1541 all_reduce\n"
        "          waits in futex\n"
        "        rank 3 (1)\n"
        "          /home/ann/data.py:71 load\n"
        "          waits for the file /scratch/x.bin\n"
        "    rank 7 (1)\n"
        "      no stack: its node does not answer\n");
  TreeOptions one;
  one.rank = 3;
  CHECK(split(tree_text(snapshot, one), '\n').size() == 7);
  TreeOptions few;
  few.most_lines = 2;
  CHECK(tree_text(snapshot, few) == "ranks 0-7 (8)\n    ranks 0-6 (7)\n... 11 lines more\n");
}

TEST_CASE("workers are shown where they are not idle, other threads when asked for", "[stall]") {
  const auto make = [](int rank, int) -> std::vector<Made> {
    Made idle{
        "103 get /usr/lib/python3.11/multiprocessing/queues.py", "pipe", 'S', "-", "-", 4010, 4000};
    Made busy{"12 __getitem__ /home/ann/data.py", "-", 'R', "-", "running", 4011, 4000};
    Made main = gloo();
    main.more = "thread\t4002\tS\t-\t1\t1\tep_poll\t232\t-\t-\tgloo-3\n";
    return rank == 1 ? std::vector<Made>{main, idle, busy} : std::vector<Made>{main, idle};
  };
  const Snapshot snapshot = test::snapshot_of(make, 2);
  const std::string usual = tree_text(snapshot);
  CHECK(usual.find("process python3:\nrank 1 (1)\n  /home/ann/data.py:12 __getitem__\n  runs\n") !=
        std::string::npos);
  CHECK(usual.find("gloo") == std::string::npos);
  TreeOptions all;
  all.all_threads = true;
  const std::string every = tree_text(snapshot, all);
  CHECK(every.find("thread gloo-:\nranks 0-1 (2)\n  python3: waits in the kernel ep_poll\n") !=
        std::string::npos);
  CHECK(every.find("multiprocessing/queues.py:103 get") != std::string::npos);
}

TEST_CASE("programs without Python have the name and what the kernel says", "[stall]") {
  const auto make = [](int rank, int) -> std::vector<Made> {
    Made solver{"", fmt::format("tcp 10.0.0.{}:4711", rank), 'S', "wait_woken", "-"};
    solver.python = "-";
    solver.name = "solver";
    Made shell{"", "child 4000", 'S', "do_wait", "-", 3999, 1};
    shell.python = "-";
    shell.name = "bash";
    return {shell, solver};
  };
  Snapshot snapshot = test::snapshot_of(make, 10);
  for (Rank& rank : snapshot.ranks) rank.processes[1].parent = 3999;
  CHECK(tree_text(snapshot) ==
        "ranks 0-9 (10)\n  solver: waits for TCP (a different one each: 10.0.0.0:4711, ...)\n");
}

TEST_CASE("hostile names are printed safely and in the width", "[stall]") {
  const auto make = [](int, int) -> std::vector<Made> {
    return {{"5 \\x1b]0_owned\\x07" + std::string(200, 'f') + " /home/\\xff\\x9b/" +
                 std::string(300, 'd') + "/train.py",
             "file /\\x0d\\x0a"}};
  };
  const std::string text = tree_text(test::snapshot_of(make, 1));
  for (const char c : text) CHECK((c == '\n' || (c >= ' ' && c <= '~')));
  for (const std::string_view line : split(text, '\n')) CHECK(line.size() <= 100);
  CHECK(to_json(test::snapshot_of(make, 1)).find('\x1b') == std::string::npos);
}

TEST_CASE("a path is cut in its middle, and one of a library is what is imported", "[stall]") {
  const auto shown = [](std::string file) {
    Rank rank;
    rank.processes = {Process{}};
    Thread thread;
    thread.main = true;
    thread.state = 'R';
    thread.frames = {{"step", std::move(file), 41}};
    rank.processes[0].threads = {thread};
    TreeOptions narrow;
    narrow.width = 40;
    return std::string(split(tree_text({{rank}}, narrow), '\n')[1]);
  };
  CHECK(shown("/home/ann/train.py") == "  /home/ann/train.py:41 step");
  CHECK(shown("/lustre/project/p123/ann/experiments/2026/train.py") ==
        "  /lustre/p...ents/2026/train.py:41 step");
  CHECK(shown("/opt/conda/lib/python3.12/threading.py") == "  threading.py:41 step");
  CHECK(shown("/opt/conda/lib/python3.12/site-packages/torch/nn/x.py") ==
        "  torch/nn/x.py:41 step");
}

TEST_CASE("a rank of which nothing is known may be the one", "[stall]") {
  const auto but_one = [](std::string_view why) {
    return test::judged(
        [=](int rank, int) {
          return std::vector<test::Made>{rank == 5 ? test::missing(why) : test::gloo()};
        },
        8);
  };
  const Verdict late = but_one(kNotStarted);
  CHECK(late.kind == Verdict::Kind::outside);
  CHECK(late.culprits == std::vector<int>{5});
  CHECK(text(late).starts_with("rank 5 is not where the others wait: it has not started\n"));
  const Verdict slow = but_one(kTooSlow);
  CHECK(slow.kind == Verdict::Kind::unknown);
  CHECK(slow.sure == Verdict::Sure::unknown);
  CHECK(slow.evidence == std::vector<std::string>{
                             "of rank 5 nothing is known: its stacks could not be read in time"});
  const Verdict elsewhere = but_one(kElsewhere);
  CHECK(elsewhere.kind == Verdict::Kind::unknown);
  CHECK(elsewhere.culprits.empty());
  CHECK(elsewhere.place == "/home/ann/train.py:41 step");
  CHECK(elsewhere.advice == "on that node: hpclaunch stacks");
}

TEST_CASE("what a rank has left behind does not hide its program", "[stall]") {
  const auto one = [](int pid, int parent, std::string name, std::string waits, bool python) {
    test::Made made = python ? test::gloo() : test::Made{};
    made.pid = pid;
    made.parent = parent;
    made.name = std::move(name);
    if (!python) made.python = "-", made.waits = std::move(waits);
    return made;
  };
  const auto shell = one(10, 1, "sh", "child 12", false), tail = one(11, 1, "tail", "-", false);
  const auto below = one(12, 10, "bash", "child 13", false), time = one(12, 10, "time", "-", false);
  const auto python = one(13, 12, "python3", "", true), container = one(14, 1, "p", "", true);
  using Tree = std::vector<test::Made>;
  const auto place = [](const Tree& tree) {
    return tree_text(test::snapshot_of([&](int, int) { return tree; }, 1));
  };
  for (const Tree& tree : {Tree{shell, tail, below, python}, Tree{shell, below, python, tail},
                           Tree{shell, container, below, python}, Tree{shell, tail, container},
                           Tree{shell, time, container}})
    CHECK_THAT(place(tree), ContainsSubstring("all_reduce"));
  CHECK_THAT(place({shell, tail, time}), ContainsSubstring("time"));
  CHECK_THAT(place({shell, tail}), ContainsSubstring("tail"));
}
