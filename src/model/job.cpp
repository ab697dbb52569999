#include <fmt/format.h>

#include <algorithm>
#include <map>

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

// Not in host names or addresses.
bool is_strange(char c) {
  const bool letter = (c >= 'a' && c <= 'z') || (c >= 'A' && c <= 'Z');
  const bool digit = c >= '0' && c <= '9';
  return !letter && !digit && c != '-' && c != '.' && c != '_' && c != ':' && c != '%';
}

Result<HostLine> read_line(std::string_view line, const std::string& file, int number) {
  const SourceRef where{file, number};
  const auto bad = [&](std::string_view what) {
    return Error{ErrorKind::invalid,
                 fmt::format("host file: {} in \"{}\"", what, shown(line, kMostOfLine)),
                 "write one host per line: host, host:4 or host slots=4", where};
  };
  const std::size_t blank = first_of(line, [](char c) { return c == ' ' || c == '\t'; });
  std::string_view name = line.substr(0, blank);
  std::string_view slots;
  bool has_slots = false;
  if (blank != std::string_view::npos) {
    const std::string_view rest = trim(line.substr(blank));
    if (!rest.starts_with("slots="))
      return bad(fmt::format("\"{}\" is not understood", shown(rest, kMostOfLine)));
    slots = rest.substr(6, first_of(rest.substr(6), [](char c) { return c == ' ' || c == '\t'; }));
    has_slots = true;
    // Open MPI's limit for --oversubscribe: hpclaunch counts the ranks itself.
    const std::string_view more = trim(rest.substr(6 + slots.size()));
    if (!more.empty() && !more.starts_with("max_slots=") && !more.starts_with("max-slots="))
      return bad(fmt::format("\"{}\" is not understood", shown(more, kMostOfLine)));
  } else if (const std::size_t colon = name.find(':');
             colon != std::string_view::npos &&
             name.find(':', colon + 1) == std::string_view::npos) {
    slots = name.substr(colon + 1);  // two colons or more: an IPv6 address, not a count
    name = name.substr(0, colon);
    has_slots = true;
  }
  if (name.empty()) return bad("no host name");
  const auto bracket = [](char c) { return c == '[' || c == ']' || c == ',' || c == '='; };
  if (first_of(name, bracket) != std::string_view::npos)
    return bad("a list or bracket expression, which is not one host");
  if (name.front() == '-' || first_of(name, is_strange) != std::string_view::npos)
    return bad("a character that host names do not have");
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

}  // namespace

Result<std::vector<HostSlots>> parse_host_file(std::string_view text, const std::string& file) {
  std::vector<HostSlots> hosts;
  std::map<std::string_view, std::size_t> places;
  int number = 0;
  for (std::string_view line : split(text, '\n')) {
    ++number;
    line = trim(line.substr(0, line.find('#')));
    if (line.empty()) continue;
    const Result<HostLine> read = read_line(line, file, number);
    if (!read) return read.error();
    // Batch systems write sorted names and repeat them in sequence: the hint makes that cheap.
    const std::size_t before = places.size();
    const auto known = places.try_emplace(places.end(), read->name, hosts.size());
    if (places.size() > before) {
      hosts.push_back({std::string(read->name), read->slots});
    } else {
      HostSlots& host = hosts[known->second];
      host.slots = std::max(1, host.slots) + std::max(1, read->slots);
    }
  }
  if (hosts.empty())
    return Error{ErrorKind::invalid, "host file: it is empty", "write one host per line",
                 SourceRef{file, 0}};
  return hosts;
}

std::optional<std::string> strange_in_host(std::string_view host) {
  const auto strange = [](char c) { return c == ':' || is_strange(c); };
  if (!host.empty() && host.front() != '-' && first_of(host, strange) == std::string_view::npos)
    return std::nullopt;
  return fmt::format("\"{}\" is not a host name", shown(host, kMostOfLine));
}

bool is_address(std::string_view host) {
  const auto other = [](char c) { return (c < '0' || c > '9') && c != '.'; };
  return first_of(host, other) == std::string_view::npos ||
         host.find(':') != std::string_view::npos;
}

namespace {

bool equal(std::string_view a, std::string_view b) {
  return std::equal(a.begin(), a.end(), b.begin(), b.end(),
                    [](char p, char q) { return to_lower(p) == to_lower(q); });
}

std::string_view first_label(std::string_view name) { return name.substr(0, name.find('.')); }

}  // namespace

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
