// Whether and why all ranks start again: judged from the ranks' own records, never from their text.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/events.h"
#include "hpclaunch/text.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

// "train.py:41 in step, RuntimeError"; "" where nothing is known.
std::string place_of(const sys::RankFailure& failure) {
  const Raised& raised = failure.traceback.raised;
  const std::string place = raised.place();
  return place.empty() ? raised.type : fmt::format("{}, {}", place, raised.type);
}

}  // namespace

std::string failure_text(const sys::Ending& ending) {
  if (ending.stalled) return "a stall";
  if (!ending.lost.empty())
    return fmt::format("{} {}",
                       ending.lost[0].whole_node ? "lost node" : "no exit status from ranks on",
                       ending.lost[0].host);
  const sys::RankFailure& first = *ending.first;
  return fmt::format("rank {} on {}: {}", first.rank, first.host,
                     first.signal != 0 ? fmt::format("killed by {}", sys::signal_name(first.signal))
                                       : fmt::format("exit status {}", first.exit_status));
}

std::vector<int> lost_nodes(const sys::Ending& ending) {
  std::vector<int> nodes;
  for (const sys::SilentRanks& lost : ending.lost)
    if (lost.whole_node) nodes.push_back(lost.node);
  return nodes;
}

std::string replacement_text(const Plan& before, const Plan& next, int node) {
  const std::string name = before.hosts.names[static_cast<std::size_t>(node)];
  if (next.nodes() < before.nodes())
    return fmt::format("continuing with {}, without {}, whose connection ended",
                       counted(next.nodes(), "node"), name);
  return fmt::format("{} takes the place of {}, whose connection ended",
                     next.hosts.names[static_cast<std::size_t>(node)], name);
}

bool can_restart(const sys::Ending& ending) {
  if (ending.interrupted_by != 0 || sys::ends_programs(ending.passed_on)) return false;
  return ending.first || !ending.lost.empty() || ending.stalled;
}

std::string same_fault(const std::vector<Attempt>& attempts) {
  const sys::Ending& now = attempts.back().ending;
  if (!now.first) return "";
  const sys::RankFailure& two = *now.first;
  const std::string place = place_of(two);
  const auto same = [&](const Attempt& attempt) {
    const std::optional<sys::RankFailure>& one = attempt.ending.first;
    return one && one->rank == two.rank && one->status() == two.status() && place_of(*one) == place;
  };
  if (std::none_of(attempts.begin(), attempts.end() - 1, same)) return "";
  return fmt::format(
      "rank {} ended in the same way as before ({}{}): {}", two.rank, failure_text(now),
      place.empty() ? "" : ", " + place,
      two.signal == 0 ? "likely a fault of the program" : "a fault of the program, or of its node");
}

}  // namespace hpclaunch::job
