// Lists of hosts and of counts as Slurm and Flux write them.
//
// Source: slurm src/common/hostlist.c, runs of `scontrol show hostnames` 22.05 and 24.11, and RFC 29 of
// Flux. tests/model/hostlist_test.py compares this with scontrol, apart from these differences:
// - Text behind the last bracket, "n[1-2]-ib0": Slurm takes it since 23.11, we always do.
// - Slurm takes at most 65,536 hosts in a range and numbers of its own width; we take 1,000,000 hosts in
//   all and 18 digits.
// - Refused here, read as something odd there: a bracket that is not closed or not open ("n[1-2" is one
//   host "n]"), a range without an end ("n[1-]" is n1), blanks in brackets ("n[1, 2]" is n1 and n02),
//   other characters in the first number of a range ("n[1a-2]" is n01 and n02).
#include <fmt/format.h>

#include <algorithm>
#include <iterator>

#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

using Number = std::size_t;

constexpr Number kMaxHosts = kMostHosts;
constexpr std::size_t kMaxDigits = 18;

struct Range {
  Number first = 0;
  Number last = 0;
  std::size_t width = 0;  ///< shorter numbers get zeros in front
};

/// One bracket and the text in front of it.
struct Group {
  std::string_view text;
  std::vector<Range> ranges;
  Number size = 0;  ///< numbers in all ranges
};

struct Token {
  std::vector<Group> groups;
  std::string_view end;   ///< text behind the last bracket; all of it where there is none
  Number size = 1;        ///< hosts
  std::size_t bytes = 0;  ///< of its longest name
};

constexpr std::size_t kMostOfPiece = 60;

Error bad(std::string_view piece, std::string_view token, std::string_view what) {
  return Error{ErrorKind::invalid,
               fmt::format("list of hosts: \"{}\" in \"{}\" {}", shown(piece, kMostOfPiece),
                           shown(token, kMostOfPiece), what),
               "write the hosts to a file, one per line, and pass it with --hostfile"};
}

Error too_many(std::string_view token) {
  return Error{ErrorKind::invalid,
               fmt::format("list of hosts: \"{}\" makes more than {} hosts",
                           shown(token, kMostOfPiece), kMaxHosts),
               "write the hosts to a file and pass it with --hostfile"};
}

bool is_blank(char c) { return c == ' ' || c == '\t' || c == '\n' || c == '\r'; }

bool read_number(std::string_view text, Number& number) {
  const auto read = parse_natural(text, 999'999'999'999'999'999);  // 18 digits
  number = static_cast<Number>(read.value_or(0));
  return read && text.size() <= kMaxDigits;
}

Result<Range> read_range(std::string_view text, std::string_view token) {
  const std::size_t dash = text.find('-');
  const std::string_view low = text.substr(0, dash);
  Range range;
  if (text.empty()) return bad("[]", token, "has an empty entry");
  if (!read_number(low, range.first)) return bad(text, token, "is not a number or range");
  range.last = range.first;
  range.width = low.size();
  if (dash == std::string_view::npos) return range;
  if (!read_number(text.substr(dash + 1), range.last))
    return bad(text, token, "is not a number or range");
  if (range.last < range.first) return bad(text, token, "counts down");
  return range;
}

Status read_group(std::string_view inside, std::string_view token, Group& group) {
  for (std::size_t at = 0; at <= inside.size();) {
    const std::size_t comma = std::min(inside.find(',', at), inside.size());
    const Result<Range> range = read_range(inside.substr(at, comma - at), token);
    if (!range) return range.error();
    group.ranges.push_back(*range);
    group.size += range->last - range->first + 1;  // far from overflow: 18 digits, few ranges
    if (group.size > kMaxHosts) return too_many(token);
    at = comma + 1;
  }
  return Done{};
}

Result<Token> read_token(std::string_view text) {
  Token token;
  std::size_t at = 0;
  for (;;) {
    const std::size_t open = text.find_first_of("[]", at);
    if (open == std::string_view::npos) break;
    if (text[open] == ']') return bad(text.substr(at), text, "has a \"]\" without \"[\"");
    const std::size_t close = text.find_first_of("[]", open + 1);
    if (close == std::string_view::npos || text[close] == '[')
      return bad(text.substr(open), text, "has a \"[\" without \"]\"");
    Group group;
    group.text = text.substr(at, open - at);
    const Status read = read_group(text.substr(open + 1, close - open - 1), text, group);
    if (!read) return read.error();
    token.size *= group.size;  // both at most a million
    if (token.size > kMaxHosts) return too_many(text);
    std::size_t digits = 0;
    for (const Range& range : group.ranges)
      digits = std::max({digits, range.width, std::to_string(range.last).size()});
    token.bytes += group.text.size() + digits;
    token.groups.push_back(std::move(group));
    at = close + 1;
  }
  token.end = text.substr(at);
  token.bytes += token.end.size();
  if (token.bytes > kMostOfHostName + (token.end.ends_with('.') ? 1 : 0))
    return Error{ErrorKind::invalid,
                 fmt::format("list of hosts: \"{}\" has a name of {} bytes (at most {})",
                             shown(text, kMostOfPiece), token.bytes, kMostOfHostName),
                 "write the hosts to a file, one per line, and pass it with --hostfile"};
  return token;
}

/// Counts through the numbers of one bracket.
struct Wheel {
  const Group* group = nullptr;
  std::size_t range = 0;
  Number number = 0;

  explicit Wheel(const Group& counted) : group(&counted), number(counted.ranges.front().first) {}

  /// False: it is at its start again.
  bool advance() {
    if (number < group->ranges[range].last) return ++number, true;
    range = (range + 1) % group->ranges.size();
    number = group->ranges[range].first;
    return range != 0;
  }
};

// Slurm's order: the last bracket is the fastest, as one expects, then the first one, then the
// second. Ranks are distributed in this order.
void expand(const Token& token, HostNames& hosts) {
  if (token.groups.empty()) return hosts.push_back(token.end);
  const Group& fastest = token.groups.back();
  std::vector<Wheel> wheels(token.groups.begin(), token.groups.end() - 1);
  for (Number left = token.size / fastest.size; left > 0; --left) {
    std::string head;
    for (const Wheel& wheel : wheels)
      fmt::format_to(std::back_inserter(head), "{}{:0{}}", wheel.group->text, wheel.number,
                     wheel.group->ranges[wheel.range].width);
    head += fastest.text;
    for (const Range& range : fastest.ranges)
      hosts.push_range(head, range.first, range.last, range.width, token.end);
    for (Wheel& wheel : wheels)
      if (wheel.advance()) break;
  }
}

bool is_digit(char c) { return c >= '0' && c <= '9'; }

/// Bytes before and behind the number in which two names differ first.
struct Ends {
  std::size_t head = 0, tail = 0;
};
Ends ends_of(std::string_view a, std::string_view b) {
  Ends ends{static_cast<std::size_t>(std::ranges::mismatch(a, b).in1 - a.begin()), 0};
  while (ends.head > 0 && is_digit(a[ends.head - 1])) --ends.head;
  const std::size_t most = std::min(a.size(), b.size()) - ends.head;
  while (ends.tail < most && a[a.size() - ends.tail - 1] == b[b.size() - ends.tail - 1])
    ++ends.tail;
  while (ends.tail > 0 && is_digit(a[a.size() - ends.tail])) --ends.tail;
  return ends;
}

/// The digits between the ends, where `host` has these ends; "" where it does not.
std::string_view number_in(std::string_view host, std::string_view like, Ends ends) {
  if (host.size() <= ends.head + ends.tail ||
      host.substr(0, ends.head) != like.substr(0, ends.head) ||
      host.substr(host.size() - ends.tail) != like.substr(like.size() - ends.tail))
    return "";
  const std::string_view text = host.substr(ends.head, host.size() - ends.head - ends.tail);
  return text.size() <= kMaxDigits && std::ranges::all_of(text, is_digit) ? text : "";
}

/// Whether `text` is the number after `last` with at least `width` digits.
bool follows(std::string_view text, Number last, std::size_t width) {
  Number number = 0;
  const bool padded = text.size() == width || (text.size() > width && text.front() != '0');
  return padded && read_number(text, number) && number == last + 1;
}

}  // namespace

// ---- names in runs ----------------------------------------------------------------------------------

std::size_t HostNames::run_of(std::size_t at) const {
  return static_cast<std::size_t>(std::ranges::upper_bound(runs_, at, {}, &Run::begin) -
                                  runs_.begin()) -
         1;
}

std::string HostNames::operator[](std::size_t at) const {
  const std::size_t run = run_of(at);
  return name(run, at - runs_[run].begin);
}

std::string HostNames::name(std::size_t run, std::size_t place) const {
  const Run& one = runs_[run];
  std::string text(first_of(one));
  if (place == 0) return text;
  const std::string number = std::to_string(one.number + place);
  const std::size_t width = std::max(number.size(), one.size - one.head - one.tail);
  return text.replace(one.head, one.size - one.head - one.tail,
                      std::string(width - number.size(), '0') + number);
}

bool HostNames::extend(Run& last, std::string_view name) const {
  const std::string_view first = first_of(last);
  const std::size_t names = size_ - last.begin;
  const Ends ends = names > 1 ? Ends{last.head, last.tail} : ends_of(first, name);
  const std::string_view low = number_in(first, first, ends);
  Number number = last.number;
  if (low.empty() || (names == 1 && !read_number(low, number)) ||
      !follows(number_in(name, first, ends), number + names - 1, low.size()))
    return false;
  last.head = ends.head;
  last.tail = ends.tail;
  last.number = number;
  return true;
}

void HostNames::push_back(std::string_view name) {
  if (runs_.empty() || !extend(runs_.back(), name)) {
    runs_.push_back({size_, text_.size(), name.size(), 0, 0, 0});
    text_ += name;
  }
  ++size_;
}

void HostNames::push_range(std::string_view head, std::uint64_t first, std::uint64_t last,
                           std::size_t width, std::string_view tail) {
  for (; first <= last; ++first) {
    push_back(fmt::format("{}{:0{}}{}", head, first, width, tail));
    const Run& run = runs_.back();
    // Not where digits stand beside the number: then a longer one counts.
    const bool counts = size_ - run.begin > 1 && run.head == head.size() && run.tail == tail.size();
    if (!counts) continue;
    size_ += last - first;
    return;
  }
}

HostNames HostNames::first(std::size_t count) const {
  HostNames some = *this;
  some.size_ = std::min(count, size_);
  std::erase_if(some.runs_, [&](const Run& run) { return run.begin >= some.size_; });
  return some;
}

std::vector<std::string> HostNames::samples() const {
  std::vector<std::string> names;
  for (const Run& run : runs_) names.emplace_back(first_of(run));
  return names;
}

// One run counts up. Of several, numbers of one width are in the order of their text.
bool HostNames::ascending() const {
  if (runs_.size() < 2) return true;
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const std::string last = name(r, count(r) - 1);
    if (last.size() > runs_[r].size || (r + 1 < runs_.size() && last >= first_of(runs_[r + 1])))
      return false;
  }
  return true;
}

bool HostNames::contains(std::string_view host) const {
  for (std::size_t r = 0; r < runs_.size(); ++r) {
    const Run& run = runs_[r];
    if (same_host(first_of(run), host)) return true;
    if (count(r) == 1 || host.size() <= run.head) continue;
    const std::string_view text = host.substr(run.head);
    Number number = 0;
    const bool counts = read_number(text.substr(0, text.find_first_not_of("0123456789")), number) &&
                        number > run.number && number - run.number < count(r);
    if (counts && same_host(name(r, number - run.number), host)) return true;
  }
  return false;
}

bool operator==(const HostNames& a, const HostNames& b) {
  return a.size() == b.size() && std::equal(a.begin(), a.end(), b.begin());
}

Result<HostNames> expand_hostlist(std::string_view text) {
  HostNames hosts;
  for (std::size_t at = 0; at < text.size();) {
    if (is_blank(text[at]) || text[at] == ',') {
      ++at;
      continue;
    }
    const std::size_t start = at;
    for (int depth = 0; at < text.size() && !is_blank(text[at]); ++at) {
      if (text[at] == '[') ++depth;
      if (text[at] == ']') --depth;
      if (text[at] == ',' && depth <= 0) break;
    }
    const Result<Token> token = read_token(text.substr(start, at - start));
    if (!token) return token.error();
    if (hosts.size() + token->size > kMaxHosts) return too_many(text);
    expand(*token, hosts);
  }
  if (hosts.empty())
    return Error{ErrorKind::invalid, "list of hosts: it is empty",
                 "name the hosts in a file with --hostfile"};
  return hosts;
}

std::string host_ranges(const HostNames& hosts, std::size_t most) {
  std::string list;
  for (std::size_t at = 0; at < hosts.size() && list.size() <= most;) {
    const std::string first = hosts[at];
    const Ends ends = at + 1 < hosts.size() ? ends_of(first, hosts[at + 1]) : Ends{};
    std::string ranges;
    std::size_t end = at;
    while (end < hosts.size()) {
      const std::string name = hosts[end];
      const std::string_view low = number_in(name, first, ends);
      if (low.empty()) break;
      Number last = 0;
      read_number(low, last);
      const std::size_t begin = end;
      const std::size_t run = hosts.run_of(end);
      const bool same = hosts.runs_[run].head == ends.head && hosts.runs_[run].tail == ends.tail;
      end = same ? hosts.runs_[run].begin + hosts.count(run) : end + 1;
      while (end < hosts.size() &&
             follows(number_in(hosts[end], first, ends), last + end - begin - 1, low.size()))
        ++end;
      last += end - begin - 1;
      ranges += fmt::format("{}{}", ranges.empty() ? "" : ",", low);
      if (end - begin > 1) ranges += fmt::format("-{:0{}}", last, low.size());
    }
    const bool alone = end < at + 2;
    if (!list.empty()) list += ',';
    list += alone ? first
                  : fmt::format("{}[{}]{}", first.substr(0, ends.head), ranges,
                                first.substr(first.size() - ends.tail));
    at = alone ? at + 1 : end;
  }
  const std::string note =
      fmt::format("... ({})", counted(static_cast<long>(hosts.size()), "node"));
  if (list.size() <= most) return list;
  const std::size_t room = most - std::min(most, note.size());
  const std::size_t comma = list.substr(0, room).rfind(',');
  return list.substr(0, comma == std::string::npos ? 0 : comma + 1) + note;
}

Result<std::vector<int>> expand_tasks_per_node(std::string_view text) {
  const auto wrong = [&](std::string_view piece) {
    return Error{ErrorKind::invalid,
                 fmt::format("counts per node: \"{}\" in \"{}\" is not understood",
                             shown(piece, kMostOfPiece), shown(text, kMostOfPiece)),
                 "counts look like 4(x2),3"};
  };
  constexpr long kMost = static_cast<long>(kMaxHosts);
  std::vector<int> counts;
  for (const std::string_view piece : split(text, ',')) {
    const std::size_t open = piece.find('(');
    const std::optional<long> count = parse_natural(piece.substr(0, open), kMost);
    std::optional<long> nodes = 1;
    if (open != std::string_view::npos) {
      std::string_view rest = piece.substr(open);
      if (!rest.starts_with("(x") || !rest.ends_with(')')) return wrong(piece);
      nodes = parse_natural(rest.substr(2, rest.size() - 3), kMost);
    }
    if (!count || *count == 0 || !nodes || *nodes == 0) return wrong(piece);
    if (static_cast<long>(counts.size()) + *nodes > kMost) return wrong(piece);
    counts.insert(counts.end(), static_cast<std::size_t>(*nodes), static_cast<int>(*count));
  }
  return counts;
}

}  // namespace hpclaunch
