// record_stacks PID: the bytes that the walker reads of a living Python, as tests/shim/recorded.h has them.
#include <cstdlib>
#include <map>

#include "shim/live.h"
#include "shim/recorded.h"

using namespace hpclaunch;

namespace {

/// Keeps what was read.
class Recorder {
 public:
  explicit Recorder(int pid) { pages_.restart({pid}); }
  void forget() { pages_.forget(); }
  int error() const { return pages_.error(); }
  bool read(unsigned long at, void* to, int size, bool fresh = true) {
    const bool good = pages_.read(at, to, size, fresh);
    for (int i = 0; good && i < size; ++i)
      seen[at + static_cast<unsigned long>(i)] = static_cast<const unsigned char*>(to)[i];
    return good;
  }
  template <class T>
  T get(unsigned long at, bool fresh = true) {
    T value = {};
    return read(at, &value, sizeof value, fresh) ? value : T();
  }
  std::map<unsigned long, unsigned char> seen;

 private:
  static shim::Pages<shim::LiveProcess> pages_;
};
constinit shim::Pages<shim::LiveProcess> Recorder::pages_;

}  // namespace

int main(int argc, char** argv) {
  static shim::Image program;
  static shim::Image library;
  const int pid = argc == 2 ? std::atoi(argv[1]) : 0;
  if (pid <= 0 || shim::find_images(pid, program, library) != 0) return 1;
  const shim::Image& image = library.start != 0 ? library : program;
  Recorder memory(pid);
  shim::python::Walker<Recorder> walker(memory);
  shim::Line why;
  int minor = image.minor;
  const unsigned long runtime = shim::find_runtime(memory, pid, image, minor);
  if (!walker.begin(runtime, minor, why)) return 1;
  walker.each_thread([&](const shim::python::State& state) {
    static shim::python::Stack stack;
    static shim::python::Name function;
    static shim::python::Name file;
    int line = 0;
    walker.read(state, stack);
    for (int i = 0; i < stack.count; ++i) walker.describe(stack.frames[i], function, file, line);
  });
  std::printf("image %lx %d %d", image.start, image.major, image.minor);
  unsigned long expected = 0;
  for (const auto& [at, byte] : memory.seen) {
    if (at != expected) std::printf("\nmemory %lx ", at);
    std::printf("%02x", byte);
    expected = at + 1;
  }
  std::printf("\n");
}
