// Whether and why all ranks start again: judged from the ranks' own records, never from their text.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/events.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

// "train.py:41" of the last frame in a traceback of Python, which may have a prefix: 'File "train.py", line 41, in f'.
std::string place_of(const std::vector<std::string>& last_lines) {
  std::string place;
  for (const std::string_view line : last_lines) {
    constexpr std::string_view kFile = "File \"", kLine = "\", line ";
    const std::size_t file = line.find(kFile);
    if (file == line.npos) continue;
    const std::string_view rest = line.substr(file + kFile.size());
    const std::size_t end = rest.find(kLine);
    if (end == rest.npos) continue;
    const std::string_view number = rest.substr(end + kLine.size());
    place = fmt::format("{}:{}", rest.substr(0, end),
                        number.substr(0, number.find_first_not_of("0123456789")));
  }
  return place;
}

}  // namespace

std::string failure_text(const sys::Ending& ending) {
  const auto lost = std::ranges::find_if(ending.silent, &sys::SilentRanks::whole_node);
  if (lost != ending.silent.end() && (ending.node_first || !ending.first))
    return fmt::format("no exit status from the ranks on {}", lost->host);
  const sys::RankFailure& first = *ending.first;
  return fmt::format("rank {} on {}: {}", first.rank, first.host,
                     first.signal != 0 ? fmt::format("killed by {}", sys::signal_name(first.signal))
                                       : fmt::format("exit status {}", first.exit_status));
}

bool can_restart(const sys::Ending& ending) {
  if (ending.interrupted_by != 0 || sys::ends_programs(ending.passed_on)) return false;
  return ending.first || std::ranges::any_of(ending.silent, &sys::SilentRanks::whole_node);
}

std::string same_fault(const std::vector<Attempt>& attempts) {
  const sys::Ending& now = attempts.back().ending;
  if (!now.first) return "";
  const sys::RankFailure& two = *now.first;
  const std::string place = place_of(two.last_lines);
  const auto same = [&](const Attempt& attempt) {
    const std::optional<sys::RankFailure>& one = attempt.ending.first;
    return one && one->rank == two.rank && one->status() == two.status() &&
           place_of(one->last_lines) == place;
  };
  if (std::none_of(attempts.begin(), attempts.end() - 1, same)) return "";
  return fmt::format(
      "rank {} ended in the same way as before ({}{}): {}", two.rank, failure_text(now),
      place.empty() ? "" : ", " + place,
      two.signal == 0 ? "likely a fault of the program" : "a fault of the program, or of its node");
}

}  // namespace hpclaunch::job
