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
    token.groups.push_back(std::move(group));
    at = close + 1;
  }
  token.end = text.substr(at);
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
  std::vector<Wheel> wheels(token.groups.begin(), token.groups.end());
  std::string name;
  for (Number left = token.size; left > 0; --left) {
    name.clear();
    for (const Wheel& wheel : wheels) {
      fmt::format_to(std::back_inserter(name), "{}{:0{}}", wheel.group->text, wheel.number,
                     wheel.group->ranges[wheel.range].width);
    }
    name += token.end;
    hosts.push_back(name);
    if (wheels.empty() || wheels.back().advance()) continue;
    for (std::size_t i = 0; i + 1 < wheels.size() && !wheels[i].advance(); ++i) {
    }
  }
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
