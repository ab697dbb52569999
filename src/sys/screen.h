#pragma once
// Our stdout and stderr, written without ever blocking the loop that feeds them.
#include <deque>
#include <string>
#include <string_view>
#include <vector>

namespace hpclaunch::sys {

enum class Stream { out = 0, err = 1 };

/// Bytes for one of our two outputs.
struct Piece {
  Stream stream = Stream::out;
  std::string bytes;
};

/// A file or a device; a pipe, a terminal and /dev/null are never full.
bool can_be_full(int file);

/// A pipe or socket whose other end is closed.
bool has_no_reader(int file);

/// What is to be written, in this order; neighbours for the same stream are joined.
using Pieces = std::vector<Piece>;

void add(Pieces& pieces, Stream stream, std::string_view bytes);

/// One queue for both, so that their order stays. Their descriptions are shared with other
/// processes (a terminal with the shell), so they are not switched to O_NONBLOCK: a pipe is opened once
/// more, which takes as much as it has room for; else poll first, then write no more than what a ready one
/// takes at once.
class Screen {
 public:
  /// Above this many queued bytes nothing more should be read from the ranks.
  static constexpr std::size_t kFull = 1024 * 1024;

  Screen();
  Screen(const Screen&) = delete;
  Screen& operator=(const Screen&) = delete;
  ~Screen();

  bool one_target() const { return one_target_; }
  void add(Pieces&& pieces);
  bool pending() const { return !queue_.empty(); }
  bool full() const { return bytes_ > kFull; }
  int fd() const;  ///< of the next piece; wait until it can be written. -1 when nothing is pending

  /// Writes what can be written now, with a bound so that signals are looked at in between.
  void pump();
  void give_up();  ///< drops the output that the next piece is for

  bool reader_gone() const { return reader_gone(Stream::out) || reader_gone(Stream::err); }
  bool reader_gone(Stream stream) const { return gone_[static_cast<int>(stream)]; }  ///< EPIPE
  /// errno of the first other failure, once; 0 for none.
  int take_error();

 private:
  struct Output {
    int fd = 0;
    bool waits = true;  ///< a write of more than it takes now would block
    bool lost = false;
  };
  bool write_some(Output& output, std::string& bytes);
  void drop_lost();

  Output outputs_[2];
  bool one_target_ = false;
  bool gone_[2] = {};  ///< the reader
  int error_ = 0;
  std::size_t done_ = 0;   ///< bytes of the first piece that are written
  std::size_t bytes_ = 0;  ///< queued
  std::deque<Piece> queue_;
};

}  // namespace hpclaunch::sys
