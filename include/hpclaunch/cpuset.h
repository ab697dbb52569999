#pragma once
#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch {

/// A set of hardware threads of one node.
///
/// Unit     one element is one hardware thread ("PU" in hwloc, "CPU" in Linux).
/// Number   the *OS index*: what sched_setaffinity(2), /proc/cpuinfo and every launcher's list use.
///          Not hwloc's logical index, not a core number. src/probe converts.
/// Order    none; iteration and text are ascending.
class CpuSet {
 public:
  static constexpr int kCapacity = 4096;  ///< numbers 0..4095; more than any supported node has

  CpuSet() = default;

  /// Reads the kernel's list format, "0-3,8,104-107" (cpuset(7), "Formats"). Spaces are not allowed.
  /// Errors: `invalid` on an empty list, a reversed range, a number >= kCapacity, or other text;
  /// the message quotes the offending piece.
  static Result<CpuSet> parse(std::string_view list);

  /// The shortest list format; "" for the empty set. parse(to_list()) gives a non-empty set back.
  std::string to_list() const;

  void add(int os_index);  ///< aborts outside 0..kCapacity-1: a defect of the caller
  bool has(int os_index) const;
  int count() const;
  bool empty() const;
  int first() const;  ///< lowest number; -1 when empty
  int last() const;   ///< highest number; -1 when empty
  bool intersects(const CpuSet& other) const;
  bool contains(
      const CpuSet& other) const;  ///< every element of `other` is here; true for an empty `other`
  std::vector<int> to_vector() const;  ///< ascending

  /// 64 numbers in each word, lowest first; what follows is empty. of_words() takes at most kCapacity / 64.
  std::span<const std::uint64_t> words() const { return {words_.data(), used_}; }
  static CpuSet of_words(std::span<const std::uint64_t> words) {
    CpuSet set;
    std::ranges::copy(words, set.words_.begin());
    set.used_ = words.size();
    return set;
  }

  CpuSet& operator|=(const CpuSet& other);
  CpuSet& operator&=(const CpuSet& other);
  CpuSet& operator-=(const CpuSet& other);
  friend CpuSet operator|(CpuSet a, const CpuSet& b) { return a |= b; }
  friend CpuSet operator&(CpuSet a, const CpuSet& b) { return a &= b; }
  friend CpuSet operator-(CpuSet a, const CpuSet& b) { return a -= b; }
  friend bool operator==(const CpuSet& a, const CpuSet& b) { return a.words_ == b.words_; }

 private:
  static constexpr int kWordBits = 64;
  std::array<std::uint64_t, kCapacity / kWordBits> words_{};
  std::size_t used_ = 0;  ///< words from here on are 0
};

/// "CPU 7", "CPUs 7-9".
std::string cpus_text(const CpuSet& cpus);

}  // namespace hpclaunch
