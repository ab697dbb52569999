#include "hpclaunch/traceback.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>
#include <vector>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

constexpr std::size_t kMostMessageLines = 8;
constexpr std::string_view kHead = "Traceback (most recent call last)";
constexpr std::string_view kFatal = "Fatal Python error: ";
constexpr std::string_view kBar = "\u2502";     // at both ends of a line in a box of rich
constexpr std::string_view kCorner = "\u2570";  // begins the last line of such a box

bool has(std::string_view text, std::string_view part) { return text.find(part) != text.npos; }

// As on a terminal: the last text of a line that was written again, without sequences that begin with ESC [.
std::string plain(std::string_view line) {
  while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
  line.remove_prefix(line.rfind('\r') + 1);  // npos + 1 is 0
  std::string text;
  for (std::size_t i = 0; i < line.size(); ++i) {
    if (line[i] != '\x1b' || i + 1 == line.size() || line[i + 1] != '[') {
      text += line[i];
      continue;
    }
    for (i += 2; i < line.size() && (line[i] < '@' || line[i] > '~');) ++i;
  }
  return text;
}

// "[rank0]: " of PyTorch, "[default0]:" of torchrun.
std::string_view without_label(std::string_view line) {
  const std::size_t end = line.find("]:");
  if (line.empty() || line.front() != '[' || end == line.npos) return line;
  const std::string_view word = line.substr(1, end - 1);
  if (!consists_of(word, "_") || word.empty() || word.back() < '0' || word.back() > '9')
    return line;
  line.remove_prefix(end + 2);
  if (line.starts_with(' ')) line.remove_prefix(1);
  return line;
}

// Of a line of an exception group its text; `depth`: of groups, 0 outside.
std::string_view without_margin(std::string_view line, int& depth) {
  const std::size_t bar = line.find_first_not_of(' ');
  depth = 0;
  if (bar == line.npos || bar % 2 != 0 || (line[bar] != '|' && line[bar] != '+')) return line;
  depth = static_cast<int>(bar / 2);
  return line.substr(std::min(line.size(), bar + 2));
}

struct Frame {
  std::string_view file, function;
  int line = 0;
};

// '  File "train.py", line 41, in step', of faulthandler without the comma behind the number, of a SyntaxError without
// the function.
std::optional<Frame> frame_of(std::string_view line) {
  constexpr std::string_view kFile = "File \"", kLine = "\", line ";
  line = trim(line);
  const std::size_t end = line.find(kLine);
  if (!line.starts_with(kFile) || end == line.npos) return std::nullopt;
  Frame frame;
  frame.file = line.substr(kFile.size(), end - kFile.size());
  line.remove_prefix(end + kLine.size());
  const std::string_view number = line.substr(0, line.find_first_not_of("0123456789"));
  frame.line = static_cast<int>(parse_natural(number).value_or(0));
  if (const std::size_t in = line.find("in "); in != line.npos)
    frame.function = line.substr(in + 3);
  return frame;
}

// "/home/u/train.py:41 in step"
std::optional<Frame> rich_frame_of(std::string_view line) {
  const std::size_t in = line.find(" in ");
  const std::size_t colon = line.rfind(':', in);
  if (in == line.npos || colon == line.npos || colon == 0 || line.front() == ' ') return {};
  const auto number = parse_natural(line.substr(colon + 1, in - colon - 1));
  if (!number) return std::nullopt;
  return Frame{line.substr(0, colon), trim(line.substr(in + 4)), static_cast<int>(*number)};
}

// "pkg.Error: text", "KeyboardInterrupt"
bool read_exception(std::string_view line, Raised& raised) {
  const std::size_t end = std::min(line.find(": "), line.size());
  std::string_view type = line.substr(0, end);
  if (type.ends_with(':')) type.remove_suffix(1);
  const auto letter = [](char c) { return c == '_' || (to_lower(c) >= 'a' && to_lower(c) <= 'z'); };
  if (type.empty() || !letter(type.front()) || !consists_of(type, "_.<>")) return false;
  raised.type = type;
  raised.message = trim(line.substr(std::min(line.size(), end + 2)));
  return true;
}

struct Block {
  Raised raised;
  std::size_t begin = 0;
  int depth = 0;        // in groups
  bool linked = false;  // to the one before
  bool quoted = false;  // in the message of the one before
  bool fatal = true;
  bool user = false;  // the frame is
};

class Reader {
 public:
  void take(std::string_view raw) {
    const std::string clear = plain(raw);
    int depth = 0;
    const std::string_view text = without_margin(without_label(clear), depth);
    line(text, depth);
    ++number_;
  }

  Traceback result() {
    std::vector<Traceback> chains;
    bool agent = false;
    std::size_t end = number_;
    for (const Block& block : blocks_) {
      if (has(block.raised.type, "ChildFailedError")) {
        if (!std::exchange(agent, true)) end = block.begin;
        continue;
      }
      if (!block.raised.type.empty()) join(block, chains);
    }
    Traceback best;
    for (Traceback& chain : chains)
      if (chain.fatal || !best.found() || !best.fatal) best = std::move(chain);
    best.end = best.begin < end ? end : number_;
    return best;
  }

 private:
  enum class State { outside, frames, message, dump };

  static void join(const Block& block, std::vector<Traceback>& chains) {
    Traceback* last = chains.empty() ? nullptr : &chains.back();
    if (last != nullptr && block.quoted) {
      last->raised = block.raised;
    } else if (last != nullptr && block.depth > 1) {
      if (!last->cause.type.empty()) return;
      last->cause = block.raised;
      if (!block.raised.file.empty()) copy_place(block.raised, last->raised);
    } else if (last != nullptr && block.linked) {
      if (block.raised.type == last->raised.type && block.raised.message == last->raised.message)
        return;  // the same, of another process
      if (last->cause.type.empty()) last->cause = last->raised;
      last->raised = block.raised;
    } else {
      chains.push_back({block.raised, {}, block.fatal, block.begin, 0});
    }
  }

  static void copy_place(const Raised& from, Raised& to) {
    to.file = from.file;
    to.line = from.line;
    to.function = from.function;
  }

  void line(std::string_view text, int depth) {
    if (begins(text, depth)) return;
    if (state_ == State::frames) return in_frames(text);
    if (state_ == State::message) return in_message(text);
    if (state_ == State::dump) return in_dump(text);
    if (has(text, "above exception")) linked_ = true;
    const bool others =
        text.starts_with("Exception in thread") || has(text, "Exception ignored in");
    if (others || !trim(text).empty()) fatal_ = !others;
  }

  bool begins(std::string_view text, int depth) {
    const bool dump = text.starts_with(kFatal);
    if (!dump && !has(text, kHead)) {
      // The next one of a group may have no frames.
      if (depth < 2 || !trim(text).starts_with("----")) return false;
      start(depth, false);
      return true;
    }
    const bool again = !blocks_.empty() && blocks_.back().raised.type.empty() &&
                       blocks_.back().raised.file.empty() && depth > 1;
    if (!again) start(depth, has(text, "Original Traceback"));
    rich_ = !has(text, "last):");
    if (!dump) return true;
    blocks_.back().raised.type = trim(text.substr(kFatal.size()));
    state_ = State::dump;
    current_ = false;
    return true;
  }

  void start(int depth, bool quoted) {
    blocks_.push_back(
        {{}, number_, depth, std::exchange(linked_, false), quoted, std::exchange(fatal_, true)});
    state_ = State::frames;
  }

  void in_frames(std::string_view text) {
    if (rich_ && text.starts_with(kBar)) {
      text.remove_prefix(kBar.size());
      if (text.starts_with(' ')) text.remove_prefix(1);
      if (const std::size_t bar = text.rfind(kBar); bar != text.npos) text = text.substr(0, bar);
      if (const auto frame = rich_frame_of(text)) add(*frame);
      return;
    }
    if (text.starts_with(kCorner) || text.empty() || text.front() == ' ') {
      if (const auto frame = frame_of(text)) add(*frame);
      return;
    }
    if (read_exception(text, blocks_.back().raised)) state_ = State::message;
    lines_ = 1;
  }

  // Its end is not marked.
  void in_message(std::string_view text) {
    if (has(text, "above exception")) linked_ = true;
    if (text.starts_with("Exception in thread") || has(text, "Exception ignored in"))
      fatal_ = false;
    const bool over = trim(text).empty() || text.starts_with("Exception raised from") ||
                      text.starts_with("Exception ") || text.starts_with("+-") ||
                      text.starts_with("\"\"\"") || text.starts_with("frame #") ||
                      ++lines_ > kMostMessageLines;
    if (over)
      state_ = State::outside;
    else
      blocks_.back().raised.message += fmt::format("\n{}", text);
  }

  // The newest frame comes first; of all threads that of the signal counts.
  void in_dump(std::string_view text) {
    if (has(text, "(most recent call first)"))
      current_ = text.starts_with("Current thread") && !has(text, "C stack");
    if (const auto frame = frame_of(text); frame && current_ && !blocks_.back().user)
      if (blocks_.back().raised.file.empty() || !is_library(frame->file)) add(*frame);
  }

  void add(const Frame& frame) {
    Block& block = blocks_.back();
    const bool user = !is_library(frame.file);
    if (block.user && !user) return;
    block.user = user;
    block.raised.file = frame.file;
    block.raised.line = frame.line;
    block.raised.function = frame.function;
  }

  std::vector<Block> blocks_;
  State state_ = State::outside;
  std::size_t number_ = 0, lines_ = 0;
  bool linked_ = false, fatal_ = true, rich_ = false, current_ = false;
};

}  // namespace

std::string Raised::place(std::size_t most) const {
  if (file.empty()) return "";
  const std::string_view shown_file =
      file.size() > most ? std::string_view(file).substr(file.rfind('/') + 1) : file;
  return fmt::format("{}:{}{}{}", shown_file, line, function.empty() ? "" : " in ", function);
}

std::string Raised::text() const {
  const std::string first(split(message, '\n').front());
  return first.empty() ? type : fmt::format("{}: {}", type, first);
}

Traceback read_traceback(std::string_view text) {
  Reader reader;
  for (const std::string_view line : split(text, '\n')) reader.take(line);
  return reader.result();
}

bool is_library(std::string_view file) {
  return file.starts_with("<frozen ") || has(file, "/site-packages/") ||
         has(file, "/dist-packages/") || has(file, "/lib/python") || has(file, "/lib64/python");
}

}  // namespace hpclaunch
