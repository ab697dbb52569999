#pragma once
// Turns what many ranks write, in pieces of any size, into one stream in which no two ranks share a
// line. Pure: no system call, and the clock is a parameter.
#include <cstddef>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "sys/screen.h"

namespace hpclaunch::sys::local {

/// A line ends with \n, \r or \r\n. Whole lines are emitted at once. The start of a line
/// waits for the rest, and is emitted early when the rank is silent (`flush`), ends (`close`) or
/// when it is longer than kLongestLine. When another rank writes while such a start is the last
/// on the screen, it gets a newline first; if the rank's next byte is its own newline, that one counts
/// as already written. So each rank's bytes come out unchanged, apart from newlines that end an
/// interrupted beginning.
class Lines {
 public:
  static constexpr std::size_t kLongestLine = 64 * 1024;
  static constexpr long kQuiet = 100;  ///< ms of silence of all ranks before a prompt is shown
  static constexpr long kPatience =
      5000;  ///< ms of silence of a rank before any beginning is shown

  /// `one_target`: both our outputs are the same file or terminal. A single rank without labels is
  /// passed through byte by byte. Labels count from `first`, which is rank 0 of all calls, to `all`.
  Lines(int ranks, bool label, bool one_target, int first = 0, int all = 0);

  /// `now` in ms of any clock that does not run backwards.
  void feed(int rank, Stream stream, std::string_view bytes, long now, Pieces& to);

  /// Shows the partial lines that have waited long enough: after kQuiet where a user may be looking
  /// at it (rank 0 has the keyboard; a line after \r is a progress bar), unless a full buffer of
  /// the program was cut there; after kPatience otherwise.
  void flush(long now, Pieces& to);

  /// When `flush` has something to do; -1 for never.
  long next_flush() const;

  void close(int rank, Stream stream, Pieces& to);  ///< this stream has ended

  /// Ends a line that stands open on `stream`'s target, so that a message of ours can follow.
  void end_open_line(Stream stream, Pieces& to);

 private:
  struct State {
    std::string partial;        ///< the start of a line that was not emitted yet
    long last = 0;              ///< when the last byte came
    std::size_t burst = 0;      ///< bytes since the last silence
    bool shown = false;         ///< a part of the current line has left
    bool ended_for_it = false;  ///< we have put a newline after that part
    bool after_cr = false;      ///< the last line left with a bare \r that a \n may follow
    bool bar = false;           ///< the last line ended with \r
  };

  int index(int rank, Stream stream) const { return 2 * rank + static_cast<int>(stream); }
  static Stream stream_of(int at) { return at % 2 == 0 ? Stream::out : Stream::err; }
  State& state_of(int at) { return states_[static_cast<std::size_t>(at)]; }
  const State& state_of(int at) const { return states_[static_cast<std::size_t>(at)]; }
  int& open_line(Stream stream) {
    return open_[one_target_ ? 0 : static_cast<std::size_t>(stream)];
  }
  void emit(int at, std::string_view bytes, bool complete, Pieces& to);
  void take(int at, std::string_view bytes, Pieces& to);
  void label_lines(int at, std::string_view lines, Pieces& to);
  void show(int at, Pieces& to);
  long due(int at) const;

  bool label_;
  bool one_target_;
  bool through_;
  int first_;
  int width_;
  long last_any_ = 0;
  std::vector<State> states_;
  std::set<int> waiting_;   ///< streams with something in `partial`
  int open_[2] = {-1, -1};  ///< per target: the stream whose line stands open on it
};

}  // namespace hpclaunch::sys::local
