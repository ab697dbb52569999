// Pools of huge pages, and variables that need one. Sources: Linux, admin-guide/mm/hugetlbpage; libhugetlbfs(7);
// UCX, src/uct/sm/mm/base/mm_md.c.
#include <fmt/format.h>

#include <optional>

#include "doctor/examination.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

constexpr const char* kPools = "/sys/kernel/mm/hugepages";

std::string text_of(const std::string& path) {
  const auto text = sys::read_file(path, 1u << 16);
  return text ? std::string(trim(*text)) : "";
}

struct Pool {
  long kib = 0;  // of a page
  long total = 0, free = 0;
  long more = 0;  // that the kernel may add when they are needed
};

std::vector<Pool> pools() {
  std::vector<Pool> all;
  const auto names = sys::list_directory(kPools);
  for (const std::string& name : names ? *names : std::vector<std::string>{}) {
    constexpr std::string_view kBefore = "hugepages-";  // "hugepages-2048kB"
    if (!name.starts_with(kBefore) || !name.ends_with("kB")) continue;
    const std::string_view size = std::string_view(name).substr(kBefore.size());
    const auto number = [&](const char* file) {
      return parse_natural(text_of(fmt::format("{}/{}/{}", kPools, name, file))).value_or(0);
    };
    all.push_back({parse_natural(size.substr(0, size.size() - 2)).value_or(0),
                   number("nr_hugepages"), number("free_hugepages"),
                   number("nr_overcommit_hugepages")});
  }
  return all;
}

// "2M" in KiB, as libhugetlbfs reads it; 0 for anything else.
long kib_of(std::string_view text) {
  if (text.empty()) return 0;
  const std::size_t unit = std::string_view("kmg").find(to_lower(text.substr(text.size() - 1)));
  const auto number = parse_natural(text.substr(0, text.size() - 1), 1 << 20);
  return unit == std::string_view::npos || !number ? 0 : *number << (10 * unit);
}

std::string size_text(long kib) { return human_bytes(static_cast<unsigned long long>(kib) << 10); }

// The size of "Hugepagesize: 2048 kB" in /proc/meminfo.
long default_kib() {
  const std::string text = text_of("/proc/meminfo");
  const std::size_t at = text.find("Hugepagesize:");
  if (at == text.npos) return 0;
  const std::string_view rest = trim(std::string_view(text).substr(at + 13, 16));
  return parse_natural(rest.substr(0, rest.find(' '))).value_or(0);
}

// A variable without which the job would use small pages, or transparent ones, and the size that it asks for.
struct Asked {
  std::string variable;
  long kib = 0;
};

std::optional<Asked> asked_for(const EnvSnapshot& env) {
  for (const char* name : {"HUGETLB_MORECORE", "HUGETLB_SHM"}) {
    const std::string value = env.get(name);
    if (value.empty() || value == "no" || value == "thp") continue;
    const long size = kib_of(value);  // "yes" is none
    return Asked{fmt::format("{}={}", name, value),
                 size != 0 ? size : kib_of(env.get("HUGETLB_DEFAULT_PAGE_SIZE"))};
  }
  for (const char* name :
       {"UCX_MM_HUGETLB_MODE", "UCX_POSIX_HUGETLB_MODE", "UCX_SYSV_HUGETLB_MODE"})
    if (env.get(name).starts_with('y')) return Asked{fmt::format("{}={}", name, env.get(name))};
  return std::nullopt;
}

}  // namespace

void examine_huge_pages(Examination& doctor) {
  const std::vector<Pool> all = pools();
  const long usual = default_kib();
  if (const std::optional<Asked> asked = asked_for(doctor.env())) {
    Pool pool{asked->kib != 0 ? asked->kib : usual};
    for (const Pool& one : all)
      if (one.kib == pool.kib) pool = one;
    if (pool.free + pool.more == 0)
      return doctor.fault(
          "huge pages", Severity::warning, "huge-pages",
          fmt::format("{}: none of {} huge pages of {} is free here", asked->variable, pool.total,
                      size_text(pool.kib)),
          "unload the module that asks for them, such as craype-hugepages2M, or another node");
  }
  std::string text;
  for (const Pool& one : all)
    text += fmt::format("{} free of {} of {}{}, ", one.free, one.total, size_text(one.kib),
                        one.more == 0 ? "" : fmt::format(" and {} on demand", one.more));
  const std::string modes = text_of("/sys/kernel/mm/transparent_hugepage/enabled");
  const std::size_t open = modes.find('[');  // "always [madvise] never"
  const std::string mode =
      open == modes.npos ? "unknown" : modes.substr(open + 1, modes.find(']') - open - 1);
  doctor.sound("huge pages", fmt::format("{}transparent: {}", text, mode));
}

}  // namespace hpclaunch::job
