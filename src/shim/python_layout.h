#pragma once
// Where CPython 3.9 to 3.14 keeps what a stack is made of, in bytes from the start of each structure, on machines with
// pointers of 64 bits. To 3.12 from the headers of each version; later ones have a table of their own in the process.
#include "text.h"

namespace hpclaunch::shim::python {

using Address = unsigned long;

constexpr int kOldest = 9;   ///< Python 3.9
constexpr int kNewest = 14;  ///< Python 3.14
constexpr int kFirstWithTable = 13;

/// How code maps instructions to lines.
enum class Lines {
  increments,
  ranges,
  locations
};  // 3.9: co_lnotab; 3.10; from 3.11: PEP 626 with columns

/// -1: this version has no such member.
struct Layout {
  int interpreters;  ///< the first one, in the runtime
  struct {
    int next, threads, gil;  ///< gil: a pointer; -1: what is in it is in the runtime
  } interpreter;
  struct {
    int holder, locked;  ///< the last thread that had it; 1: it has it now
  } gil;
  struct {
    int next, frame, id, native_id;
  } thread;
  int innermost;  ///< in what thread.frame points to; -1: that is the innermost frame
  struct {
    int previous, code, instruction, owner;
  } frame;
  struct {
    int first_line, file, name, lines, bytes;
  } code;
  struct {
    int ascii, other;  ///< the characters of a text that has ASCII only, and of others
  } text;
  Lines lines;
};

constexpr Layout kLayouts[] = {
    {32,
     {0, 8, -1},
     {360, 368},
     {8, 24, 176, -1},
     -1,
     {24, 32, 104, -1},
     {40, 104, 112, 120, -1},
     {48, 72},
     Lines::increments},
    {32,
     {0, 8, -1},
     {360, 368},
     {8, 24, 176, -1},
     -1,
     {24, 32, 96, -1},
     {40, 104, 112, 120, -1},
     {48, 72},
     Lines::ranges},
    {40,
     {0, 16, -1},
     {368, 376},
     {8, 56, 152, 160},
     8,
     {48, 32, 56, 69},
     {72, 112, 128, 136, 184},
     {48, 72},
     Lines::locations},
    {40,
     {0, 72, 384},
     {8, 16},
     {8, 56, 136, 144},
     0,
     {8, 0, 56, 70},
     {68, 112, 128, 136, 192},
     {40, 56},
     Lines::locations},
};

/// _Py_DebugOffsets, with which _PyRuntime begins: numbers of 8 bytes. What stands behind the code object is not needed.
struct Table {
  static constexpr int kNumbers = 64;
  static constexpr unsigned long kCookie = 0x7970677562656478;  // "xdebugpy", the low byte first
  unsigned long number[kNumbers] = {};

  bool is_there() const { return number[0] == kCookie; }
  int major() const { return static_cast<int>(number[1] >> 24); }
  int minor() const { return static_cast<int>(number[1] >> 16 & 0xff); }
  bool free_threaded() const { return number[2] != 0; }

  /// False: a number that no layout has.
  bool read(Layout& to) const {
    const bool newer = minor() > kFirstWithTable;
    constexpr int kRuntime = 3, kInterpreter = kRuntime + 3;
    const int gil = kInterpreter + 8 + newer;  // 3.14 has threads.main before it
    const int thread = kInterpreter + (newer ? 16 : 13);
    const int frame = thread + 9;
    const int code = frame + (newer ? 8 : 6);
    const int state = at(gil + 1);
    to.interpreters = at(kRuntime + 2);
    to.interpreter = {at(kInterpreter + 2), at(kInterpreter + 3), at(gil)};
    to.gil = {at(gil + 4) - state, at(gil + 3) - state};
    to.thread = {at(thread + 2), at(thread + 4), at(thread + 5), at(thread + 6)};
    to.innermost = -1;
    to.frame = {at(frame + 1), at(frame + 2), at(frame + 3), at(frame + 5)};
    to.code = {at(code + 5), at(code + 1), at(code + 3), at(code + 4), at(code + 9)};
    to.text = {40, 56};
    to.lines = Lines::locations;
    for (int i = kRuntime; i <= code + 9; ++i)
      if (at(i) < 0) return false;
    return to.gil.holder >= 0 && to.gil.locked >= 0;
  }

 private:
  int at(int i) const {
    constexpr unsigned long kMost = 1 << 24;
    return number[i] < kMost ? static_cast<int>(number[i]) : -1;
  }
};

}  // namespace hpclaunch::shim::python
