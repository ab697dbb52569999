// What the commands of batch systems print about the time left.
#include <algorithm>

#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {

namespace {

std::optional<TimeLeft> left(std::optional<long> seconds, std::string since = "") {
  if (!seconds) return std::nullopt;
  return TimeLeft{seconds, std::move(since)};
}

}  // namespace

std::string pbs_value(std::string_view text, std::string_view key) {
  std::string value;
  bool found = false;
  for (const std::string_view line : split(text, '\n')) {
    const bool more = line.starts_with('\t');  // of a line that was broken anywhere, at a blank too
    if (found && !more) break;
    if (found) value += line.substr(1);
    if (more) continue;
    const std::size_t start = std::min(line.find_first_not_of(' '), line.size());
    if (!line.substr(start).starts_with(key)) continue;
    const std::string_view rest = line.substr(start + key.size());
    found = trim(rest).starts_with('=');
    if (found) value = rest.substr(rest.find('=') + 1);
  }
  return std::string(trim(value));
}

std::optional<long> parse_duration(std::string_view text) {
  constexpr long kMostDays = 10'000;
  std::string fields(text);
  const std::size_t dash = fields.find('-');
  const bool with_dash = dash < fields.find(':');
  if (with_dash) fields[dash] = ':';
  const std::vector<std::string_view> parts = split(fields, ':');
  if (parts.size() < (with_dash ? 4u : 2u) || parts.size() > 4) return std::nullopt;
  long seconds = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const std::size_t smaller = parts.size() - 1 - i;  // units: 3 for days, 0 for seconds
    const long most = smaller == 3 ? kMostDays : smaller == 2 || i == 0 ? 24 * kMostDays : 59;
    const std::optional<long> number = parse_natural(parts[i], most);
    if (!number || parts[i].empty()) return std::nullopt;
    seconds = seconds * (smaller == 2 ? 24 : 60) + *number;
  }
  return seconds;
}

// flux job timeleft: whole seconds; without a limit UINT_MAX, or "infinity".
std::optional<TimeLeft> flux_time_left(std::string_view text) {
  const std::string_view word = trim(text);
  if (word == "4294967295" || word == "infinity" || word == "inf") return TimeLeft{};
  return left(parse_natural(word.substr(0, word.find('.'))));
}

// squeue -o %L: "1-02:03:04", "59:59", "0:05", "UNLIMITED", "NOT_SET", "INVALID".
std::optional<TimeLeft> slurm_time_left(std::string_view text) {
  const std::string_view word = trim(text);
  if (word == "UNLIMITED") return TimeLeft{};
  return left(parse_duration(word));
}

// qstat -f: Resource_List.walltime, and the start: stime (OpenPBS), start_time (Torque).
// resources_used.walltime is minutes old, so it counts only without those.
std::optional<TimeLeft> pbs_time_left(std::string_view text) {
  const std::string limit = pbs_value(text, "Resource_List.walltime");
  if (limit.empty() && !pbs_value(text, "job_state").empty()) return TimeLeft{};
  std::optional<long> seconds = parse_duration(limit);
  if (!seconds) seconds = parse_natural(limit);
  if (!seconds) return std::nullopt;
  for (const char* key : {"stime", "start_time"})
    if (std::string start = pbs_value(text, key); !start.empty())
      return left(seconds, std::move(start));
  const std::optional<long> used = parse_duration(pbs_value(text, "resources_used.walltime"));
  if (!used) return std::nullopt;
  return TimeLeft{*seconds - *used, ""};
}

// bjobs -o time_left: "1:05 L", hours and minutes; "-" without a limit.
std::optional<TimeLeft> lsf_time_left(std::string_view text) {
  const std::string_view line = trim(text);
  if (line == "-") return TimeLeft{};
  const std::optional<long> minutes = parse_duration(line.substr(0, line.find(' ')));
  if (!minutes) return std::nullopt;
  return TimeLeft{*minutes * 60, ""};
}

}  // namespace hpclaunch
