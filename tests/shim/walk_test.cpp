// The walker on recorded memory of CPython 3.9 to 3.13, and on what no interpreter writes.
#include <fmt/format.h>

#include <algorithm>
#include <fstream>
#include <iterator>
#include <memory>

#include "shim/recorded.h"
#include "shim/waits.h"
#include "support/catch.h"
#include "support/dice.h"

using namespace hpclaunch;
using namespace hpclaunch::shim::python;
using test::RecordedPages;
using test::Recording;

namespace {

using Memory = shim::Pages<RecordedPages>;

static_assert(shim::character_size("a") == 1 && shim::character_size("\xc3\xa9") == 2);
static_assert(shim::character_size("\xe4\xb8\xad") == 3 &&
              shim::character_size("\xf0\x9f\x98\x80") == 4);
static_assert(shim::character_size("\xff") == 0 && shim::character_size("\x80") == 0);
static_assert(shim::character_size("\xc0\x80") == 0 && shim::character_size("\xe0\x80\x80") == 0);
static_assert(shim::character_size("\xed\xa0\x80") == 0 &&
              shim::character_size("\xf4\x90\x80\x80") == 0);
static_assert(shim::character_size("\xf0\x80\x80\x80") == 0 &&
              shim::character_size("\xe4\xb8") == 0);
static_assert(shim::wait_of(SYS_read) == shim::Wait::file &&
              shim::wait_of(SYS_fstat) == shim::Wait::file);
static_assert(shim::wait_of(SYS_futex) == shim::Wait::futex &&
              shim::wait_of(-1) == shim::Wait::unknown);

std::string text_of(int minor) {
  std::ifstream in(fmt::format(HPCLAUNCH_SOURCE_DIR "/tests/data/stacks/3.{}.txt", minor),
                   std::ios::binary);
  return {std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
}

/// A recording and a walker on it.
struct Walk {
  explicit Walk(const std::string& text) : recording(text), memory(new Memory), walker(*memory) {
    restart();
  }
  void restart() { memory->restart({&recording.pages}); }
  RecordedPages edit() { return {&recording.pages}; }
  Address runtime() {
    int minor = recording.image.minor;
    return shim::find_runtime(*memory, 0, recording.image, minor);
  }
  std::string begin() {
    restart();
    int minor = recording.image.minor;
    const Address found = shim::find_runtime(*memory, 0, recording.image, minor);
    shim::Line why;
    return walker.begin(found, minor, why) ? "" : Recording::string(why.text());
  }
  std::vector<State> states() {
    std::vector<State> found;
    walker.each_thread([&](const State& state) { found.push_back(state); });
    return found;
  }
  Stack& read(const State& state) {
    walker.read(state, stack);
    return stack;
  }
  std::vector<Recording::Frame> frames(const State& state) {
    std::vector<Recording::Frame> found;
    read(state);
    for (int i = 0; i < stack.count; ++i) {
      int line = 0;
      if (walker.describe(stack.frames[i], function, file, line))
        found.push_back({line, Recording::string(function.text()), Recording::string(file.text())});
    }
    return found;
  }
  void check_frames() {
    const std::vector<State> threads = states();  // the newest first
    REQUIRE(threads.size() == recording.threads.size());
    for (std::size_t i = 0; i < threads.size(); ++i) {
      const Recording::Thread& want = recording.threads[threads.size() - 1 - i];
      CHECK(frames(threads[i]) == want.frames);
      CHECK_FALSE(threads[i].has_gil);
      if (walker.minor() > 10) CHECK(threads[i].native == want.native);
    }
  }
  Layout layout() {
    const int minor = walker.minor();
    if (minor < kFirstWithTable) return kLayouts[minor - kOldest];
    Layout found = {};
    memory->forget();
    REQUIRE(memory->get<Table>(runtime()).read(found));
    return found;
  }

  Recording recording;
  std::unique_ptr<Memory> memory;
  Walker<Memory> walker;
  Stack stack;
  Name function, file;
};

Address at(Address address, int offset) { return address + static_cast<Address>(offset); }

/// The recording of 3.13 as 3.14 would have it: its table, its tags, its texts.
void make_newer(Walk& walk) {
  const Layout layout = walk.layout();
  const RecordedPages edit = walk.edit();
  for (const State& state : walk.states()) {
    walk.read(state);
    for (int i = 0; i < walk.stack.count; ++i) {
      const Frame& frame = walk.stack.frames[i];
      edit.set(at(frame.at, layout.frame.code), frame.code | 1);
      for (const int member : {layout.code.file, layout.code.name}) {
        const auto text = walk.memory->get<Address>(at(frame.code, member));
        const auto bits = walk.memory->get<unsigned>(at(text, 32));
        if (bits < 1U << 16) edit.set(at(text, 32), (bits & 3U) | (bits >> 2 & 0x3fff) << 16);
      }
    }
  }
  const Address runtime = walk.runtime();
  const Table old = walk.memory->get<Table>(runtime);
  Table made = old;
  made.number[1] = 0x030e00f0;
  int to = 10;
  made.number[to++] = 7;  // threads.main
  for (int from = 10; from < 19; ++from) made.number[to++] = old.number[from];
  made.number[to++] = 8;  // code_object_generation
  made.number[to++] = 9;  // tlbc_generation
  for (int from = 19; from < 34; ++from) made.number[to++] = old.number[from];
  made.number[to++] = 11;  // stackpointer
  made.number[to++] = 12;  // tlbc_index
  for (int from = 34; from < 44; ++from) made.number[to++] = old.number[from];
  edit.set(runtime, made);
}

}  // namespace

TEST_CASE("stacks of recorded interpreters are what Python said", "[shim]") {
  for (int minor = 9; minor <= 13; ++minor) {
    INFO(minor);
    Walk walk(text_of(minor));
    CHECK(walk.begin().empty());
    CHECK(walk.walker.minor() == minor);
    CHECK(walk.recording.threads.size() == 3);
    walk.check_frames();
  }
}

TEST_CASE("stacks of 3.14, with its table, tags and texts", "[shim]") {
  Walk walk(text_of(13));
  REQUIRE(walk.begin().empty());
  make_newer(walk);
  REQUIRE(walk.begin().empty());
  CHECK(walk.walker.minor() == 14);
  walk.check_frames();
}

TEST_CASE("the thread that has the GIL", "[shim]") {
  for (int minor = 9; minor <= 13; ++minor) {
    INFO(minor);
    Walk walk(text_of(minor));
    REQUIRE(walk.begin().empty());
    const Layout layout = walk.layout();
    const Address runtime = walk.runtime();
    const auto interpreter = walk.memory->get<Address>(at(runtime, layout.interpreters));
    const Address gil = layout.interpreter.gil < 0
                            ? runtime
                            : walk.memory->get<Address>(at(interpreter, layout.interpreter.gil));
    const State holder = walk.states()[1];
    walk.edit().set(at(gil, layout.gil.locked), 1);
    walk.edit().set(at(gil, layout.gil.holder), holder.at);
    walk.restart();
    const std::vector<State> seen = walk.states();
    CHECK_FALSE(seen[0].has_gil);
    CHECK(seen[1].has_gil);
    CHECK_FALSE(seen[2].has_gil);
  }
}

TEST_CASE("interpreters of which no stacks are read say why", "[shim]") {
  const auto with_table = [](unsigned long version, unsigned long free_threaded) {
    Walk walk(text_of(13));
    REQUIRE(walk.begin().empty());
    walk.edit().set(walk.runtime() + 8, version);
    walk.edit().set(walk.runtime() + 16, free_threaded);
    return walk.begin();
  };
  CHECK(with_table(0x030f00f0, 0) == "Python 3.15 is newer than 3.14");
  CHECK(with_table(0x040000f0, 0) == "its version of Python is unknown");
  CHECK(with_table(0x030d01f0, 1) == "it is a free-threaded build of Python");

  Walk old(text_of(9));
  old.recording.image.minor = 8;
  CHECK(old.begin() == "Python 3.8 is older than 3.9");
  old.recording.image.minor = 0;
  CHECK(old.begin() == "its version of Python is unknown");
  old.recording.image.minor = 9;
  old.edit().set(old.runtime() + 32, 0UL);
  CHECK(old.begin() == "its interpreter has not started, or has ended");
  old.recording.image.minor = 13;
  CHECK(old.begin() == "its interpreter is unknown");

  Walk named(text_of(12));  // the program tells by Py_Version, whatever its name is
  named.recording.image.minor = 0;
  CHECK(named.begin().empty());
  CHECK(named.walker.minor() == 12);
}

TEST_CASE("circles of frames, threads and interpreters end", "[shim]") {
  for (int minor = 9; minor <= 13; ++minor) {
    INFO(minor);
    Walk walk(text_of(minor));
    REQUIRE(walk.begin().empty());
    const Layout layout = walk.layout();
    const State state = walk.states().front();
    const Stack before = walk.read(state);
    REQUIRE(before.count >= 3);
    for (const int last : {0, before.count - 1}) {
      walk.edit().set(at(before.frames[last].at, layout.frame.previous), before.frames[0].at);
      const Stack& seen = walk.read(state);
      CHECK(seen.count >= last + 1);
      CHECK(seen.count < 20);
      walk.edit().set(at(before.frames[last].at, layout.frame.previous),
                      before.frames[last + 1 < before.count ? last + 1 : last].at);
    }
    walk.edit().set(at(state.at, layout.thread.next), state.at);
    walk.restart();
    CHECK(walk.states().size() == 4096);
    walk.edit().set(at(state.at, layout.thread.next), 0UL);
    const auto interpreter = walk.memory->get<Address>(at(walk.runtime(), layout.interpreters));
    walk.edit().set(at(interpreter, layout.interpreter.next), interpreter);
    walk.restart();
    CHECK(walk.states().size() == 64);
  }
}

TEST_CASE("frames beyond the limit are left out", "[shim]") {
  Walk walk(text_of(12));
  REQUIRE(walk.begin().empty());
  const Layout layout = walk.layout();
  const State state = walk.states().front();
  const Frame first = walk.read(state).frames[0];
  Address next = 0x10000;
  walk.edit().set(at(first.at, layout.frame.previous), next);
  for (int i = 0; i < 1000; ++i, next += 128) {
    walk.edit().set(at(next, layout.frame.code), first.code);
    walk.edit().set(at(next, layout.frame.previous), next + 128);
  }
  walk.read(state);
  CHECK(walk.stack.count == kMostFrames);
  CHECK(walk.stack.more);
  CHECK_FALSE(walk.stack.changing);
  for (Address one = 0x10000; one < next; one += 128)
    walk.edit().set(at(one, layout.frame.owner), '\3');
  walk.read(state);
  CHECK(walk.stack.count == 1);
  CHECK(walk.stack.more);
}

TEST_CASE("texts that are none are no frames", "[shim]") {
  Walk walk(text_of(11));
  REQUIRE(walk.begin().empty());
  const Layout layout = walk.layout();
  const State state = walk.states().front();
  const Frame frame = walk.read(state).frames[0];
  constexpr Address text = 0x20000;
  constexpr unsigned bits = 0x64;  // compact, ASCII, a byte each
  walk.edit().set(at(frame.code, layout.code.name), text);
  walk.edit().poke(text + 48, std::string(1000, 'x'));
  walk.edit().set(text + 32, bits);
  walk.restart();
  const std::size_t frames = walk.frames(state).size();
  const auto with = [&](long length, unsigned state_bits) {
    walk.edit().set(text + 16, length);
    walk.edit().set(text + 32, state_bits);
    walk.restart();
    const auto seen = walk.frames(state);
    return seen.size() < frames ? std::string("none") : seen.front().function;
  };
  CHECK(with(-1, bits) == "none");
  CHECK(with(1, 0) == "none");
  CHECK(with(1, bits & ~(1U << 5)) == "none");          // not compact
  CHECK(with(1, (bits & ~0x1cU) | 3U << 2) == "none");  // three bytes each
  CHECK(with(0, bits).empty());
  CHECK(with(3, bits) == "xxx");
  CHECK(with(1L << 62, bits) == std::string(512, 'x') + "...");
  walk.edit().set(at(frame.code, layout.code.name), text + shim::kPageBytes);
  CHECK(with(3, bits) == "none");  // not mapped
}

namespace {

/// The instruction of the innermost frame is another one each time that its page is read.
struct MovingPages {
  RecordedPages recorded;
  Address instruction = 0;
  int moves = 0;  ///< how often
  long page(unsigned long address, char* to) {
    if (address == instruction / shim::kPageBytes * shim::kPageBytes && moves > 0) {
      recorded.set(instruction, static_cast<int>(--moves));
    }
    return recorded.page(address, to);
  }
};

}  // namespace

TEST_CASE("frames are read until two readings are equal, at most thrice", "[shim]") {
  Walk walk(text_of(10));
  REQUIRE(walk.begin().empty());
  const State state = walk.states().front();
  const Address instruction = at(walk.read(state).frames[0].at, walk.layout().frame.instruction);
  const Address runtime = walk.runtime();
  for (const auto& [moves, changing] :
       std::map<int, bool>{{0, false}, {1, false}, {2, false}, {9, true}}) {
    INFO(moves);
    const auto memory = std::make_unique<shim::Pages<MovingPages>>();
    memory->restart({walk.edit(), instruction, moves});
    Walker<shim::Pages<MovingPages>> walker(*memory);
    shim::Line why;
    REQUIRE(walker.begin(runtime, 10, why));
    walker.read(state, walk.stack);
    CHECK(walk.stack.changing == changing);
    CHECK(walk.stack.count == 4);
  }
}

TEST_CASE("any memory ends the walk", "[shim]") {
  Dice dice(20261128);
  std::vector<std::string> texts;
  for (int minor = 9; minor <= 13; ++minor) texts.push_back(text_of(minor));
  for (std::size_t turn = 0; turn < 2000; ++turn) {
    std::string text = texts[turn % texts.size()];
    for (std::size_t i = 1 + dice.below(20); i > 0; --i)
      text[dice.below(text.size())] = "0123456789abcdef"[dice.below(16)];
    Walk walk(text);
    RecordedPages::reads = 0;
    if (!walk.begin().empty()) continue;
    std::size_t frames = 0;
    std::vector<State> states = walk.states();
    CHECK(states.size() <= 4096);
    states.resize(std::min<std::size_t>(states.size(), 8));
    for (const State& state : states) frames = std::max(frames, walk.frames(state).size());
    CHECK(frames <= kMostFrames);
    CHECK(RecordedPages::reads < 100000);
  }
}
