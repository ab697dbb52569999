// Memory of a process, as tests/shim/recorded.h has it, and all that the reader of stacks does with it.
#include <memory>

#include "fuzz/expect.h"
#include "shim/recorded.h"
#include "shim/waits.h"

using namespace hpclaunch;
using namespace hpclaunch::shim::python;
using fuzz::expect;

namespace {

using Memory = shim::Pages<test::RecordedPages>;

void check_frames(Walker<Memory>& walker, const State& state) {
  static Stack stack;
  static Name function;
  static Name file;
  walker.read(state, stack);
  expect(stack.count <= kMostFrames && !stack.changing, "frames are bounded, and equal twice");
  for (int i = 0; i < stack.count; ++i) {
    int line = 0;
    if (!walker.describe(stack.frames[i], function, file, line)) continue;
    expect(line >= 0, "a line is from 0 on");
    for (const shim::Text name : {function.text(), file.text()})
      expect(name.size <= 4 * kMostCharacters + 3, "a name is bounded");
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  constexpr long kMostReads = 100'000;
  static const auto memory = std::make_unique<Memory>();
  static shim::Target target;
  test::Recording recording(fuzz::text_of(data, size));
  memory->restart({&recording.pages});
  test::RecordedPages::reads = 0;
  int minor = recording.image.minor;
  const Address runtime = shim::find_runtime(*memory, 0, recording.image, minor);
  Walker<Memory> walker(*memory);
  shim::Line why;
  const bool good = walker.begin(runtime, minor, why);
  expect(good == (why.text().size == 0), "what cannot be read says why");
  int threads = 0;
  if (good)
    walker.each_thread([&](const State& state) {
      if (++threads <= 8) check_frames(walker, state);
    });
  expect(threads <= 4096, "threads are bounded");
  const shim::Text line(reinterpret_cast<const char*>(data), static_cast<int>(size));
  target.cut_to(0);
  shim::add_peer(target, line);
  shim::add_path(target, *memory, recording.image.start, {});
  shim::first_selected(*memory, shim::Blocked(line));
  expect(test::RecordedPages::reads < kMostReads, "reads are bounded");
  return 0;
}
