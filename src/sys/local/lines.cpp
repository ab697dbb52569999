#include "sys/local/lines.h"

#include <fmt/format.h>

#include <algorithm>

namespace hpclaunch::sys::local {
namespace {

// Programs that write into a pipe flush whole buffers, 4 KiB or a multiple, wherever the line is.
constexpr std::size_t kBuffer = 4096;

// Where the last line that has surely ended ends; 0 for none. A \r at the very end may still get
// its \n, so it does not count.
std::size_t end_of_lines(std::string_view bytes) {
  if (!bytes.empty() && bytes.back() == '\r') bytes.remove_suffix(1);
  const std::size_t last = bytes.find_last_of("\r\n");
  return last == std::string_view::npos ? 0 : last + 1;
}

// The first line of `lines`, its end included.
std::string_view first_line(std::string_view lines) {
  const std::size_t end = lines.find_first_of("\r\n");
  if (end == std::string_view::npos) return lines;
  const bool pair = lines[end] == '\r' && end + 1 < lines.size() && lines[end + 1] == '\n';
  return lines.substr(0, end + (pair ? 2 : 1));
}

}  // namespace

Lines::Lines(int ranks, bool label, bool one_target, int first, int all)
    : label_(label),
      one_target_(one_target),
      through_(ranks == 1 && !label),
      first_(first),
      width_(static_cast<int>(std::to_string(std::max({ranks, all, 1}) - 1).size())),
      states_(2 * static_cast<std::size_t>(ranks)) {}

void Lines::feed(int rank, Stream stream, std::string_view bytes, long now, Pieces& to) {
  if (bytes.empty()) return;
  const int at = index(rank, stream);
  State& state = state_of(at);
  if (now - state.last >= kQuiet) state.burst = 0;
  state.last = last_any_ = now;
  state.burst += bytes.size();
  if (through_) {
    emit(at, bytes, bytes.back() == '\n', to);
    return;
  }
  take(at, bytes, to);
  if (state.partial.size() > kLongestLine) show(at, to);
  if (state.partial.empty()) {
    waiting_.erase(at);
  } else {
    waiting_.insert(at);
  }
}

void Lines::take(int at, std::string_view bytes, Pieces& to) {
  State& state = state_of(at);
  if (state.after_cr) {  // the \r has left already, alone
    state.after_cr = false;
    if (bytes.front() == '\n') {
      const Stream stream = stream_of(at);
      end_open_line(stream, to);
      add(to, stream, "\n");
      bytes.remove_prefix(1);
    }
  }
  if (!state.partial.empty() && state.partial.back() == '\r' && !bytes.empty()) {
    if (bytes.front() == '\n') {
      state.partial += '\n';
      bytes.remove_prefix(1);
    }
    emit(at, state.partial, true, to);
    state.partial.clear();
  }
  const std::size_t end = end_of_lines(bytes);
  if (end > 0) {
    if (!state.partial.empty()) emit(at, state.partial, false, to);
    state.partial.clear();
    emit(at, bytes.substr(0, end), true, to);
    bytes.remove_prefix(end);
  }
  state.partial += bytes;
}

// `complete`: `bytes` are whole lines, or the rest of one and then whole lines.
void Lines::emit(int at, std::string_view bytes, bool complete, Pieces& to) {
  State& state = state_of(at);
  const Stream stream = stream_of(at);
  int& open = open_line(stream);
  if (open != -1 && open != at && (label_ || open / 2 != at / 2)) {
    end_open_line(stream, to);
  }
  if (state.shown && state.ended_for_it && bytes.front() == '\n') {
    bytes.remove_prefix(1);
    state.shown = false;
  }
  state.ended_for_it = false;
  if (bytes.empty()) return;
  if (label_) {
    label_lines(at, bytes, to);
  } else {
    add(to, stream, bytes);
  }
  state.bar = complete ? bytes.back() == '\r' : state.bar;
  state.shown = !complete;
  open = complete ? -1 : at;
}

void Lines::label_lines(int at, std::string_view lines, Pieces& to) {
  const Stream stream = stream_of(at);
  const State& state = state_of(at);
  const std::string prefix = fmt::format("[{:>{}}] ", first_ + at / 2, width_);
  bool goes_on = state.shown && open_line(stream) == at;
  while (!lines.empty()) {
    const std::string_view line = first_line(lines);
    if (!goes_on) add(to, stream, prefix);
    add(to, stream, line);
    goes_on = false;
    lines.remove_prefix(line.size());
  }
}

// Lets the beginning of a line go.
void Lines::show(int at, Pieces& to) {
  State& state = state_of(at);
  if (state.partial.empty()) return;
  const bool ends_with_cr = state.partial.back() == '\r';
  emit(at, state.partial, ends_with_cr, to);
  state.after_cr = ends_with_cr;
  state.partial.clear();
  state.burst = 0;
}

long Lines::due(int at) const {
  const State& state = state_of(at);
  const bool watched = at / 2 == 0 || state.bar;
  const bool cut = state.burst % kBuffer == 0;
  const long patient = state.last + kPatience;
  return watched && !cut ? std::min(last_any_ + kQuiet, patient) : patient;
}

void Lines::flush(long now, Pieces& to) {
  for (auto next = waiting_.begin(); next != waiting_.end();) {
    const int at = *next++;
    if (due(at) > now) continue;
    show(at, to);
    waiting_.erase(at);
  }
}

long Lines::next_flush() const {
  long first = -1;
  for (const int at : waiting_) first = first == -1 ? due(at) : std::min(first, due(at));
  return first;
}

void Lines::close(int rank, Stream stream, Pieces& to) {
  const int at = index(rank, stream);
  show(at, to);
  waiting_.erase(at);
}

void Lines::end_open_line(Stream stream, Pieces& to) {
  int& open = open_line(stream);
  if (open == -1) return;
  add(to, stream_of(open), "\n");
  state_of(open).ended_for_it = true;
  open = -1;
}

}  // namespace hpclaunch::sys::local
