#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/environment/environment.h"

namespace hpclaunch {

namespace {

using RankFacts = std::map<std::string, std::string, std::less<>>;

RankFacts facts_of(const RankPlan& rank, std::size_t local_rank) {
  RankFacts facts = {{"local_rank", std::to_string(local_rank)},
                     {"cpus", rank.cpus.to_list()},
                     {"cores", std::to_string(rank.cores)},
                     {"package", std::to_string(rank.package)},
                     {"numa", std::to_string(rank.numa)}};
  if (rank.unit >= 0) {
    facts["unit"] = std::to_string(rank.unit);
    facts["device"] = std::to_string(rank.device);
    facts["subdevice"] = std::to_string(std::max(0, rank.subdevice));
  }
  for (const auto& [name, pu] : rank.roles) facts["role." + name] = std::to_string(pu);
  return facts;
}

bool differs_by_rank(const Template& value) {
  const auto of_rank = [](const std::string& name) {
    const auto fact = std::ranges::find(known_facts(), name, &FactInfo::name);
    return name.starts_with("role.") ||
           (fact != known_facts().end() && fact->scope == FactInfo::Scope::rank);
  };
  return value.each == Template::Each::once && std::ranges::any_of(facts_in(value), of_rank);
}

// The values of the ranks of one class of nodes.
Result<std::vector<std::string>> of_class(const Template& value, const NodeClass& node,
                                          const Units& units, Facts facts) {
  facts.job["ranks_per_node"] = std::to_string(node.ranks.size());
  const bool by_rank = differs_by_rank(value);
  std::vector<RankFacts> each;
  if (value.each == Template::Each::once && !by_rank) each.emplace_back();
  for (std::size_t r = 0; r < node.ranks.size(); ++r)
    if (value.each == Template::Each::rank || by_rank) each.push_back(facts_of(node.ranks[r], r));
  for (int u = 0; u < units.total; ++u)
    if (value.each == Template::Each::unit) each.push_back({{"unit", std::to_string(u)}});
  std::vector<std::string> items;
  for (RankFacts& one : each) {
    facts.rank = std::move(one);
    Result<std::string> item = expand(value.text, facts);
    if (!item) return item.error();
    items.push_back(std::move(*item));
  }
  if (by_rank) return items;
  return std::vector<std::string>(node.ranks.size(),
                                  fmt::format("{}", fmt::join(items, value.join)));
}

}  // namespace

Result<Value> evaluate(const Template& value, const Facts& job, const Units& units,
                       const Plan& plan) {
  PerRank values;
  for (const NodeClass& node : plan.classes) {
    Result<std::vector<std::string>> items = of_class(value, node, units, job);
    if (!items) return items.error();
    values.items.push_back(std::move(*items));
  }
  return constant_or_per_rank(std::move(values));
}

}  // namespace hpclaunch
