#pragma once
// Ranks for tests, written as hpclaunch-stacks writes them and read by the parser.
#include <fmt/format.h>

#include <functional>

#include "hpclaunch/stacks.h"
#include "support/catch.h"

namespace hpclaunch::test {

using namespace hpclaunch::stacks;

/// One process with its main thread; texts are as in the format, "-" for none.
struct Made {
  std::string
      frames;  ///< of the main thread, innermost first: "41 step /home/ann/train.py;52 <module> ..."
  std::string waits = "-";
  char state = 'S';
  std::string wchan = "-";
  std::string call = "-";
  int pid = 4000, parent = 1;
  long cpu = 5000, switches = 900, bytes = 1 << 20;
  std::string python = "3.11";
  std::string name = "python3";
  std::string more = {};  ///< lines behind its frames
  bool gil = false;
};

inline std::string lines_of(const std::string& frames) {
  std::string text;
  for (std::size_t at = 0; at < frames.size();) {
    const std::size_t end = std::min(frames.find(';', at), frames.size());
    std::string one = frames.substr(at, end - at);
    one[one.find(' ')] = '\t';
    one[one.rfind(' ')] = '\t';
    text += "frame\t" + one + "\n";
    at = end + 1;
  }
  return text;
}

inline std::string text_of(const std::vector<Made>& processes, double at = 1000) {
  std::string text = fmt::format("stacks\t1\t{:.0f}\n", at * 1000);
  for (const Made& one : processes) {
    text +=
        fmt::format("process\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{}\t{} train.py\n", one.pid, one.parent,
                    one.state, one.cpu, one.switches, one.bytes, one.python, one.name, one.name);
    text += fmt::format("thread\t{}\t{}\tmain\t{}\t{}\t{}\t{}\t{}\t{}\t{}\n", one.pid, one.state,
                        one.cpu, one.switches, one.wchan, one.call, one.waits,
                        one.gil ? "gil" : "-", one.name);
    text += lines_of(one.frames) + one.more;
  }
  return text + "end\n";
}

using Make = std::function<std::vector<Made>(int rank, int look)>;

/// What `make` says of each rank at a look; of no process: missing, for the reason that stands in `frames` of none.
inline Snapshot snapshot_of(const Make& make, int ranks, int look = 0, double every = 5) {
  Snapshot snapshot;
  for (int rank = 0; rank < ranks; ++rank) {
    const std::vector<Made> processes = make(rank, look);
    const std::string text = processes.size() == 1 && processes[0].pid == 0
                                 ? "missing\t" + processes[0].frames + "\n"
                                 : text_of(processes, 1000 + look * every);
    Result<Rank> read = parse(rank, fmt::format("n{}", rank / 4), text);
    INFO(text);
    REQUIRE(read);
    snapshot.ranks.push_back(*read);
  }
  return snapshot;
}

inline Verdict judged(const Make& make, int ranks, const Sequences& sequences = {}) {
  return judge(snapshot_of(make, ranks, 0), snapshot_of(make, ranks, 1), sequences, sequences);
}

inline Made missing(std::string_view why) {
  Made made;
  made.pid = 0;
  made.frames = why;
  return made;
}

// Where ranks are that wait: of torch with gloo, and of a program of sockets.
inline const std::string kMain = "88 main /home/ann/train.py;97 <module> /home/ann/train.py";
inline std::string at(std::string_view innermost) { return fmt::format("{};{}", innermost, kMain); }
inline const std::string kC10d =
    "/usr/lib/python3/dist-packages/torch/distributed/distributed_c10d.py";

inline Made gloo(std::string_view operation = "all_reduce", int line = 41) {
  return {fmt::format("1541 {} {};{} step /home/ann/train.py;{}", operation, kC10d, line, kMain),
          "futex", 'S', "futex_wait_queue", "202"};
}

inline Made plain(int line = 23, const std::string& peer = "tcp 10.0.0.1:29500") {
  return {
      fmt::format(
          "{} barrier /home/ann/ring.py;60 main /home/ann/ring.py;71 <module> /home/ann/ring.py",
          line),
      peer, 'S', "wait_woken", "45"};
}

}  // namespace hpclaunch::test
