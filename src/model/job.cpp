#include <fmt/format.h>

#include <algorithm>
#include <numeric>

#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

constexpr long kMaxSlots = 4096;
constexpr std::size_t kMostOfLine = 200;

struct HostLine {
  std::string_view name;
  int slots = 0;
};

// string_view::find_first_of calls memchr once per character, which is slow with 100,000 lines.
template <class Wanted>
std::size_t first_of(std::string_view text, Wanted wanted) {
  for (std::size_t i = 0; i < text.size(); ++i)
    if (wanted(text[i])) return i;
  return std::string_view::npos;
}

// Four numbers to 255.
bool is_ipv4(std::string_view text) {
  const std::vector<std::string_view> parts = split(text, '.');
  return parts.size() == 4 && std::ranges::all_of(parts, [](std::string_view part) {
           return part.size() <= 3 && parse_natural(part, 255).has_value();
         });
}

// RFC 4291, 2.2, and RFC 4007, 11, for the zone.
bool is_ipv6(std::string_view text) {
  const std::size_t percent = std::min(text.find('%'), text.size());
  const std::string_view zone = text.substr(percent);
  if (zone.size() == 1 || !consists_of(zone.substr(std::min<std::size_t>(1, zone.size())), "-_."))
    return false;
  int groups = 0;
  const auto read = [&](std::string_view part, bool last) {
    if (part.empty()) return true;
    const std::vector<std::string_view> pieces = split(part, ':');
    for (const std::string_view& piece : pieces) {
      const bool ipv4 = last && &piece == &pieces.back() && is_ipv4(piece);
      const auto other = [](char c) {
        return (c < '0' || c > '9') && (to_lower(c) < 'a' || to_lower(c) > 'f');
      };
      if (!ipv4 && (piece.empty() || piece.size() > 4 || std::ranges::any_of(piece, other)))
        return false;
      groups += ipv4 ? 2 : 1;
    }
    return true;
  };
  text = text.substr(0, percent);
  const std::size_t gap = text.find("::");
  if (gap == std::string_view::npos) return read(text, true) && groups == 8;
  return read(text.substr(0, gap), false) && read(text.substr(gap + 2), true) && groups < 8;
}

bool is_space_or_tab(char c) { return c == ' ' || c == '\t'; }

// "slots=4 max_slots = 8", as Open MPI reads them. Its limit for --oversubscribe does not count: hpclaunch counts the
// ranks. What is not understood, or "".
std::string_view read_counts(std::string_view rest, std::string_view& slots, bool& has_slots) {
  for (rest = trim(rest); !rest.empty();) {
    const std::size_t equals = std::min(rest.find('='), rest.size());
    const std::string_view key = trim(rest.substr(0, equals));
    const std::string_view behind = trim(rest.substr(std::min(equals + 1, rest.size())));
    const std::string_view value = behind.substr(0, first_of(behind, is_space_or_tab));
    const bool limit = key == "max_slots" || key == "max-slots";
    if (equals == rest.size() || (!limit && key != "slots")) return rest;
    if (!limit) slots = value;
    has_slots = has_slots || !limit;
    rest = trim(behind.substr(value.size()));
  }
  return {};
}

Result<HostLine> read_line(std::string_view line, const std::string& file, int number) {
  const SourceRef where{file, number};
  const auto bad = [&](std::string_view what) {
    return Error{ErrorKind::invalid,
                 fmt::format("host file: {} in \"{}\"", what, shown(line, kMostOfLine)),
                 "write one host per line: host, host:4 or host slots=4", where};
  };
  if (line.size() > kMostOfHostLine)
    return bad(fmt::format("a line of {} bytes (at most {})", line.size(), kMostOfHostLine));
  const std::size_t blank = first_of(line, is_space_or_tab);
  std::string_view name = line.substr(0, blank);
  std::string_view slots;
  bool has_slots = false;
  if (blank != std::string_view::npos) {
    const std::string_view strange = read_counts(line.substr(blank), slots, has_slots);
    if (!strange.empty())
      return bad(fmt::format("\"{}\" is not understood", shown(strange, kMostOfLine)));
  } else if (const std::size_t colon = name.find(':');
             colon != std::string_view::npos &&
             name.find(':', colon + 1) == std::string_view::npos) {
    slots = name.substr(colon + 1);  // two colons or more: an IPv6 address, not a count
    name = name.substr(0, colon);
    has_slots = true;
  }
  if (const auto strange = strange_in_host(name)) return bad(*strange);
  HostLine result{name, 0};
  if (has_slots) {
    const std::optional<long> count = parse_natural(slots, kMaxSlots);
    if (!count || *count == 0)
      return bad(
          fmt::format("\"{}\" is not a count from 1 to {}", shown(slots, kMostOfLine), kMaxSlots));
    result.slots = static_cast<int>(*count);
  }
  return result;
}

// One slot where none is written.
void add_slots(int& slots, int more) { slots = std::max(1, slots) + std::max(1, more); }

}  // namespace

bool merge_repeated(HostNames& names, std::vector<int>& slots) {
  if (names.ascending()) return false;  // as batch systems write them
  const std::vector<std::string> all(names.begin(), names.end());
  std::vector<std::size_t> order(all.size());
  std::iota(order.begin(), order.end(), 0U);
  std::ranges::stable_sort(order, {},
                           [&](std::size_t at) -> const std::string& { return all[at]; });
  std::vector<bool> again(all.size());
  for (std::size_t i = 1, first = 0; i < order.size(); ++i) {
    if (all[order[i]] != all[order[first]]) {
      first = i;
      continue;
    }
    again[order[i]] = true;
    if (!slots.empty()) add_slots(slots[order[first]], slots[order[i]]);
  }
  HostNames once;
  std::vector<int> sums;
  for (std::size_t at = 0; at < all.size(); ++at) {
    if (again[at]) continue;
    once.push_back(all[at]);
    if (!slots.empty()) sums.push_back(slots[at]);
  }
  const bool repeated = once.size() < all.size();
  names = std::move(once);
  slots = std::move(sums);
  return repeated;
}

Result<HostFile> parse_host_file(std::string_view text, const std::string& file) {
  HostFile hosts;
  std::string_view last;
  int number = 0;
  const auto too_many = [&](long count, const char* what, long most) {
    return Error{ErrorKind::invalid,
                 fmt::format("host file: {} {} (at most {})", count, what, most),
                 "write each host once, with its slots: host:4", SourceRef{file, 0}};
  };
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = text.substr(at, end - at);
    at = end + 1;
    if (++number > kMostHostLines)
      return too_many(std::ranges::count(text, '\n'), "lines", kMostHostLines);
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const Result<HostLine> read = read_line(line, file, number);
    if (!read) return read.error();
    if (read->name == last) {
      add_slots(hosts.slots.back(), read->slots);
      continue;
    }
    last = read->name;
    hosts.names.push_back(last);
    hosts.slots.push_back(read->slots);
  }
  if (hosts.names.empty())
    return Error{ErrorKind::invalid, "host file: it is empty", "write one host per line",
                 SourceRef{file, 0}};
  merge_repeated(hosts.names, hosts.slots);
  if (hosts.names.size() > kMostHosts)
    return too_many(static_cast<long>(hosts.names.size()), "hosts", static_cast<long>(kMostHosts));
  return hosts;
}

std::optional<std::string> strange_in_host(std::string_view host) {
  constexpr const char* kLong = "a {} of {} bytes (at most {})";
  if (host.empty()) return "no host name";
  if (host.size() > kMostOfHostName + (host.back() == '.' ? 1 : 0))
    return fmt::format(kLong, "name", host.size(), kMostOfHostName);
  if (host.find(':') != host.npos && is_ipv6(host)) return std::nullopt;
  if (host.find_first_of("[],=") != host.npos)
    return "a list or bracket expression, which is not one host";
  if (host.front() == '-' || !consists_of(host, "-_."))
    return "a character that host names do not have";
  if (host.back() == '.') host.remove_suffix(1);
  for (std::size_t at = 0; at <= host.size();) {
    const std::size_t label = std::min(host.find('.', at), host.size()) - at;
    if (label == 0) return "an empty label";
    if (label > kMostOfHostLabel) return fmt::format(kLong, "label", label, kMostOfHostLabel);
    at += label + 1;
  }
  if (host.find('.') != host.npos && is_address(host) && !is_ipv4(host))
    return "numbers that are not an IPv4 address";
  return std::nullopt;
}

bool is_address(std::string_view host) {
  const auto other = [](char c) { return (c < '0' || c > '9') && c != '.'; };
  return first_of(host, other) == std::string_view::npos ||
         host.find(':') != std::string_view::npos;
}

bool is_loopback(std::string_view address) {
  return address == "::1" || address.starts_with("127.") || address.starts_with("::ffff:127.");
}

bool is_link_local(std::string_view address) {
  const std::string text = to_lower(address);  // fe80::/10
  return text.starts_with("169.254.") ||
         (text.starts_with("fe") && text.find_first_of("89ab") == 2 && text.find(':') == 4);
}

namespace {

bool equal(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char p, char q) { return to_lower(p) == to_lower(q); });
}

std::string_view first_label(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

bool is_qualified(std::string_view host) {
  return host.find('.') != host.npos && !is_address(host);
}

std::string short_host(std::string_view host) {
  return to_lower(is_address(host) ? host : first_label(host));
}

bool same_host(std::string_view a, std::string_view b) {
  if (equal(a, b)) return true;
  if (is_address(a) || is_address(b)) return false;
  const std::string_view label_a = first_label(a);
  const std::string_view label_b = first_label(b);
  const bool both_qualified = label_a.size() < a.size() && label_b.size() < b.size();
  return !both_qualified && equal(label_a, label_b);
}

}  // namespace hpclaunch
