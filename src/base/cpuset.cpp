#include "hpclaunch/cpuset.h"

#include <fmt/format.h>

#include <algorithm>
#include <bit>
#include <cstdlib>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

Error bad_piece(std::string_view piece, std::string_view why) {
  return Error{ErrorKind::invalid, fmt::format("CPU list: \"{}\" {}", piece, why),
               "write ascending numbers and ranges, as in 0-3,8,104-107"};
}

}  // namespace

Result<CpuSet> CpuSet::parse(std::string_view list) {
  CpuSet set;
  for (const std::string_view piece : split(list, ',')) {
    if (piece.empty()) return bad_piece(list, list.empty() ? "is empty" : "has an empty entry");
    const std::size_t dash = piece.find('-');
    const std::string_view low_text = piece.substr(0, dash);
    const std::string_view high_text =
        dash == std::string_view::npos ? low_text : piece.substr(dash + 1);
    const std::optional<long> low = parse_natural(low_text);
    const std::optional<long> high = parse_natural(high_text);
    if (!low || !high) return bad_piece(piece, "is not a number or a range");
    if (*low > *high) return bad_piece(piece, "counts down");
    if (*high >= kCapacity)
      return bad_piece(piece, fmt::format("is beyond the highest CPU number, {}", kCapacity - 1));
    for (long i = *low; i <= *high; ++i) set.add(static_cast<int>(i));
  }
  return set;
}

std::string CpuSet::to_list() const { return ranges(to_vector()); }

std::string cpus_text(const CpuSet& cpus) {
  return fmt::format("CPU{} {}", cpus.count() == 1 ? "" : "s", cpus.to_list());
}

void CpuSet::add(int os_index) {
  if (os_index < 0 || os_index >= kCapacity) {
    std::fprintf(stderr, "hpclaunch: internal error: CPU number %d out of range\n", os_index);
    std::abort();
  }
  const auto i = static_cast<std::size_t>(os_index);
  words_[i / kWordBits] |= std::uint64_t{1} << (i % kWordBits);
  used_ = std::max(used_, i / kWordBits + 1);
}

bool CpuSet::has(int os_index) const {
  if (os_index < 0 || os_index >= kCapacity) return false;
  const auto i = static_cast<std::size_t>(os_index);
  return ((words_[i / kWordBits] >> (i % kWordBits)) & 1u) != 0;
}

int CpuSet::count() const {
  int n = 0;
  for (std::size_t w = 0; w < used_; ++w) n += std::popcount(words_[w]);
  return n;
}

bool CpuSet::empty() const { return first() < 0; }

int CpuSet::first() const {
  for (std::size_t w = 0; w < used_; ++w)
    if (words_[w] != 0) return static_cast<int>(w) * kWordBits + std::countr_zero(words_[w]);
  return -1;
}

int CpuSet::last() const {
  for (std::size_t w = used_; w-- > 0;)
    if (words_[w] != 0)
      return static_cast<int>(w) * kWordBits + kWordBits - 1 - std::countl_zero(words_[w]);
  return -1;
}

bool CpuSet::intersects(const CpuSet& other) const {
  for (std::size_t w = 0; w < std::min(used_, other.used_); ++w)
    if ((words_[w] & other.words_[w]) != 0) return true;
  return false;
}

bool CpuSet::contains(const CpuSet& other) const {
  for (std::size_t w = 0; w < other.used_; ++w)
    if ((other.words_[w] & ~words_[w]) != 0) return false;
  return true;
}

std::vector<int> CpuSet::to_vector() const {
  std::vector<int> numbers;
  numbers.reserve(static_cast<std::size_t>(count()));
  for (std::size_t w = 0; w < used_; ++w)
    for (std::uint64_t rest = words_[w]; rest != 0; rest &= rest - 1)
      numbers.push_back(static_cast<int>(w) * kWordBits + std::countr_zero(rest));
  return numbers;
}

CpuSet& CpuSet::operator|=(const CpuSet& other) {
  for (std::size_t w = 0; w < other.used_; ++w) words_[w] |= other.words_[w];
  used_ = std::max(used_, other.used_);
  return *this;
}

CpuSet& CpuSet::operator&=(const CpuSet& other) {
  for (std::size_t w = 0; w < used_; ++w) words_[w] &= other.words_[w];
  return *this;
}

CpuSet& CpuSet::operator-=(const CpuSet& other) {
  for (std::size_t w = 0; w < std::min(used_, other.used_); ++w) words_[w] &= ~other.words_[w];
  return *this;
}

}  // namespace hpclaunch
