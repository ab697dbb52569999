#pragma once
// What the fake vendor libraries share. A fake does as the environment says:
//   FAKE_FAIL, FAKE_HANG, FAKE_CRASH, FAKE_EXIT   the name of the call that does so
//   FAKE_PID_FILE                                 where it leaves its process number before it hangs
//   FAKE_COUNT_FILE                               where it adds a byte when it is loaded
//   FAKE_KIND                                     what the machine is like (each fake has its own)
#include <unistd.h>

#include <csignal>
#include <cstdio>
#include <cstdlib>
#include <cstring>
#include <initializer_list>

#define FAKE extern "C" __attribute__((visibility("default")))

namespace fake {

inline bool is(const char* variable, const char* value) {
  const char* found = std::getenv(variable);
  return found != nullptr && std::strcmp(found, value) == 0;
}

inline bool kind(const char* value) { return is("FAKE_KIND", value); }

__attribute__((constructor)) inline void count_load() {
  const char* path = std::getenv("FAKE_COUNT_FILE");
  std::FILE* file = path == nullptr ? nullptr : std::fopen(path, "a");
  if (file == nullptr) return;
  std::fputc('.', file);
  std::fclose(file);
}

/// To be called first by each call; true when it has to fail.
inline bool enter(const char* call) {
  if (is("FAKE_HANG", call)) {
    if (const char* path = std::getenv("FAKE_PID_FILE"); path != nullptr) {
      std::FILE* file = std::fopen(path, "w");
      if (file != nullptr) std::fprintf(file, "%d\n", static_cast<int>(getpid()));
      if (file != nullptr) std::fclose(file);
    }
    for (;;) pause();
  }
  if (is("FAKE_CRASH", call)) std::raise(SIGSEGV);
  if (is("FAKE_EXIT", call)) _exit(0);
  return is("FAKE_FAIL", call);
}

/// Things that a library should not do to its caller.
inline void misbehave() {
  for (const int number : {SIGSEGV, SIGTERM, SIGINT, SIGCHLD, SIGPIPE})
    std::signal(number, SIG_IGN);
  for (int i = 0; i < 4000; ++i) std::puts("fake: a line that nobody asked for, on stdout");
  std::fputs("fake: and one on stderr\n", stderr);
  std::fflush(nullptr);
}

/// Fills a buffer and forgets the end.
inline void overfill(char* text, unsigned long length) { std::memset(text, 'A', length); }

inline void put(char* text, unsigned long length, const char* what) {
  if (length == 0) return;
  std::strncpy(text, what, length - 1);
  text[length - 1] = '\0';
}

}  // namespace fake
