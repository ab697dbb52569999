#include "hpclaunch/plan.h"

#include <algorithm>
#include <array>

#include "hpclaunch/request.h"

namespace hpclaunch {

std::string_view to_string(Layer layer) {
  switch (layer) {
    case Layer::builtin:
      return "builtin";
    case Layer::profile_default:
      return "default";
    case Layer::environment:
      return "environment";
    case Layer::profile_require:
      return "require";
    case Layer::computed:
      return "computed";
    case Layer::command_line:
      return "command line";
  }
  return "?";
}

std::string_view to_string(RankFact fact) {
  switch (fact) {
    case RankFact::rank:
      return "rank";
    case RankFact::local_rank:
      return "local-rank";
    case RankFact::node:
      return "node";
    case RankFact::local_size:
      return "local-size";
  }
  return "?";
}

std::string_view to_string(BindVia via) {
  switch (via) {
    case BindVia::launcher:
      return "launcher";
    case BindVia::shim:
      return "shim";
    case BindVia::none:
      return "none";
  }
  return "?";
}

std::string_view to_string(Verify verify) {
  switch (verify) {
    case Verify::off:
      return "off";
    case Verify::warn:
      return "warn";
    case Verify::strict:
      return "strict";
  }
  return "?";
}

int Plan::world_size() const {
  int total = 0;
  for (const NodeRun& run : layout)
    total += run.nodes *
             static_cast<int>(classes[static_cast<std::size_t>(run.node_class)].ranks.size());
  return total;
}

int Plan::max_local_size() const {
  std::size_t most = 0;
  for (const NodeClass& one : classes) most = std::max(most, one.ranks.size());
  return static_cast<int>(most);
}

namespace {

const Setting* find(const std::vector<Setting>& settings, std::string_view name) {
  for (const Setting& setting : settings)
    if (setting.name == name) return &setting;
  return nullptr;
}

}  // namespace

const Setting* Plan::find_env(std::string_view name) const { return find(env, name); }
const Setting* Plan::find_choice(std::string_view name) const { return find(choices, name); }

std::string_view to_string(OnDrift how) {
  return how == OnDrift::warn ? "warn" : how == OnDrift::fail ? "fail" : "replan";
}

std::string time_limit_signal_name(int signal) {
  for (const SignalName& one : kTimeLimitSignals)
    if (one.number == signal) return "SIG" + std::string(one.name);
  return {};
}

}  // namespace hpclaunch
