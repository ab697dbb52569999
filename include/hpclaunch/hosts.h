#pragma once
// Names of hosts and lists of them, as batch systems and host files write them.
#include <cstddef>
#include <cstdint>
#include <initializer_list>
#include <iterator>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch {

inline constexpr std::size_t kMostHosts = 1'000'000;
inline constexpr std::size_t kMostOfHostName = 253;  ///< bytes; RFC 1035, 2.3.4
inline constexpr std::size_t kMostOfHostLabel = 63;  ///< bytes between two dots
inline constexpr std::size_t kMostOfHostLine =
    4096;  ///< bytes of a host file's line, without its comment
inline constexpr int kMostHostLines = 4'000'000;  ///< of a host file: one per slot in PBS

/// Names of hosts, compressed: neighbours that count up in one number are a run. A job of 100,000 numbered nodes costs two
/// allocations, and a name is made when somebody asks for it.
class HostNames {
 public:
  class Iterator {
   public:
    using iterator_category = std::input_iterator_tag;  // its reference is no reference
    using value_type = std::string;
    using difference_type = std::ptrdiff_t;
    using pointer = void;
    using reference = std::string;
    Iterator() = default;
    Iterator(const HostNames* names, std::size_t at) : names_(names), at_(at) {}
    std::string operator*() const { return (*names_)[at_]; }
    Iterator& operator++() { return ++at_, *this; }
    Iterator operator++(int) { return {names_, at_++}; }
    bool operator==(const Iterator&) const = default;

   private:
    const HostNames* names_ = nullptr;
    std::size_t at_ = 0;
  };
  using value_type = std::string;
  using const_iterator = Iterator;

  HostNames() = default;
  HostNames(std::initializer_list<std::string_view> names)
      : HostNames(names.begin(), names.end()) {}
  HostNames(const std::vector<std::string>& names) : HostNames(names.begin(), names.end()) {}
  template <class It>
  HostNames(It begin, It end) {
    for (; begin != end; ++begin) push_back(*begin);
  }

  void push_back(std::string_view name);
  /// The numbers from `first` to `last`, with at least `width` digits, between `head` and `tail`.
  void push_range(std::string_view head, std::uint64_t first, std::uint64_t last, std::size_t width,
                  std::string_view tail);
  HostNames first(std::size_t count) const;
  std::size_t size() const { return size_; }
  bool empty() const { return size_ == 0; }
  std::string operator[](std::size_t at) const;
  std::string front() const { return (*this)[0]; }
  std::string back() const { return (*this)[size_ - 1]; }
  Iterator begin() const { return {this, 0}; }
  Iterator end() const { return {this, size_}; }

  /// The first name of each run: every other name differs from one of them in digits only.
  std::vector<std::string> samples() const;
  bool ascending() const;                      ///< each name once, and in order
  bool contains(std::string_view host) const;  ///< same_host as one of them
  friend bool operator==(const HostNames& a, const HostNames& b);
  friend std::string host_ranges(const HostNames& hosts, std::size_t most);

 private:
  struct Run {
    std::size_t begin = 0;  // position of its first name
    std::size_t text = 0;   // that name in text_, and its bytes
    std::size_t size = 0;
    std::size_t head =
        0;  // bytes in front of the number and behind it; unused in a run of one name
    std::size_t tail = 0;
    std::uint64_t number = 0;  // of the first name
  };
  std::string_view first_of(const Run& run) const {
    return std::string_view(text_).substr(run.text, run.size);
  }
  std::size_t run_of(std::size_t at) const;
  std::size_t count(std::size_t run) const {
    return (run + 1 < runs_.size() ? runs_[run + 1].begin : size_) - runs_[run].begin;
  }
  std::string name(std::size_t run, std::size_t place) const;
  bool extend(Run& last, std::string_view name) const;

  std::string text_;
  std::vector<Run> runs_;
  std::size_t size_ = 0;
};

/// The hosts of a host file and their ranks.
struct HostFile {
  HostNames names;
  std::vector<int> slots;  ///< of each host; 0: the file does not say
  friend bool operator==(const HostFile&, const HostFile&) = default;
};

/// Reads a host file: a host per line, as "host", "host:4" (Hydra) or "host slots=4", also with "max_slots=8" (Open MPI). Blank
/// lines and what follows '#' do not count. A repeated host, as in a PBS node file, adds its
/// slots (one per line where none is written) and keeps its first place.
/// Errors: `invalid` with file and line; also when there is no host at all, and above the limits.
Result<HostFile> parse_host_file(std::string_view text, const std::string& file);

/// Each name once, in its first place; `slots` (of each name, or empty) of a repeated one are added, as in parse_host_file.
/// False: no name was repeated.
bool merge_repeated(HostNames& names, std::vector<int>& slots);

/// The hosts of a list as Slurm and Flux write it, "n[1-3,08-11]-ib0,gpu1", in Slurm's order; repeated
/// hosts stay. Numbers get as many digits as the lower end of their range has.
/// Errors: `invalid` with the unreadable piece; no host; more than kMostHosts; names above kMostOfHostName.
Result<HostNames> expand_hostlist(std::string_view text);

/// The same the other way round, "n[1-3,08-11]-ib0,gpu1": neighbours that differ in one number share a bracket.
/// What is longer than `most` bytes ends in ",... (512 nodes)".
std::string host_ranges(const HostNames& hosts, std::size_t most);

/// "4(x2),3" as SLURM_TASKS_PER_NODE has it: 4, 4, 3. Counts are 1 at least.
/// Errors: `invalid` with the unreadable piece; counts for more than 1,000,000 nodes.
Result<std::vector<int>> expand_tasks_per_node(std::string_view text);

/// Why text is not a host: "a label of 64 bytes (at most 63)". nullopt for a name (letters, digits, '-' and '_' in labels)
/// and for an address of IPv4 or IPv6, also with a zone ("fe80::1%eth0").
std::optional<std::string> strange_in_host(std::string_view host);

/// True for text that is an address and no name: digits and dots only, or with a colon.
bool is_address(std::string_view host);

/// A name with a domain: "n1.example.org".
bool is_qualified(std::string_view host);

bool is_loopback(std::string_view address);  ///< 127.x.y.z, ::1, or one of those mapped into IPv6
bool is_link_local(
    std::string_view address);  ///< of one link: another machine on each node, or none

/// For maps of hosts: the name in lower case up to the first dot; an address whole.
std::string short_host(std::string_view host);

/// True when both name the same machine: letter case and what follows the first
/// dot do not count, unless both have a domain and the domains differ. Addresses must be equal.
bool same_host(std::string_view a, std::string_view b);

}  // namespace hpclaunch
