#include "sys/screen.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <poll.h>
#include <sys/stat.h>
#include <sys/sysmacros.h>
#include <unistd.h>

#include <cerrno>
#include <climits>
#include <string_view>
#include <utility>

namespace hpclaunch::sys {
namespace {

constexpr std::size_t kPerPump = 256 * 1024;
constexpr std::size_t kMostAtOnce = 64 * 1024;  ///< in one call

bool ready(int fd) {
  pollfd wanted{fd, POLLOUT, 0};
  return poll(&wanted, 1, 0) == 1;
}

// How much to write in one call: whole lines where they fit, and at most what cannot block.
std::size_t portion(std::string_view bytes, bool waits) {
  const std::size_t most = waits ? PIPE_BUF : kMostAtOnce;
  if (bytes.size() <= most) return bytes.size();
  const std::size_t newline = bytes.substr(0, most).rfind('\n');
  return newline == std::string_view::npos ? most : newline + 1;
}

// The same pipe, O_NONBLOCK for this process alone; `fd` itself where it cannot be opened: without /proc, or another
// user's, or without a reader.
int opened_again(int fd) {
  const std::string path = fmt::format("/proc/self/fd/{}", fd);
  const int own = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC);
  return own < 0 ? fd : own;
}

}  // namespace

bool can_be_full(int file) {
  struct stat of {};
  if (fstat(file, &of) != 0) return false;
  const bool null_device = of.st_rdev == makedev(1, 3);
  return S_ISREG(of.st_mode) || (S_ISCHR(of.st_mode) && isatty(file) == 0 && !null_device);
}

bool has_no_reader(int file) {
  pollfd one{file, 0, 0};
  return poll(&one, 1, 0) == 1 && (one.revents & (POLLERR | POLLHUP)) != 0;
}

void add(Pieces& pieces, Stream stream, std::string_view bytes) {
  if (bytes.empty()) return;
  if (pieces.empty() || pieces.back().stream != stream) pieces.push_back({stream, {}});
  pieces.back().bytes += bytes;
}

Screen::Screen() {
  struct stat of[2] = {};
  for (int i = 0; i < 2; ++i) {
    outputs_[i].fd = i + 1;
    outputs_[i].lost = fstat(i + 1, &of[i]) != 0;
    if (S_ISFIFO(of[i].st_mode)) outputs_[i].fd = opened_again(i + 1);
    outputs_[i].waits = outputs_[i].fd == i + 1 && !S_ISREG(of[i].st_mode);
  }
  one_target_ = of[0].st_dev == of[1].st_dev && of[0].st_ino == of[1].st_ino;
}

Screen::~Screen() {
  for (int i = 0; i < 2; ++i)
    if (outputs_[i].fd != i + 1) close(outputs_[i].fd);
}

void Screen::add(Pieces&& pieces) {
  for (Piece& piece : pieces) {
    if (outputs_[static_cast<int>(piece.stream)].lost) continue;
    bytes_ += piece.bytes.size();
    queue_.push_back(std::move(piece));
  }
  pieces.clear();
}

int Screen::fd() const {
  return queue_.empty() ? -1 : outputs_[static_cast<int>(queue_.front().stream)].fd;
}

void Screen::pump() {
  const std::size_t before = bytes_;
  while (!queue_.empty() && before - bytes_ < kPerPump) {
    Piece& piece = queue_.front();
    Output& output = outputs_[static_cast<int>(piece.stream)];
    if (!write_some(output, piece.bytes)) return;
    if (output.lost) {
      drop_lost();
    } else if (done_ == piece.bytes.size()) {
      queue_.pop_front();
      done_ = 0;
    }
  }
}

// False: not now.
bool Screen::write_some(Output& output, std::string& bytes) {
  if (output.waits && !ready(output.fd)) return false;
  const std::string_view rest = std::string_view(bytes).substr(done_);
  const std::size_t most = portion(rest, output.waits);
  const ssize_t written = write(output.fd, rest.data(), most);
  if (written >= 0) {
    done_ += static_cast<std::size_t>(written);
    bytes_ -= static_cast<std::size_t>(written);
    return static_cast<std::size_t>(written) == most;
  }
  if (errno == EAGAIN || errno == EINTR) return false;
  output.lost = true;
  if (errno == EPIPE) {
    for (Output& other : outputs_)
      if (one_target_ || &other == &output) gone_[&other - outputs_] = true;
  } else if (error_ == 0) {
    error_ = errno;
  }
  return true;
}

void Screen::drop_lost() {
  std::deque<Piece> kept;
  for (Piece& piece : queue_) {
    if (!outputs_[static_cast<int>(piece.stream)].lost) kept.push_back(std::move(piece));
  }
  queue_ = std::move(kept);
  done_ = 0;
  bytes_ = 0;
  for (const Piece& piece : queue_) bytes_ += piece.bytes.size();
}

void Screen::give_up() {
  if (queue_.empty()) return;
  outputs_[static_cast<int>(queue_.front().stream)].lost = true;
  drop_lost();
}

int Screen::take_error() { return std::exchange(error_, 0); }

}  // namespace hpclaunch::sys
