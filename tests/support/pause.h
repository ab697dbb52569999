#pragma once
// What hpclaunch does after a launch takes as long as a test wants.
#include <cstdio>
#include <string>

namespace hpclaunch::test {

/// Until `fifo` has been opened for writing and closed again; "": at once.
inline void pause_at(const std::string& fifo) {
  std::FILE* const file = fifo.empty() ? nullptr : std::fopen(fifo.c_str(), "r");
  if (file == nullptr) return;
  while (std::fgetc(file) != EOF) continue;
  std::fclose(file);
}

}  // namespace hpclaunch::test
