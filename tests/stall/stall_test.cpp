// run --stall: healthy programs never count as a stall, planted ones do in time.
#include "stall/ranks.h"

using namespace hpclaunch;
using namespace hpclaunch::stacks;
using test::at;
using test::gloo;
using test::Made;
using test::Make;

namespace {

constexpr double kLimit = 60, kEvery = 5;
constexpr int kRanks = 8, kLooks = 90;  // 450 s: more than three times the limit, twice

// Seconds until the alarm; -1: none.
double alarm(const Make& make, int ranks = kRanks,
             const std::function<Sequences(int)>& numbers = {}) {
  Stall stall(kLimit);
  for (int look = 0; look < kLooks; ++look)
    if (stall.add(test::snapshot_of(make, ranks, look, kEvery), 1000 + look * kEvery, 1000,
                  numbers ? numbers(look) : Sequences{}))
      return look * kEvery;
  return -1;
}

Made busy(std::string_view innermost, int look, long each = 4900) {
  Made made{at(innermost), "-", 'R', "-", "running"};
  made.cpu = 5000 + each * look;
  return made;
}

Made child(std::string_view frames, std::string waits = "-", char state = 'S', int pid = 4010) {
  return {std::string(frames), std::move(waits), state, "-", "-", pid, 4000};
}

Made waits(std::string_view innermost, std::string for_what, std::string wchan = "-") {
  return {at(innermost), std::move(for_what), 'S', std::move(wchan), "-"};
}

// Rank 0 does something, the others wait in a barrier for it.
Make alone(std::function<std::vector<Made>(int look)> first) {
  return [first](int rank, int look) {
    return rank == 0 ? first(look) : std::vector<Made>{gloo("barrier", 50)};
  };
}
Make everyone(std::function<std::vector<Made>(int look)> all) {
  return [all](int, int look) { return all(look); };
}
Made native(std::string name, long cpu, char state = 'R', int pid = 4010) {
  Made made = child("", "-", state, pid);
  made.python = "-";
  made.name = std::move(name);
  made.cpu = cpu;
  return made;
}

const std::string kRun =
    "1200 communicate /usr/lib/python3.11/subprocess.py;548 run /usr/lib/python3.11/subprocess.py";
const std::string kSelect = "468 select /usr/lib/python3.11/selectors.py";
const std::string kLoop =
    "1900 _run_once /usr/lib/python3.11/asyncio/base_events.py;600 run_forever "
    "/usr/lib/python3.11/asyncio/base_events.py";

std::vector<std::pair<std::string, Make>> healthy() {
  return {
      {"import", everyone([](int look) {
         return std::vector<Made>{busy(
             fmt::format("{} _call_with_frames_removed <frozen importlib._bootstrap>", 200 + look),
             look)};
       })},
      {"import from a slow file system", everyone([](int look) {
         Made made = waits(
             fmt::format("{} get_data <frozen importlib._bootstrap_external>", 900 + look % 3),
             "file /lustre/x.pyc");
         made.bytes += look * 100000;
         return std::vector<Made>{made};
       })},
      {"compile in a subprocess", everyone([](int look) {
         return std::vector<Made>{waits(kRun + ";60 build /home/ann/train.py", "pipe"),
                                  native("nvcc", 4900L * look)};
       })},
      {"compile on rank 0, the others wait for a lock file",
       [](int rank, int look) {
         if (rank != 0)
           return std::vector<Made>{
               waits("40 wait /usr/lib/python3/dist-packages/torch/utils/file_baton.py", "sleep")};
         return std::vector<Made>{waits(kRun, "pipe"), native("ninja", 10),
                                  native("cc1plus", 4900L * look, 'R', 4011)};
       }},
      {"compilers that come and go", alone([](int look) {
         return std::vector<Made>{waits(kRun, "pipe"), native("gcc", 100, 'S', 5000 + look)};
       })},
      {"checkpoint by rank 0", alone([](int look) {
         Made made = waits(
             "440 _save /usr/lib/python3/dist-packages/torch/serialization.py;70 save "
             "/home/ann/train.py",
             "file /scratch/ck.pt");
         made.bytes += 400'000'000L * look;
         made.cpu += 30 * look;
         return std::vector<Made>{made};
       })},
      {"checkpoint by all", everyone([](int look) {
         Made made = waits("70 save /home/ann/train.py", "file /scratch/ck.pt");
         made.state = 'D';
         made.bytes += 400'000'000L * look;
         return std::vector<Made>{made};
       })},
      {"checkpoint by a process", alone([](int look) {
         Made writer = child("77 write /home/ann/save.py", "file /scratch/ck.pt");
         writer.bytes += 400'000'000L * look;
         return std::vector<Made>{
             waits("149 join /usr/lib/python3.11/multiprocessing/process.py", "child 4010"),
             writer};
       })},
      {"evaluation on rank 0", alone([](int look) {
         return std::vector<Made>{
             busy(fmt::format("{} evaluate /home/ann/eval.py", 20 + look % 7), look)};
       })},
      {"evaluation in a pool", alone([](int look) {
         Made worker = child("9 score /home/ann/eval.py", "-", 'R');
         worker.cpu = 4900L * look;
         return std::vector<Made>{
             waits("765 get /usr/lib/python3.11/multiprocessing/pool.py", "futex"), worker};
       })},
      {"download by rank 0", alone([](int look) {
         Made made = waits("1311 recv_into /usr/lib/python3.11/ssl.py;30 fetch /home/ann/data.py",
                           "tcp 203.0.113.9:443");
         made.switches += 40 * look;
         return std::vector<Made>{made};
       })},
      {"download in a thread", alone([](int look) {
         Made made = waits(
             "1119 _wait_for_tstate_lock /usr/lib/python3.11/threading.py;30 fetch "
             "/home/ann/data.py",
             "futex");
         made.bytes += 10'000'000L * look;
         return std::vector<Made>{made};
       })},
      {"download by curl", alone([](int look) {
         Made curl = native("curl", 10, 'S');
         curl.bytes += 10'000'000L * look;
         return std::vector<Made>{waits(kRun, "child 4010"), curl};
       })},
      {"data are unpacked", alone([](int look) {
         Made made = busy("33 unpack /home/ann/data.py", look);
         made.bytes += 10'000'000L * look;
         return std::vector<Made>{made};
       })},
      {"sleep between polls of a server", everyone([](int look) {
         Made made = waits("15 poll /home/ann/client.py", "sleep", "hrtimer_nanosleep");
         made.switches += look;
         return std::vector<Made>{made};
       })},
      {"a long sleep of all", everyone([](int) {
         return std::vector<Made>{
             waits("15 nightly /home/ann/client.py", "sleep", "hrtimer_nanosleep")};
       })},
      {"sleep in a shell", everyone([](int) {
         Made shell = native("bash", 1, 'S', 4000);
         shell.parent = 1;
         shell.waits = "child 4010";
         Made sleep = native("sleep", 1, 'S');
         sleep.waits = "sleep";
         return std::vector<Made>{shell, sleep};
       })},
      {"idle server with asyncio", everyone([](int) {
         return std::vector<Made>{waits(kSelect + ";" + kLoop, "-", "ep_poll")};
       })},
      {"idle server, other ranks wait for its broadcast",
       [](int rank, int) {
         return std::vector<Made>{rank == 0 ? waits(kSelect + ";" + kLoop, "-", "ep_poll")
                                            : gloo("broadcast")};
       }},
      {"idle engine of vLLM",
       [](int rank, int look) {
         Made made = waits(
             "560 acquire_read "
             "/opt/venv/lib/python3.12/site-packages/vllm/distributed/device_communicators/"
             "shm_broadcast.py",
             "sleep");
         made.switches += 100 * look;
         Made server = waits(
             "95 recv_multipart /opt/venv/lib/python3.12/site-packages/zmq/sugar/socket.py;40 "
             "serve /home/ann/serve.py",
             "-", "do_poll");
         return std::vector<Made>{rank == 0 ? server : made};
       }},
      {"accept", everyone([](int) {
         return std::vector<Made>{
             waits("20 serve /home/ann/server.py", "listen 0.0.0.0:80", "inet_csk_accept")};
       })},
      {"workers that wait for orders", everyone([](int) {
         return std::vector<Made>{
             waits("20 orders /home/ann/worker.py", "tcp 10.0.0.9:5555", "wait_woken")};
       })},
      {"actors that wait at a queue", everyone([](int) {
         return std::vector<Made>{
             waits("171 get /usr/lib/python3.11/queue.py;20 act /home/ann/actor.py", "futex")};
       })},
      {"server in a child", everyone([](int) {
         return std::vector<Made>{
             waits("1264 wait /usr/lib/python3.11/subprocess.py", "child 4010"),
             child(kSelect + ";" + kLoop, "-")};
       })},
      {"debugger on rank 0", alone([](int) {
         return std::vector<Made>{waits(
             "126 cmdloop /usr/lib/python3.11/cmd.py;300 interaction /usr/lib/python3.11/pdb.py",
             "file /dev/pts/3", "wait_woken")};
       })},
      {"gdb on rank 0", alone([](int) {
         Made made = waits("30 step /home/ann/train.py", "-");
         made.state = 't';
         return std::vector<Made>{made};
       })},
      {"agent whose workers train", everyone([](int look) {
         Made agent = waits(
             "900 _invoke_run "
             "/usr/lib/python3/dist-packages/torch/distributed/elastic/agent/server/api.py",
             "sleep");
         Made worker =
             child(at(fmt::format("{} step /home/ann/train.py", 40 + look % 5)), "-", 'R');
         worker.cpu = 4900L * look;
         return std::vector<Made>{agent, worker};
       })},
      {"training on GPUs that is seen at one line each time", everyone([](int look) {
         return std::vector<Made>{busy("44 step /home/ann/train.py", look)};
       })},
      {"training on GPUs, busy in the same collective each time", everyone([](int look) {
         Made made = gloo();
         made.state = 'R';
         made.cpu += 4900L * look;
         return std::vector<Made>{made};
       })},
      {"pipeline on GPUs, busy at one line for each stage",
       [](int rank, int look) {
         return std::vector<Made>{busy(fmt::format("{} stage /home/ann/pipe.py", 40 + rank), look)};
       }},
      {"training with gloo", everyone([](int look) {
         Made made = gloo(look % 4 == 0 ? "broadcast" : "all_reduce");
         made.switches += 500 * look;
         return std::vector<Made>{made};
       })},
      {"waits for data, whose workers compute", everyone([](int look) {
         Made worker = child("12 __getitem__ /home/ann/data.py", "-", 'R');
         worker.cpu = 4900L * look;
         return std::vector<Made>{
             waits(
                 "1120 _try_get_data /usr/lib/python3/dist-packages/torch/utils/data/dataloader.py",
                 "pipe"),
             worker};
       })},
      {"a rank that has not started",
       [](int rank, int) {
         return std::vector<Made>{rank == 3 ? test::missing(kNotStarted)
                                            : gloo("init_process_group")};
       }},
      {"a server in C", everyone([](int) {
         Made made = native("triton", 10, 'S', 4000);
         made.parent = 1;
         made.waits = "futex";
         return std::vector<Made>{made};
       })},
      {"no stacks can be read", everyone([](int) {
         return std::vector<Made>{test::missing("hpclaunch-stacks is missing on its node")};
       })},
      {"all have ended", everyone([](int) { return std::vector<Made>{test::missing(kEnded)}; })},
      {"some have ended, the rest sleeps",
       [](int rank, int) {
         return std::vector<Made>{rank < 4 ? test::missing(kEnded)
                                           : waits("9 linger /home/ann/x.py", "sleep")};
       }},
      {"a solver in C", everyone([](int look) {
         Made made = native("solver", 4900L * look, 'R', 4000);
         made.parent = 1;
         return std::vector<Made>{made};
       })},
  };
}

}  // namespace

TEST_CASE("healthy programs raise no alarm", "[stall]") {
  const auto programs = healthy();
  CHECK(programs.size() >= 30);
  for (const auto& [name, make] : programs) {
    INFO(name);
    CHECK(alarm(make) == -1);
  }
}

TEST_CASE("a rank that stands raises one after the limit, a busy one after three times",
          "[stall]") {
  const auto odd = [](Made made, bool works = false) {
    return [made, works](int rank, int look) mutable {
      Made one = rank == 5 ? made : gloo();
      if (rank == 5 && works) one.cpu += 4900L * look;
      return std::vector<Made>{one};
    };
  };
  CHECK(alarm(odd(waits("71 step /home/ann/load.py", "sleep"))) == kLimit);
  CHECK(alarm(odd(waits("19 take /home/ann/load.py", "futex"))) == kLimit);
  CHECK(alarm(odd(waits("25 read /home/ann/load.py", "fifo /scratch/x"))) == kLimit);
  CHECK(alarm(odd(waits("26 lock /home/ann/load.py", "lock /home/ann/.lock"))) == kLimit);
  CHECK(alarm(odd(waits("15 fetch /home/ann/load.py", "tcp 203.0.113.9:443"))) == kLimit);
  Made stopped = waits("20 step /home/ann/load.py", "-");
  stopped.state = 'T';
  CHECK(alarm(odd(stopped)) == kLimit);
  CHECK(alarm(odd(test::missing(kNoAnswer))) == kLimit);
  CHECK(alarm(odd(busy("30 spin /home/ann/load.py", 0), true)) == 3 * kLimit);
  CHECK(alarm(odd(gloo("broadcast", 44))) == kLimit);
  CHECK(alarm(everyone([](int) { return std::vector<Made>{gloo()}; })) == kLimit);

  SECTION("threads that tick beside do not hide it") {
    CHECK(alarm([](int rank, int look) {
            Made made = rank == 5 ? waits("71 step /home/ann/load.py", "sleep") : gloo();
            made.more = fmt::format("thread\t4002\tS\t-\t{}\t{}\t-\t-\t-\t-\tpt_nccl_watchdg\n",
                                    look, 50 * look);
            return std::vector<Made>{made};
          }) == kLimit);
  }
  SECTION("a thread that works for the one that waits is movement, one that sleeps is not") {
    const auto with = [](bool joins, std::string_view thread, int switches = 40) {
      return alarm([=](int rank, int look) {
        Made made = joins ? waits(
                                "1119 join /usr/lib/python3.11/threading.py;30 fetch "
                                "/home/ann/data.py",
                                "futex")
                          : waits("71 step /home/ann/load.py", "sleep");
        made.more = fmt::format("thread\t4003\tS\t-\t3\t{}\t-\t-\t{}\t-\tpython3\n",
                                switches * look, thread) +
                    test::lines_of("40 work /home/ann/data.py");
        return std::vector<Made>{rank == 5 ? made : gloo()};
      });
    };
    CHECK(with(true, "tcp 203.0.113.9:443") == -1);
    CHECK(with(true, "sleep") == kLimit);
    CHECK(with(false, "tcp 203.0.113.9:443") == kLimit);
    CHECK(with(true, "file /data/x", 1) == -1);
    constexpr int kTimeOuts = 7;  // in 5 s: a receive that nothing comes to
    CHECK(with(true, "tcp 203.0.113.9:443", kTimeOuts) == kLimit);
  }
  SECTION("victims that spin do not hide it") {
    CHECK(alarm([](int rank, int look) {
            Made spin = gloo();
            spin.state = 'R';
            spin.cpu += 5000L * look;
            return std::vector<Made>{rank == 5 ? waits("71 step /home/ann/load.py", "sleep")
                                               : spin};
          }) == kLimit);
  }
  SECTION("a dead worker") {
    CHECK(alarm([](int rank, int) -> std::vector<Made> {
            if (rank != 5) return {gloo()};
            return {waits("103 get /usr/lib/python3.11/multiprocessing/queues.py", "pipe"),
                    child("", "-", 'Z')};
          }) == kLimit);
  }
  SECTION("two ranks that receive from each other") {
    CHECK(alarm([](int rank, int) -> std::vector<Made> {
            return {test::plain(rank == 2 || rank == 3 ? 40 : 23)};
          }) == kLimit);
  }
  SECTION("all spin, and the numbers of their collectives stand") {
    const auto spin = everyone([](int look) {
      Made made = gloo();
      made.state = 'R';
      made.cpu += 5000L * look;
      return std::vector<Made>{made};
    });
    const auto standing = [](int look) {
      GroupProgress group;
      group.group = "g";
      group.launched = {{0, std::min(look, 10)}};
      return Sequences{group};
    };
    CHECK(alarm(spin, kRanks, standing) == 10 * kEvery + kLimit);
    const auto moving = [](int look) {
      GroupProgress group;
      group.group = "g";
      group.launched = {{0, look}};
      return Sequences{group};
    };
    CHECK(alarm(spin, kRanks, moving) == -1);
  }
}

TEST_CASE("output is movement, and an alarm is raised once", "[stall]") {
  const auto make = everyone([](int) { return std::vector<Made>{gloo()}; });
  Stall stall(kLimit);
  int alarms = 0;
  for (int look = 0; look < kLooks; ++look) {
    const double now = 1000 + look * kEvery;
    alarms += stall.add(test::snapshot_of(make, kRanks, look, kEvery), now, now - 30);
  }
  CHECK(alarms == 0);
  for (int look = kLooks; look < 2 * kLooks; ++look)
    alarms += stall.add(test::snapshot_of(make, kRanks, look, kEvery), 1000 + look * kEvery, 1000);
  CHECK(alarms == 1);
}

TEST_CASE("still is who has the same stack and did not run, or waits for others", "[stall]") {
  const auto still = [](Made before, Made now) {
    const auto one = [](Made made, double at) { return *parse(0, "", test::text_of({made}, at)); };
    return is_still(one(std::move(before), 1000), one(std::move(now), 1005));
  };
  const Made sleeper = waits("15 poll /home/ann/client.py", "sleep");
  CHECK(still(sleeper, sleeper));
  Made woke = sleeper;
  ++woke.switches;
  CHECK_FALSE(still(sleeper, woke));
  // Threads of gloo and NCCL wake up a hundred times in a second; times have steps of 10 ms.
  const auto one = [](std::string text) { return *parse(0, "", text); };
  const std::string head = "stacks\t1\t{}\nprocess\t7\t1\tS\t{}\t{}\t9\t3.11\tpython3\tx\n";
  const std::string thread =
      "thread\t7\tS\tmain\t754\t529\thrtimer_nanosleep\t230\tsleep\t-\tx\nframe\t7\tload\t/"
      "x.py\nend\n";
  const Rank earlier = one(fmt::format(fmt::runtime(head), 1000, 770, 1659) + thread);
  CHECK(is_still(earlier, one(fmt::format(fmt::runtime(head), 1500, 780, 1860) + thread)));
  CHECK_FALSE(is_still(earlier, one(fmt::format(fmt::runtime(head), 1500, 1200, 1860) + thread)));
  Made wrote = sleeper;
  wrote.bytes += 100000;
  CHECK_FALSE(still(sleeper, wrote));
  Made spins = gloo();
  spins.cpu += 5000;
  CHECK(still(gloo(), spins));
  CHECK_FALSE(still(gloo("all_reduce", 41), gloo("all_reduce", 42)));
  Rank gone;
  gone.missing = kEnded;
  CHECK(is_still(gone, gone));
  gone.missing = kNotStarted;
  CHECK_FALSE(is_still(gone, gone));
}
