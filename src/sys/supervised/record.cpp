#include "sys/supervised/record.h"

#include <algorithm>
#include <cmath>

#include "hpclaunch/text.h"

namespace hpclaunch::sys::supervised {
namespace {

constexpr long kMostPids = 1L << 22;  // PID_MAX_LIMIT
constexpr int kMostSignals = 64;
constexpr int kMostErrors = 4095;  // of the kernel
constexpr std::size_t kLongestHost = 255;
constexpr std::size_t kLongestTag = 300;
constexpr std::string_view kTail = "tail=";

// Reads "key=VALUE" fields in their order; one that is missing or out of range spoils all.
struct Fields {
  std::string_view text;  // the rest
  bool good = true;

  bool next_is(std::string_view key) const {
    return text.starts_with(key) && text.substr(key.size()).starts_with('=');
  }
  std::string_view value(std::string_view key) {
    good = good && next_is(key);
    if (!good) return {};
    text.remove_prefix(key.size() + 1);
    const std::string_view found = text.substr(0, text.find(' '));
    text.remove_prefix(std::min(found.size() + 1, text.size()));
    return found;
  }
  int number(std::string_view key, long low, long high) {
    const std::optional<long> found = parse_natural(value(key), high);
    good = good && found && *found >= low;
    return static_cast<int>(found.value_or(0));
  }
  // 1732212345.123456: seconds, a point, one to nine digits.
  double time(std::string_view key) {
    constexpr long kLatest = 100'000'000'000;
    const std::string_view found = value(key);
    const std::size_t point = std::min(found.find('.'), found.size());
    const std::string_view digits = found.substr(std::min(point + 1, found.size()));
    const std::optional<long> whole = parse_natural(found.substr(0, point), kLatest);
    const std::optional<long> part = parse_natural(digits, 999'999'999);
    good = good && whole && part && digits.size() <= 9;
    return static_cast<double>(whole.value_or(0)) +
           static_cast<double>(part.value_or(0)) / std::pow(10, digits.size());
  }
};

void read_end(Fields& fields, Record& record) {
  record.seconds = fields.time("at");
  if (fields.next_is("exit")) {
    record.exit_status = fields.number("exit", 0, 255);
  } else {
    record.signal = fields.number("signal", 1, kMostSignals);
    record.core = fields.next_is("core") && fields.number("core", 1, 1) == 1;
  }
  if (fields.next_is("sent")) record.sent = fields.number("sent", 1, kMostSignals);
  fields.good = fields.good && fields.text.empty();
}

void read_log_error(Fields& fields, Record& record) {
  record.log_error = fields.number("log", 1, kMostErrors);
  fields.good = fields.good && fields.text.empty();
}

}  // namespace

std::optional<Record> parse_record(std::string_view text, const Bounds& bounds) {
  if (!text.starts_with(bounds.marker)) return std::nullopt;
  Fields fields{text.substr(bounds.marker.size())};
  Record record;
  record.rank = fields.number("rank", 0, bounds.ranks - 1);
  record.node = fields.number("node", 0, bounds.nodes - 1);
  record.host = fields.value("host");
  record.pid = fields.number("pid", 1, kMostPids);
  if (record.host.empty() || record.host.size() > kLongestHost || !consists_of(record.host, ".-_"))
    return std::nullopt;
  record.is_begin = fields.text == "begun";
  record.is_tail = fields.text.starts_with(kTail);
  if (record.is_tail)
    record.tail = fields.text.substr(kTail.size());
  else if (fields.next_is("log"))
    read_log_error(fields, record);
  else if (!record.is_begin)
    read_end(fields, record);
  return fields.good ? std::optional(record) : std::nullopt;
}

namespace {

// May more bytes make a tag of it? "[1,", "n1 ", "[1,3]<std".
bool may_become_tag(std::string_view text) {
  constexpr std::string_view kBehind = "]<stderr>: ";
  if (text.size() > kLongestTag) return false;
  if (is_tag(text)) return true;
  const bool bracket = text.starts_with('[');
  const std::size_t close = bracket ? text.find(']') : std::string_view::npos;
  if (close != std::string_view::npos && !kBehind.starts_with(text.substr(close))) return false;
  return consists_of(text.substr(0, close), bracket ? ".-_ [,@:" : ".-_ ");
}

}  // namespace

bool is_tag(std::string_view text) {
  if (!text.empty() && text.back() == ' ') text.remove_suffix(1);
  if (text.size() < 2 || text.size() > kLongestTag) return false;
  if (text.front() == '[') {  // [3] [1,3] [3@n1] [n1:4711] and what stands behind it
    const std::size_t close = text.find(']');
    if (close == text.npos || close == 1 || !consists_of(text.substr(1, close - 1), ".-_,@: "))
      return false;
    const std::string_view rest = text.substr(close + 1);
    return rest.empty() || rest == ":" || rest == "<stderr>:" || rest == "<stderr>";
  }
  if (text.back() != ':') return false;  // "3:" "  3:" "n1 3:"
  text.remove_suffix(1);
  return consists_of(text, ".-_ ") && text.back() >= '0' && text.back() <= '9';
}

void Splitter::feed(std::string_view bytes, long now, Sink& to) {
  if (bytes.empty()) return;
  if (held_.empty()) since_ = now;
  for (std::size_t end = bytes.find('\n'); end != std::string_view::npos; end = bytes.find('\n')) {
    held_ += bytes.substr(0, end);
    bytes.remove_prefix(end + 1);
    take_line(held_, to);
    held_.clear();
    shown_ = false;
    since_ = now;
  }
  held_ += bytes;
  show(std::string_view(held_).substr(0, releasable()), to);
  held_.erase(0, releasable());
  if (held_.size() > kLongest) release(to);
}

// How much of the line so far can be no part of a record or its tag.
std::size_t Splitter::releasable() const {
  const std::string_view line = held_;
  const std::size_t marker = line.find(bounds_.marker);
  if (marker != std::string_view::npos) return is_tag(line.substr(0, marker)) ? 0 : marker;
  std::size_t before = line.size();  // a marker may start at the end
  for (std::size_t size = std::min(bounds_.marker.size() - 1, line.size()); size > 0; --size) {
    if (std::string_view(bounds_.marker).starts_with(line.substr(line.size() - size))) {
      before = line.size() - size;
      break;
    }
  }
  return !shown_ && may_become_tag(line.substr(0, before)) ? 0 : before;
}

// A whole line, or the rest of one. The first place that holds a record counts, since the last field of
// a record may hold anything.
void Splitter::take_line(std::string_view line, Sink& to) {
  for (std::size_t at = line.find(bounds_.marker); at != std::string_view::npos;
       at = line.find(bounds_.marker, at + 1)) {
    std::string_view text = line.substr(at);
    if (text.back() == '\r') text.remove_suffix(1);
    std::optional<Record> record = parse_record(text, bounds_);
    if (!record) continue;
    const std::string_view before = line.substr(0, at);
    if (!before.empty() && !(is_tag(before) && !shown_)) show(before, to);
    if (shown_) {  // a progress bar without its newline stands in front of it
      to.text += '\n';
      open_ = false;
    }
    to.records.push_back(std::move(*record));
    return;
  }
  to.text += line;
  to.text += '\n';
  open_ = false;
}

void Splitter::show(std::string_view text, Sink& to) {
  if (text.empty()) return;
  to.text += text;
  shown_ = open_ = true;
}

void Splitter::release(Sink& to) {
  show(held_, to);
  held_.clear();
}

long Splitter::next_flush() const {
  if (held_.empty()) return -1;
  const bool marked = held_.find(bounds_.marker) != std::string::npos;
  return since_ + (marked ? kPatience : kQuiet);
}

void Splitter::flush(long now, Sink& to) {
  if (held_.empty() || now < next_flush()) return;
  release(to);
}

void Splitter::finish(Sink& to) {
  if (held_.empty()) return;
  Sink last;
  take_line(held_, last);
  if (last.records.empty()) return release(to);
  to.text += last.text;
  to.records.push_back(std::move(last.records.front()));
  held_.clear();
  shown_ = false;
}

}  // namespace hpclaunch::sys::supervised
