#pragma once
// The records of the shims on stderr, found in the launcher's output: docs/reference/shim.md. Pure.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/sys.h"

namespace hpclaunch::sys::supervised {

/// Exit status 0 to 255, or signal 1 to 64; `seconds` is UNIX time on the rank's node.
struct Record : RankExit {
  int node = 0;
  std::string host;
  bool is_begin = false;
  bool is_tail = false;
  std::string tail;   ///< of stderr, one line
  int log_error = 0;  ///< errno with which its log file was given up; 0: another record
};

/// What the records of one job look like: numbers beyond its ranks and nodes are no record's.
struct Bounds {
  int ranks = 1;
  int nodes = 1;
  std::string marker;  ///< "@hpclaunch KEY ", with which each begins
};

/// `text` from the marker to the end of the line, without the newline.
std::optional<Record> parse_record(std::string_view text, const Bounds& bounds);

/// "[3] ", "3: ", "n1 3: ", "[1,3]<stderr>:": what launchers put in front of a line, with or without the
/// blank at its end.
bool is_tag(std::string_view text);

/// Turns a launcher's stderr, in pieces of any size, into text and records. Text is shown at once, apart
/// from what may become a record or is only a tag so far; `flush` lets that go.
class Splitter {
 public:
  static constexpr std::size_t kLongest = 64 * 1024;  ///< bytes held back at most
  static constexpr long kPatience = 2000;  ///< ms for which the beginning of a record is held back
  static constexpr long kQuiet = 100;      ///< ms for which a tag is

  explicit Splitter(Bounds bounds) : bounds_(std::move(bounds)) {}

  struct Sink {
    std::string text;             ///< to be shown
    std::vector<Record> records;  ///< in the order in which they came
  };
  /// `now` in ms of any clock that does not run backwards.
  void feed(std::string_view bytes, long now, Sink& to);
  void flush(long now, Sink& to);  ///< what has waited long enough
  void finish(Sink& to);           ///< everything: nothing will follow
  long next_flush() const;         ///< when `flush` has something to do; -1 for never

  /// A line stands open on the reader's screen.
  bool open_line() const { return open_; }
  void line_ended() { open_ = false; }

 private:
  void take_line(std::string_view line, Sink& to);
  void show(std::string_view text, Sink& to);
  void release(Sink& to);
  std::size_t releasable() const;

  Bounds bounds_;
  std::string held_;    ///< of the current line
  bool shown_ = false;  ///< a part of the current line has left
  bool open_ = false;
  long since_ = 0;
};

}  // namespace hpclaunch::sys::supervised
