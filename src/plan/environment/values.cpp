#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "plan/environment/environment.h"

namespace hpclaunch {

namespace {

void set_rank_facts(const RankPlan& rank, int local_rank, Facts& facts) {
  facts.rank = {{"local_rank", std::to_string(local_rank)},
                {"cpus", rank.cpus.to_list()},
                {"cores", std::to_string(rank.cores)},
                {"package", std::to_string(rank.package)},
                {"numa", std::to_string(rank.numa)}};
  if (rank.unit >= 0) {
    facts.rank["unit"] = std::to_string(rank.unit);
    facts.rank["device"] = std::to_string(rank.device);
    facts.rank["subdevice"] = std::to_string(std::max(0, rank.subdevice));
  }
  for (const auto& [name, pu] : rank.roles) facts.rank["role." + name] = std::to_string(pu);
}

bool differs_by_rank(const Template& value) {
  if (value.each != Template::Each::once) return false;
  const std::vector<std::string> named = facts_in(value);
  return std::any_of(named.begin(), named.end(), [](const std::string& name) {
    if (name.starts_with("role.")) return true;
    const auto facts = known_facts();
    return std::any_of(facts.begin(), facts.end(), [&](const FactInfo& fact) {
      return fact.name == name && fact.scope == FactInfo::Scope::rank;
    });
  });
}

// The text of each rank of one class of nodes.
Result<std::vector<std::string>> of_each(const std::string& text, const NodeClass& node,
                                         Facts& facts) {
  std::vector<std::string> items;
  for (std::size_t r = 0; r < node.ranks.size(); ++r) {
    set_rank_facts(node.ranks[r], static_cast<int>(r), facts);
    Result<std::string> item = expand(text, facts);
    if (!item) return item.error();
    items.push_back(std::move(*item));
  }
  return items;
}

Result<std::string> repeat_ranks(const Template& value, const NodeClass& node, Facts& facts) {
  const Result<std::vector<std::string>> items = of_each(value.text, node, facts);
  if (!items) return items.error();
  return fmt::format("{}", fmt::join(*items, value.join));
}

Result<std::string> repeat_units(const Template& value, const Units& units, Facts& facts) {
  std::vector<std::string> items;
  for (int u = 0; u < units.total; ++u) {
    facts.rank = {{"unit", std::to_string(u)}};
    Result<std::string> item = expand(value.text, facts);
    if (!item) return item;
    items.push_back(std::move(*item));
  }
  return fmt::format("{}", fmt::join(items, value.join));
}

// The values of the ranks of one class of nodes.
Result<std::vector<std::string>> of_class(const Template& value, const NodeClass& node,
                                          const Units& units, Facts facts) {
  facts.job["ranks_per_node"] = std::to_string(node.ranks.size());
  if (differs_by_rank(value)) return of_each(value.text, node, facts);
  Result<std::string> one = value.each == Template::Each::rank   ? repeat_ranks(value, node, facts)
                            : value.each == Template::Each::unit ? repeat_units(value, units, facts)
                                                                 : expand(value.text, facts);
  if (!one) return one.error();
  return std::vector<std::string>(node.ranks.size(), *one);
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
