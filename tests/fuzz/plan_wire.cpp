// HPCLAUNCH_PLAN of any plan: each rank finds in it what the plan says.
#include <fuzzer/FuzzedDataProvider.h>

#include <algorithm>
#include <map>
#include <set>

#include "fuzz/expect.h"
#include "hpclaunch/wire.h"
#include "shim/run_rank.h"

using namespace hpclaunch;
using fuzz::expect;

namespace {

std::string text(FuzzedDataProvider& from) {
  std::string out = from.ConsumeRandomLengthString(40);
  std::erase(out, '\0');
  return out;
}

Value value(FuzzedDataProvider& from, const Plan& plan) {
  if (from.ConsumeBool()) return text(from);
  if (from.ConsumeBool()) return static_cast<RankFact>(from.ConsumeIntegralInRange(0, 3));
  PerRank each;
  for (const NodeClass& one : plan.placement.classes) {
    each.items.emplace_back();
    for (std::size_t r = 0; r < one.ranks.size(); ++r) each.items.back().push_back(text(from));
  }
  return each;
}

Plan plan_of(FuzzedDataProvider& from) {
  Plan plan;
  for (int c = from.ConsumeIntegralInRange(1, 3); c > 0; --c)
    plan.placement.classes.push_back(
        {std::vector<RankPlan>(from.ConsumeIntegralInRange(1U, 4U)), 0});
  for (int runs = from.ConsumeIntegralInRange(1, 3); runs > 0; --runs) {
    const int last = static_cast<int>(plan.placement.classes.size()) - 1;
    plan.placement.layout.push_back(
        {from.ConsumeIntegralInRange(0, last), from.ConsumeIntegralInRange(1, 3)});
    for (int n = plan.placement.layout.back().nodes; n > 0; --n)
      plan.hosts.names.push_back("n" + text(from));
  }
  plan.supervision.verify = static_cast<Verify>(from.ConsumeIntegralInRange(0, 2));
  plan.launch.image = text(from);
  plan.launch.directory = text(from);
  for (int d = from.ConsumeIntegralInRange(0, 2); d > 0; --d)
    plan.environment.make_dirs.push_back("/" + text(from));
  std::map<std::string, Value> env;
  for (int v = from.ConsumeIntegralInRange(0, 5); v > 0; --v) {
    std::string name = text(from);
    std::erase(name, '=');
    if (!name.empty()) env[name] = value(from, plan);
  }
  for (const auto& [name, one] : env)
    plan.environment.settings.push_back(
        {name, {Decision{Layer::computed, one, {}, "for the test"}}});
  return plan;
}

void check(const Plan& plan, const std::string& wire, const RankPlace& place) {
  const test::RankResult got = test::run_rank(wire, place.rank);
  expect(got.fault.empty() && !got.beyond, "the shim reads the plan", wire);
  expect(got.place.node == place.node && got.place.local == place.local, "the place", wire);
  const std::set<std::string> wanted(plan.environment.make_dirs.begin(),
                                     plan.environment.make_dirs.end());
  const std::set<std::string> made(got.directories.begin(), got.directories.end());
  expect(made == wanted, "the directories", wire);
  for (const Setting& one : plan.environment.settings) {
    const std::string entry = one.name + "=" + value_on(one.value(), place);
    const bool constant = std::holds_alternative<std::string>(one.value());
    const auto named = [&](const std::string& e) { return e.starts_with(one.name + "="); };
    const auto found = std::ranges::find_if(got.environment, named);
    const bool absent = found == got.environment.end();
    expect(absent ? constant : *found == entry, "the variable of the plan", wire + "\n" + entry);
  }
}

}  // namespace

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  FuzzedDataProvider from(data, size);
  const Plan plan = plan_of(from);
  const Result<std::string> wire = encode_wire(plan, {"PMI_RANK", "MPI_LOCALRANKID"});
  if (!wire) return 0;
  expect(std::ranges::all_of(*wire, [](char c) { return c > ' ' && c <= '~'; }),
         "a launcher can carry the plan", *wire);
  RankPlace place;
  for (const NodeRun& run : plan.placement.layout)
    for (int n = 0; n < run.nodes; ++n, ++place.node) {
      place.node_class = run.node_class;
      const auto& ranks = plan.placement.classes[static_cast<std::size_t>(run.node_class)].ranks;
      place.local_size = static_cast<int>(ranks.size());
      for (place.local = 0; place.local < place.local_size; ++place.local, ++place.rank)
        check(plan, *wire, place);
    }
  expect(test::run_rank(*wire, place.rank).beyond, "no more ranks", *wire);
  return 0;
}
