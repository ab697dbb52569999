#include <fmt/format.h>

#include <algorithm>
#include <cctype>

#include "hpclaunch/text.h"
#include "plan/cores/cores.h"

namespace hpclaunch {

namespace {

// A mask as srun prints it: hexadecimal digits, the last one for CPUs 0 to 3.
std::optional<CpuSet> parse_mask(std::string_view text) {
  if (text.starts_with("0x") || text.starts_with("0X")) text.remove_prefix(2);
  constexpr std::size_t kDigits = CpuSet::kCapacity / 4;
  CpuSet cpus;
  if (text.empty() || text.size() > kDigits) return std::nullopt;
  for (std::size_t i = 0; i < text.size(); ++i) {
    const char digit = text[text.size() - 1 - i];
    if (std::isxdigit(static_cast<unsigned char>(digit)) == 0) return std::nullopt;
    const int value = std::isdigit(static_cast<unsigned char>(digit)) != 0
                          ? digit - '0'
                          : (digit | 0x20) - 'a' + 10;
    for (int bit = 0; bit < 4; ++bit)
      if ((value >> bit & 1) != 0) cpus.add(static_cast<int>(i) * 4 + bit);
  }
  return cpus.empty() ? std::nullopt : std::optional(cpus);
}

// Words that say more or less, not where: "verbose,list:...".
std::string_view without_verbosity(std::string_view text) {
  for (const std::string_view word : {"verbose,", "quiet,", "v,", "q,"})
    if (text.starts_with(word)) return text.substr(word.size());
  return text;
}

}  // namespace

Result<std::vector<CpuSet>> parse_cpu_lists(std::string_view text) {
  text = without_verbosity(trim(text));
  bool masks = text.starts_with("0x") || text.starts_with("0X");
  char between = text.find(':') != std::string_view::npos || !masks ? ':' : ',';
  const auto keyword = [&](std::string_view name) {
    if (!text.starts_with(name)) return false;
    text.remove_prefix(name.size());
    return true;
  };
  if (keyword("mask_cpu:")) {
    masks = true;
    between = ',';
  } else if (keyword("map_cpu:")) {
    between = ',';
  } else {
    keyword("list:");
  }
  std::vector<CpuSet> lists;
  for (const std::string_view one : split(text, between)) {
    const Result<CpuSet> list = masks ? Result<CpuSet>(Error{}) : CpuSet::parse(one);
    const std::optional<CpuSet> cpus = masks  ? parse_mask(one)
                                       : list ? std::optional(*list)
                                              : std::nullopt;
    if (!cpus)
      return Error{ErrorKind::invalid, fmt::format("\"{}\" is not a {}", shown(one),
                                                   masks ? "mask of CPUs" : "list of CPUs")};
    lists.push_back(*cpus);
  }
  return lists;
}

}  // namespace hpclaunch
