// What the shim does at a rank, as a text for a shell: for scripts that run where hpclaunch is not installed.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

namespace hpclaunch {
namespace {

Error not_plain(std::string what) {
  return Error{ErrorKind::unsupported, "--plain: " + std::move(what), "omit --plain"};
}

std::string fact_text(RankFact fact, std::size_t local_size) {
  switch (fact) {
    case RankFact::rank:
      return "$rank";
    case RankFact::local_rank:
      return "$local";
    case RankFact::node:
      return "$node";
    case RankFact::address:
      return "$(ip -4 -o addr show dev \"${GLOO_SOCKET_IFNAME%%,*}\" | sed -n "
             "'s,.* inet \\([0-9.]*\\)/.*,\\1,p' | head -n 1)";
    case RankFact::local_size:
      break;
  }
  return fmt::format("{}", local_size);
}

bool all_equal(const std::vector<std::string>& items) {
  return std::ranges::adjacent_find(items, std::ranges::not_equal_to()) == items.end();
}

// Names and values of what differs by local rank, and what does not.
struct Columns {
  std::vector<std::pair<std::string, std::vector<std::string>>> differing;
  std::string exports;
};

Columns columns_of(const Plan& plan) {
  const std::vector<RankPlan>& ranks = plan.placement.classes.front().ranks;
  Columns columns;
  for (const Setting& setting : plan.environment.settings) {
    if (const auto* fact = std::get_if<RankFact>(&setting.value()))
      columns.exports +=
          fmt::format("export {}={}\n", setting.name, fact_text(*fact, ranks.size()));
    const auto* own = std::get_if<PerRank>(&setting.value());
    if (own == nullptr) continue;
    if (all_equal(own->items.front()))
      columns.exports +=
          fmt::format("export {}={}\n", setting.name, quote_sh(own->items.front().front()));
    else
      columns.differing.emplace_back(setting.name, own->items.front());
  }
  return columns;
}

}  // namespace

Result<std::string> render_rank_script(const Plan& plan, std::string_view rank_variable) {
  if (!plan.even() || plan.placement.classes.size() != 1)
    return not_plain("nodes with different numbers of ranks or devices");
  const std::vector<RankPlan>& ranks = plan.placement.classes.front().ranks;
  if (ranks.front().part_first >= 0) return not_plain("the CPUs of the job are not known by name");
  Columns columns = columns_of(plan);
  std::string text = fmt::format("rank=${{{}:?is set by the launcher}}\n", rank_variable);
  text += fmt::format("local=$((rank % {0})) node=$((rank / {0}))\n", ranks.size());
  const bool binds = plan.placement.bind_via == BindVia::shim;
  if (binds) {
    std::vector<std::string> lists;
    lists.reserve(ranks.size());
    for (const RankPlan& rank : ranks) lists.push_back(rank.cpus.to_list());
    columns.differing.emplace_back("cpus", std::move(lists));
  }
  if (!columns.differing.empty()) {
    text += "case $local in\n";
    for (std::size_t local = 0; local < ranks.size(); ++local) {
      text += fmt::format("  {})", local);
      for (const auto& [name, items] : columns.differing)
        text += fmt::format(" {}={}", name, quote_sh(items[local]));
      text += " ;;\n";
    }
    text += "esac\n";
  }
  for (const auto& [name, items] : columns.differing)
    if (name != "cpus") columns.exports += fmt::format("export {}\n", name);
  text += columns.exports;
  for (const std::string& folder : plan.environment.make_dirs)
    text += fmt::format("mkdir -p -m 700 {}\n", quote_sh(folder));
  if (const auto bytes = parse_natural(plan.environment.core_limit))
    text += fmt::format("ulimit -S -c {}\n", *bytes / 1024);  // bash counts KiB
  else if (!plan.environment.core_limit.empty())
    text += fmt::format("ulimit -S -c {}\n", plan.environment.core_limit);
  if (binds) text += "[ -z \"$cpus\" ] || exec taskset -c \"$cpus\" \"$@\"\n";
  return text + "exec \"$@\"\n";
}

}  // namespace hpclaunch
