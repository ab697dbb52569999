#include "hpclaunch/plan.h"

#include <algorithm>

#include "hpclaunch/env.h"
#include "hpclaunch/request.h"
#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

// Names in the order of the enumerators.
template <class Enum, std::size_t size>
std::string_view name_of(const std::string_view (&names)[size], Enum value) {
  const auto at = static_cast<std::size_t>(value);
  return at < size ? names[at] : "?";
}

}  // namespace

// Source: slurm src/common/slurm_protocol_defs.h: numbers from 0xfffffff0 are no ordinary steps.
bool LauncherTraits::inside_step(const EnvSnapshot& env) const {
  constexpr long kReserved = 0xfffffff0;
  return !step_var.empty() && parse_natural(env.get(step_var), kReserved - 1).has_value();
}

const Setting* find(const std::vector<Setting>& settings, std::string_view name) {
  const auto found = std::ranges::find(settings, name, &Setting::name);
  return found == settings.end() ? nullptr : &*found;
}

std::string_view to_string(Layer layer) {
  return name_of(
      {"batch system", "builtin", "default", "environment", "require", "computed", "command line"},
      layer);
}

std::string_view to_string(RankFact fact) {
  return name_of({"rank", "local-rank", "node", "local-size", "address"}, fact);
}

std::string_view to_string(BindVia via) { return name_of({"launcher", "shim", "none"}, via); }

std::string_view to_string(Verify verify) { return name_of({"off", "warn", "strict"}, verify); }

bool any_from(Severity least, const std::vector<Diagnostic>& diagnostics) {
  return std::ranges::any_of(diagnostics,
                             [&](const Diagnostic& one) { return one.severity >= least; });
}

std::string_view to_string(Severity severity) {
  return name_of({"note", "warning", "error"}, severity);
}

std::string_view to_string(OnDrift how) { return name_of({"warn", "fail", "replan"}, how); }

std::string value_on(const Value& value, const RankPlace& place) {
  if (const auto* text = std::get_if<std::string>(&value)) return *text;
  if (const auto* each = std::get_if<PerRank>(&value))
    return each->items[place.node_class][place.local];
  const auto* fact = std::get_if<RankFact>(&value);
  if (fact == nullptr || *fact == RankFact::address) return "";  // which only the node knows
  return std::to_string(*fact == RankFact::rank         ? place.rank
                        : *fact == RankFact::local_rank ? place.local
                        : *fact == RankFact::node       ? place.node
                                                        : place.local_size);
}

CpuSet cpus_of(const std::vector<RankPlan>& ranks) {
  CpuSet cpus;
  for (const RankPlan& rank : ranks) cpus |= rank.cpus;
  return cpus;
}

const std::string* everywhere(const Plan& plan, const EnvSnapshot& env, std::string_view name) {
  const Setting* setting = plan.find_env(name);
  return setting == nullptr ? env.find(name) : std::get_if<std::string>(&setting->value());
}

int Placement::world_size() const {
  int total = 0;
  for (const NodeRun& run : layout) total += run.nodes * static_cast<int>(of(run).ranks.size());
  return total;
}

std::pair<int, int> Plan::own_ranks() const {
  int first = 0, node = 0;
  for (const NodeRun& run : placement.layout) {
    const int ranks = static_cast<int>(placement.of(run).ranks.size());
    if (hosts.own >= 0 && hosts.own < node + run.nodes)
      return {first + (hosts.own - node) * ranks, ranks};
    first += run.nodes * ranks;
    node += run.nodes;
  }
  return {0, first};
}

int Placement::max_local_size() const {
  std::size_t most = 0;
  for (const NodeClass& one : classes) most = std::max(most, one.ranks.size());
  return static_cast<int>(most);
}

Severity severity_from(std::string_view name) {
  for (const Severity severity : {Severity::note, Severity::error})
    if (name == to_string(severity)) return severity;
  return Severity::warning;
}

std::string time_limit_signal_name(int signal) {
  for (const SignalName& one : kTimeLimitSignals)
    if (one.number == signal) return "SIG" + std::string(one.name);
  return {};
}

}  // namespace hpclaunch
