#pragma once
// The processes of one rank, where several ranks share a process group, as under srun.
#include "threads.h"

namespace hpclaunch::shim {

/// The program and what it has started, of that what `take` wants; how many. Where the kernel does not list children, one.
template <class Take>
int tree_of(int program, int* queue, int most, Take take) {
  int count = 0;
  queue[count++] = program;
  for (int i = 0; i < count; ++i)
    each_name(process_path(queue[i], "task").text().at, [&](Text name) {
      int thread = 0;
      if (!is_number(name, thread)) return;
      each_child(queue[i], thread, [&](int child) {
        if (count < most && take(child)) queue[count++] = child;
      });
    });
  return count;
}

/// Sends `signal` to the program and to what it has started and is in its process group. Where the kernel does not list
/// children, to the program alone.
inline void signal_tree(int program, int signal) {
  constexpr int kMost = 4096;
  static int queue[kMost];
  const long group = call(SYS_getpgid, program);
  const int count =
      tree_of(program, queue, kMost, [&](int child) { return call(SYS_getpgid, child) == group; });
  for (int i = 0; i < count; ++i) call(SYS_kill, queue[i], signal);
}

/// Ends programs that have no handler for it.
constexpr bool ends(int signal) {
  return signal == SIGTERM || signal == SIGINT || signal == SIGHUP || signal == SIGQUIT;
}

}  // namespace hpclaunch::shim
