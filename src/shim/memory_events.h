#pragma once
// Kills for lack of memory, as the kernel counts them for a control group.
#include "report.h"

namespace hpclaunch::shim {

/// Of processes of our control group so far; 0 where it cannot be read.
inline int oom_kills() {
  static char bytes[4096];
  constinit static Buffer<kMaxPath + 64> path;
  path.cut_to(0);
  for (Text rest = read_file("/proc/self/cgroup", bytes); rest.size > 0;) {
    Text line, number, controllers;
    cut(rest, '\n', line);
    cut(line, ':', number);
    cut(line, ':', controllers);
    const bool first = controllers == "memory";  // version 1
    if (!first && (number.size != 1 || number.at[0] != '0' || path.text().size > 0)) continue;
    path.cut_to(0);
    path.add_bytes(first ? "/sys/fs/cgroup/memory" : "/sys/fs/cgroup").add_bytes(line);
    path.add_bytes(first ? "/memory.oom_control" : "/memory.events");
  }
  for (Text rest = read_file(path.text().at, bytes); rest.size > 0;) {
    Text line, name;
    cut(rest, '\n', line);
    cut(line, ' ', name);
    int count = 0;
    if (name == "oom_kill" && is_number(line, count)) return count;
  }
  return 0;
}

}  // namespace hpclaunch::shim
