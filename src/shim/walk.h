#pragma once
// The stacks of a CPython process, from its memory: runtime -> interpreters -> threads -> frames -> code. What is read may
// change meanwhile, or be anything at all: every loop is bounded, and nothing read is used without a check.
#include "python_layout.h"
#include "say.h"

namespace hpclaunch::shim::python {

constexpr int kMostFrames = 200;
constexpr int kMostThreads = 512;
constexpr int kMostInterpreters = 64;
constexpr int kMostCharacters = 512;  // of a name

using Name = Buffer<4 * kMostCharacters + 3>;

struct Frame {
  Address at = 0;
  Address code = 0;
  Address instruction = 0;
  friend constexpr bool operator==(const Frame&, const Frame&) = default;
};

/// The innermost first.
struct Stack {
  Frame frames[kMostFrames];
  int count = 0;
  bool more = false;      ///< there are more frames
  bool changing = false;  ///< no two readings were equal
  friend constexpr bool operator==(const Stack& a, const Stack& b) {
    if (a.count != b.count) return false;
    for (int i = 0; i < a.count; ++i)
      if (!(a.frames[i] == b.frames[i])) return false;
    return true;
  }
};

/// A PyThreadState.
struct State {
  Address at = 0;
  Address descriptor = 0;  ///< pthread_self()
  int native = 0;          ///< gettid(), where this version keeps it
  bool has_gil = false;
};

/// In UTF-8; of a lone surrogate the byte that it stands for (PEP 383), else what UTF-8 forbids.
inline void add_character(Name& to, unsigned long c) {
  char bytes[4];
  int size = 0;
  const auto put = [&](unsigned long byte) { bytes[size++] = static_cast<char>(byte); };
  const auto tail = [&](int shift) { put(0x80 | (c >> shift & 0x3f)); };
  if (c < 0x80 || (c >= 0xdc80 && c <= 0xdcff)) {
    put(c & 0xff);
  } else if (c < 0x800) {
    put(0xc0 | c >> 6), tail(0);
  } else if (c < 0x10000) {
    put(0xe0 | c >> 12), tail(6), tail(0);
  } else if (c < 0x110000) {
    put(0xf0 | c >> 18), tail(12), tail(6), tail(0);
  } else {
    put('?');
  }
  to.add_bytes({bytes, size});
}

/// `Memory`: Pages of some source.
template <class Memory>
class Walker {
 public:
  explicit Walker(Memory& memory) : memory_(memory) {}

  /// `runtime`: of _PyRuntime. `minor`: of the version where the runtime does not tell; 0: unknown. False: says why.
  bool begin(Address runtime, int minor, Line& why) {
    runtime_ = runtime;
    const Table table = memory_.template get<Table>(runtime);
    if (table.is_there()) minor = table.major() == 3 ? table.minor() : 0;
    minor_ = minor;
    if (minor <= 0) return why.add("its version of Python is unknown"), false;
    if (minor < kOldest || minor > kNewest) {
      why.add("Python 3.")
          .add(minor)
          .add(minor < kOldest ? " is older than 3." : " is newer than 3.");
      return why.add(minor < kOldest ? kOldest : kNewest), false;
    }
    if (minor >= kFirstWithTable) {
      if (table.free_threaded()) return why.add("it is a free-threaded build of Python"), false;
      if (!table.is_there() || !table.read(layout_))
        return why.add("its interpreter is unknown"), false;
    } else {
      layout_ = kLayouts[minor - kOldest];
    }
    if (pointer(runtime_, layout_.interpreters) != 0) return true;
    return why.add("its interpreter has not started, or has ended"), false;
  }

  int minor() const { return minor_; }

  template <class Use>
  void each_thread(Use use) {
    constexpr int kMostStates = 4096;  // the oldest, of the main thread, is the last
    int threads = 0;
    Address interpreter = pointer(runtime_, layout_.interpreters);
    for (int i = 0; i < kMostInterpreters && interpreter != 0; ++i) {
      const Address holder = gil_holder(interpreter);
      State state;
      state.at = pointer(interpreter, layout_.interpreter.threads);
      for (; state.at != 0 && threads < kMostStates; ++threads) {
        state.descriptor = pointer(state.at, layout_.thread.id);
        if (layout_.thread.native_id >= 0)
          state.native = memory_.template get<int>(offset(state.at, layout_.thread.native_id));
        state.has_gil = state.at == holder;
        use(state);
        state.at = pointer(state.at, layout_.thread.next);
      }
      interpreter = pointer(interpreter, layout_.interpreter.next);
    }
  }

  /// Twice, and once more where the two differ.
  void read(const State& thread, Stack& to) {
    constinit static Stack again;
    read_once(thread.at, again);
    for (int i = 0; i < 2; ++i) {
      read_once(thread.at, to);
      to.changing = !(to == again);
      if (!to.changing) return;
      again = to;
    }
  }

  /// False: this is no frame, which happens while frames change.
  bool describe(const Frame& frame, Name& function, Name& file, int& line) {
    function.cut_to(0);
    file.cut_to(0);
    const int first = memory_.template get<int>(offset(frame.code, layout_.code.first_line), false);
    const bool good = first >= 0 && add_text(code_member(frame, layout_.code.file), file) &&
                      add_text(code_member(frame, layout_.code.name), function);
    line = good ? line_of(frame, first) : 0;
    return good;
  }

 private:
  static Address offset(Address at, int bytes) { return at + static_cast<Address>(bytes); }
  Address pointer(Address at, int bytes) {
    return memory_.template get<Address>(offset(at, bytes));
  }
  Address code_member(const Frame& frame, int bytes) {
    return memory_.template get<Address>(offset(frame.code, bytes), false);
  }

  Address gil_holder(Address interpreter) {
    const int at = layout_.interpreter.gil;
    const Address gil = at < 0 ? runtime_ : pointer(interpreter, at);
    const bool locked = memory_.template get<int>(offset(gil, layout_.gil.locked)) == 1;
    return locked ? pointer(gil, layout_.gil.holder) : 0;
  }

  void read_once(Address thread, Stack& to) {
    constexpr int kMostSteps = 4 * kMostFrames;  // some frames are of the interpreter itself
    constexpr char kOfInterpreter = 3;           // _frameowner; above: of the C stack
    memory_.forget();
    to.count = 0;
    to.more = false;
    Address at = pointer(thread, layout_.thread.frame);
    if (layout_.innermost >= 0 && at != 0) at = pointer(at, layout_.innermost);
    Address passed = 0;  // of a circle it is met again (Brent)
    for (int i = 1; at != 0 && at != passed; ++i) {
      if (to.count == kMostFrames || i > kMostSteps) return static_cast<void>(to.more = true);
      if ((i & (i - 1)) == 0) passed = at;
      Frame& frame = to.frames[to.count];
      frame = {at, pointer(at, layout_.frame.code) & ~7UL, instruction(at)};  // low bits: tags
      if (!is_of_interpreter(at, kOfInterpreter) && frame.code != 0) ++to.count;
      at = pointer(at, layout_.frame.previous);
    }
  }
  bool is_of_interpreter(Address frame, char first) {
    const int at = layout_.frame.owner;
    return at >= 0 && memory_.template get<char>(offset(frame, at)) >= first;
  }
  Address instruction(Address frame) {
    if (layout_.lines == Lines::locations) return pointer(frame, layout_.frame.instruction);
    const int last = memory_.template get<int>(offset(frame, layout_.frame.instruction));
    return static_cast<Address>(last);
  }

  /// A str whose characters follow its head. False: it is none.
  bool add_text(Address text, Name& to) {
    constexpr int kLength = 16, kState = 32;  // of PyASCIIObject
    const long length = memory_.template get<long>(offset(text, kLength), false);
    unsigned state = memory_.template get<unsigned>(offset(text, kState), false);
    if ((state & 0xfffc) == 0) state >>= 14;  // 3.14 keeps 16 bits before the others
    const int width = static_cast<int>(state >> 2 & 7);
    const bool compact = (state & 1U << 5) != 0, ascii = (state & 1U << 6) != 0;
    if (!compact || (width != 1 && width != 2 && width != 4) || length < 0) return false;
    Address at = offset(text, ascii ? layout_.text.ascii : layout_.text.other);
    for (long i = 0; i < length && i < kMostCharacters; ++i, at += static_cast<Address>(width)) {
      unsigned c = 0;
      if (!memory_.read(at, &c, width, false)) return false;
      add_character(to, c);
    }
    if (length > kMostCharacters) to.add_bytes("...");
    return true;
  }

  /// The bytes of a bytes object, one after the other.
  class Bytes {
   public:
    Bytes(Memory& memory, Address object) : memory_(memory), at_(object + 32) {
      left_ = memory.template get<long>(object + 16, false);
    }
    bool next(unsigned& byte) {
      unsigned char one = 0;
      if (left_-- <= 0 || taken_++ > kMost || !memory_.read(at_++, &one, 1, false)) return false;
      return byte = one, true;
    }
    bool next_signed(int& number) {
      unsigned byte = 0;
      if (!next(byte)) return false;
      return number = static_cast<signed char>(byte), true;
    }
    /// Six bits a byte, the lowest first.
    bool next_number(unsigned& number) {
      constexpr unsigned kMore = 0x40;
      unsigned byte = kMore;
      number = 0;
      for (int shift = 0; (byte & kMore) != 0 && shift < 30; shift += 6) {
        if (!next(byte)) return false;
        number |= (byte & 0x3f) << shift;
      }
      return true;
    }

   private:
    static constexpr long kMost = 1 << 20;
    Memory& memory_;
    Address at_;
    long left_ = 0;
    long taken_ = 0;
  };

  /// 0: none.
  int line_of(const Frame& frame, int first) {
    Bytes table(memory_, code_member(frame, layout_.code.lines));
    if (layout_.lines != Lines::locations) {
      const long last = static_cast<int>(frame.instruction);
      return layout_.lines == Lines::increments ? line_by_increments(table, last, first)
                                                : line_by_ranges(table, 2 * last, first);
    }
    const Address start = offset(frame.code, layout_.code.bytes);
    return line_by_locations(table, frame.instruction < start ? 0 : (frame.instruction - start) / 2,
                             static_cast<unsigned>(first));
  }

  static int line_by_increments(Bytes table, long last, int line) {
    unsigned step = 0;
    int more = 0;
    for (long at = 0; table.next(step) && table.next_signed(more);) {
      at += step;
      if (at > last) break;
      line += more;
    }
    return line > 0 ? line : 0;
  }

  static int line_by_ranges(Bytes table, long last, int line) {
    constexpr int kNone = -128;
    unsigned step = 0;
    int more = 0;
    for (long at = 0; table.next(step) && table.next_signed(more);) {
      at += step;
      if (more != kNone) line += more;
      if (last < at) return more == kNone || line < 0 ? 0 : line;
    }
    return 0;
  }

  /// Objects/locations.md of CPython: a byte with kind and length of a run of instructions, then what the kind has.
  static int line_by_locations(Bytes table, unsigned long last, unsigned line) {
    constexpr unsigned kNone = 15, kLong = 14, kNoColumns = 13, kOneLine = 10;
    unsigned head = 0;
    for (unsigned long at = 0; table.next(head);) {
      const unsigned kind = head >> 3 & 15;
      unsigned word = 0;
      if (kind == kLong || kind == kNoColumns) {
        if (!table.next_number(word)) return 0;
        line += (word & 1) != 0 ? 0U - (word >> 1) : word >> 1;
        for (int i = 0; i < 3 && kind == kLong; ++i)
          if (!table.next_number(word)) return 0;
      } else if (kind != kNone) {
        if (kind >= kOneLine) line += kind - kOneLine;
        const int bytes = kind >= kOneLine ? 2 : 1;
        for (int i = 0; i < bytes; ++i)
          if (!table.next(word)) return 0;
      }
      at += (head & 7) + 1;
      if (last < at) return kind == kNone || line > kMaxNumber ? 0 : static_cast<int>(line);
    }
    return 0;
  }

  Memory& memory_;
  Layout layout_ = {};
  Address runtime_ = 0;
  int minor_ = 0;
};

}  // namespace hpclaunch::shim::python
