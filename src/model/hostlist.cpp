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

constexpr Number kMaxHosts = 1'000'000;
constexpr std::size_t kMaxDigits = 18;

/// One bracket and the text in front of it.
struct Group {
  std::string_view text;
  std::vector<std::string> numbers;  ///< with zeros in front where its range has them
};

struct Token {
  std::vector<Group> groups;
  std::string_view end;  ///< text behind the last bracket; all of it where there is none
  Number size = 1;       ///< hosts
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

/// Adds the numbers of "3" or "01-10".
Status add_range(std::string_view text, std::string_view token, std::vector<std::string>& numbers) {
  const std::size_t dash = text.find('-');
  const std::string_view low = text.substr(0, dash);
  const std::string_view high = dash == std::string_view::npos ? low : text.substr(dash + 1);
  Number first = 0;
  Number last = 0;
  if (text.empty()) return bad("[]", token, "has an empty entry");
  if (!read_number(low, first) || !read_number(high, last))
    return bad(text, token, "is not a number or range");
  if (last < first) return bad(text, token, "counts down");
  if (last - first >= kMaxHosts - numbers.size()) return too_many(token);
  for (Number number = first; number <= last; ++number)
    numbers.push_back(fmt::format("{:0{}}", number, low.size()));
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
    Group group{text.substr(at, open - at), {}};
    for (const std::string_view range : split(text.substr(open + 1, close - open - 1), ','))
      if (Status added = add_range(range, text, group.numbers); !added) return added.error();
    token.size *= group.numbers.size();  // both at most a million
    if (token.size > kMaxHosts) return too_many(text);
    token.groups.push_back(std::move(group));
    at = close + 1;
  }
  token.end = text.substr(at);
  return token;
}

// Slurm's order: the last bracket is the fastest, as one expects, then the first one, then the
// second. Ranks are distributed in this order.
void expand(const Token& token, HostNames& hosts) {
  const std::vector<Group>& groups = token.groups;
  std::vector<Number> places(groups.size());
  std::string name;
  for (Number host = 0; host < token.size; ++host) {
    name.clear();
    for (std::size_t i = 0; i < groups.size(); ++i)
      name.append(groups[i].text).append(groups[i].numbers[places[i]]);
    hosts.push_back(name.append(token.end));
    for (std::size_t i = 0; i < groups.size(); ++i) {
      const std::size_t next = (groups.size() - 1 + i) % groups.size();
      places[next] = (places[next] + 1) % groups[next].numbers.size();
      if (places[next] != 0) break;
    }
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

HostNames HostNames::part(std::size_t first, std::size_t count) const {
  HostNames some;
  for (std::size_t at = first; at < first + count; ++at) some.push_back((*this)[at]);
  return some;
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
    const std::string_view first = hosts[at];
    const Ends ends = at + 1 < hosts.size() ? ends_of(first, hosts[at + 1]) : Ends{};
    std::string ranges;
    std::size_t end = at;
    while (end < hosts.size()) {
      const std::string_view low = number_in(hosts[end], first, ends);
      if (low.empty()) break;
      Number last = 0;
      read_number(low, last);
      const std::size_t begin = end;
      while (++end < hosts.size() && follows(number_in(hosts[end], first, ends), last, low.size()))
        ++last;
      ranges += fmt::format("{}{}", ranges.empty() ? "" : ",", low);
      if (end - begin > 1) ranges += fmt::format("-{:0{}}", last, low.size());
    }
    const bool alone = end < at + 2;
    if (!list.empty()) list += ',';
    list += alone ? std::string(first)
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
