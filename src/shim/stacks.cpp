// hpclaunch-stacks [--all-threads] [--ras HOST:PORT] [--most BYTES] PID [PID...]
//
// What a process and its descendants do (and others that belong to it, and theirs): their threads, what these wait for, and where they are in Python. Reads /proc and
// the memory of the processes; stops, signals and changes none. docs/reference/stacks.md has the format.
#include "ras.h"
#include "snapshot.h"

namespace {

using namespace hpclaunch::shim;

constexpr int kNoProcess = 1;
constexpr int kUsage = 2;
constexpr int kMostProcesses = 64;

struct Options {
  bool all_threads = false;
  int most = 65536;
  Text ras;
  int pids[kMostProcesses];
  int count = 0;
};

/// False: wrong usage.
bool read_options(int argc, char** argv, Options& to) {
  constexpr int kFewest = 256, kMost = 1 << 24;
  for (int i = 1; i < argc; ++i) {
    const Text word(argv[i]);
    const bool more = i + 1 < argc;
    if (word == "--all-threads") {
      to.all_threads = true;
    } else if (word == "--ras" && more) {
      to.ras = argv[++i];
    } else if (word == "--most" && more) {
      if (!is_number(argv[++i], to.most) || to.most < kFewest || to.most > kMost) return false;
    } else {
      if (to.count == kMostProcesses || !is_number(word, to.pids[to.count])) return false;
      if (to.pids[to.count++] == 0) return false;
    }
  }
  return to.count > 0;
}

}  // namespace

[[noreturn]] static void run(int argc, char** argv) {
  constinit static Output out;
  static int queue[kMostProcesses];
  Options options;
  if (!read_options(argc, argv, options)) {
    Line("usage: hpclaunch-stacks [--all-threads] [--ras HOST:PORT] [--most BYTES] PID [PID...]")
        .print();
    leave(kUsage);
  }
  const timespec now = wall_clock();
  out.limit(options.most);
  out.begin("stacks").number(1).number(static_cast<unsigned long long>(now.tv_sec) * 1000 +
                                       static_cast<unsigned long long>(now.tv_nsec) / 1'000'000);
  out.end();
  int count = 0;
  int left_out = 0;
  for (int i = 0; i < options.count; ++i) queue[count++] = options.pids[i];
  for (int i = 0; i < count; ++i) {
    Snapshot process(queue[i], options.all_threads, out);
    const bool alive = process.write([&](int child) {
      for (int j = 0; j < count; ++j)
        if (queue[j] == child) return;
      if (count == kMostProcesses)
        ++left_out;
      else
        queue[count++] = child;
    });
    if (!alive && i == 0) leave(kNoProcess);
    out.flush();
  }
  if (left_out > 0) out.begin("cut").field("processes").end();
  if (options.ras.size > 0) ask_ras(options.ras, out);
  out.finish();
  leave(0);
}

#ifdef HPCLAUNCH_FREESTANDING
/// `stack`: argc, the arguments, a null pointer, the environment.
extern "C" [[noreturn, gnu::used]] void hpclaunch_start(char** stack) {
  run(static_cast<int>(reinterpret_cast<long>(stack[0])), stack + 1);
}
#else
int main(int argc, char** argv) { run(argc, argv); }
#endif
