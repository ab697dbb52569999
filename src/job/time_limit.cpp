#include "job/time_limit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "job/hosts.h"

namespace hpclaunch::cli {

namespace {

constexpr long kMostSeconds = 30L * 86400;
constexpr double kAskSeconds = 20;

Error bad_signal(const std::string& text, const std::string& what) {
  std::vector<std::string_view> names;
  for (const SignalName& one : kTimeLimitSignals) names.push_back(one.name);
  return Error{ErrorKind::usage, fmt::format("--signal: {} in \"{}\"", what, text),
               fmt::format("--signal USR1@300: one of {}, and how many seconds before the end",
                           fmt::join(names, ", "))};
}

// The names that sbatch and kill take, in any case.
std::optional<int> signal_from(std::string name) {
  std::transform(name.begin(), name.end(), name.begin(), [](char c) {
    return c >= 'a' && c <= 'z' ? static_cast<char>(c - 'a' + 'A') : c;
  });
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (const SignalName& one : kTimeLimitSignals)
    if (one.name == name || std::to_string(one.number) == name) return one.number;
  return std::nullopt;
}

using Reader = std::optional<TimeLeft> (*)(std::string_view text, long long now);

struct Answer {
  TimeLeft left;
  std::string who;
};

// What one program of a batch system says; an error when it says nothing that can be used.
Result<Answer> ask(const std::vector<std::string>& question, const EnvSnapshot& env, Reader reader,
                   long long now) {
  const Result<std::string> path = sys::find_program(question.front(), env.get("PATH"));
  if (!path) return path.error();
  std::vector<std::string> argv = question;
  argv.front() = *path;
  const Result<std::string> text = sys::capture(argv, kAskSeconds);
  if (!text) return text.error();
  const std::optional<TimeLeft> left = reader(*text, now);
  if (!left)
    return Error{ErrorKind::invalid,
                 fmt::format("\"{}\" does not say when the job ends", fmt::join(question, " "))};
  const std::string said =
      left->seconds ? fmt::format("{} s left", *left->seconds) : std::string("no limit");
  return Answer{*left, fmt::format("{} says: {}", question.front(), said)};
}

Result<Answer> ask_batch_system(const EnvSnapshot& env, long long now) {
  if (env.has("FLUX_URI"))
    return ask(
        {"flux", "job", "timeleft"}, env,
        [](std::string_view text, long long) { return flux_left(text); }, now);
  if (const std::string job = env.get("SLURM_JOB_ID"); !job.empty() && !pbs_names_nodes(env))
    return ask(
        {"squeue", "-h", "-j", job, "-o", "%L"}, env,
        [](std::string_view text, long long) { return squeue_left(text); }, now);
  if (const std::string job = env.get("PBS_JOBID"); !job.empty())
    return ask({"qstat", "-f", job}, env, qstat_left, now);
  if (const std::string job = env.get("LSB_JOBID"); !job.empty())
    return ask(
        {"bjobs", "-noheader", "-o", "time_left", job}, env,
        [](std::string_view text, long long) { return bjobs_left(text); }, now);
  return Error{ErrorKind::usage, "this is no batch job whose end could be asked for"};
}

std::string value_of(std::string_view text, std::string_view key) {
  for (const std::string_view line : split(text, '\n')) {
    const std::string_view trimmed = trim(line);
    if (!trimmed.starts_with(key)) continue;
    const std::string_view rest = trim(trimmed.substr(key.size()));
    if (rest.starts_with('=')) return std::string(trim(rest.substr(1)));
  }
  return {};
}

// "Sat Nov 21 13:12:27 2026", in the time zone of this host, as PBS prints it.
std::optional<long long> c_time(const std::string& text) {
  tm parts{};
  parts.tm_isdst = -1;
  const char* end = strptime(text.c_str(), "%a %b %d %H:%M:%S %Y", &parts);
  if (end == nullptr || *end != '\0') return std::nullopt;
  const time_t at = mktime(&parts);
  if (at == static_cast<time_t>(-1)) return std::nullopt;
  return at;
}

}  // namespace

std::string utc(long long unix_time) {
  const auto seconds = static_cast<time_t>(unix_time);
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Result<NoticeWish> parse_notice(const std::string& text) {
  NoticeWish wish;
  const std::size_t at = text.find('@');
  const std::string name = text.substr(0, at);
  if (name.find(':') != std::string::npos)
    return bad_signal(text, "hpclaunch sends it to every rank, which needs no letter");
  const std::optional<int> signal = signal_from(name);
  if (!signal) return bad_signal(text, fmt::format("\"{}\" cannot be a notice", name));
  wish.signal = *signal;
  if (at == std::string::npos) return wish;
  const std::optional<long> seconds = parse_natural(text.substr(at + 1), kMostSeconds);
  if (!seconds || *seconds < 1)
    return bad_signal(text, fmt::format("\"{}\" is no number of seconds from 1 to {}",
                                        text.substr(at + 1), kMostSeconds));
  wish.seconds = *seconds;
  return wish;
}

std::optional<long> parse_duration(std::string_view text) {
  constexpr long kMostDays = 10'000;
  long days = 0;
  bool with_days = false;
  if (const std::size_t dash = text.find('-'); dash != std::string_view::npos) {
    const std::optional<long> found = parse_natural(text.substr(0, dash), kMostDays);
    if (!found) return std::nullopt;
    days = *found;
    with_days = true;
    text.remove_prefix(dash + 1);
  }
  std::vector<std::string_view> parts = split(text, ':');
  if (parts.size() == 4 && !with_days) {
    const std::optional<long> found = parse_natural(parts.front(), kMostDays);
    if (!found) return std::nullopt;
    days = *found;
    with_days = true;
    parts.erase(parts.begin());
  }
  if (parts.size() > 3 || parts.size() < (with_days ? 3u : 2u)) return std::nullopt;
  long seconds = 0;
  for (std::size_t i = 0; i < parts.size(); ++i) {
    const long most = i == 0 ? 24 * kMostDays : 59;
    const std::optional<long> number = parse_natural(parts[i], most);
    if (!number || parts[i].empty()) return std::nullopt;
    seconds = seconds * 60 + *number;
  }
  return days * 86400 + seconds;
}

// squeue -o %L: "1-02:03:04", "59:59", "0:05", "UNLIMITED", "NOT_SET", "INVALID".
std::optional<TimeLeft> squeue_left(std::string_view text) {
  const std::string_view word = trim(text);
  if (word == "UNLIMITED") return TimeLeft{};
  const std::optional<long> seconds = parse_duration(word);
  if (!seconds) return std::nullopt;
  return TimeLeft{seconds};
}

// flux job timeleft: whole seconds, or "infinity".
std::optional<TimeLeft> flux_left(std::string_view text) {
  const std::string_view word = trim(text);
  if (word == "infinity" || word == "inf") return TimeLeft{};
  const std::optional<long> seconds = parse_natural(word.substr(0, word.find('.')));
  if (!seconds) return std::nullopt;
  return TimeLeft{seconds};
}

// qstat -f: Resource_List.walltime, and when it began: stime (OpenPBS), start_time (Torque). What
// resources_used.walltime says is minutes old, so it is only what is left without those.
std::optional<TimeLeft> qstat_left(std::string_view text, long long now) {
  const std::string limit = value_of(text, "Resource_List.walltime");
  std::optional<long> seconds = parse_duration(limit);
  if (!seconds) seconds = parse_natural(limit);
  if (!seconds) return std::nullopt;
  for (const char* key : {"stime", "start_time"})
    if (const std::optional<long long> began = c_time(value_of(text, key)))
      return TimeLeft{static_cast<long>(*began - now) + *seconds};
  const std::optional<long> used = parse_duration(value_of(text, "resources_used.walltime"));
  if (!used) return std::nullopt;
  return TimeLeft{*seconds - *used};
}

// bjobs -o time_left: "1:05 L", hours and minutes; "-" without a limit.
std::optional<TimeLeft> bjobs_left(std::string_view text) {
  const std::string_view line = trim(text);
  if (line == "-") return TimeLeft{};
  const std::optional<long> minutes = parse_duration(line.substr(0, line.find(' ')));
  if (!minutes) return std::nullopt;
  return TimeLeft{*minutes * 60};
}

Result<AllocationEnd> allocation_end(const std::string& ends_in, const EnvSnapshot& env,
                                     long long now) {
  if (!ends_in.empty()) {
    const std::optional<long> left = parse_duration(ends_in);
    if (!left)
      return Error{ErrorKind::usage, fmt::format("--ends-in: \"{}\" is no HH:MM:SS", ends_in),
                   "the time that is left, for an hour and a half: --ends-in 01:30:00"};
    return AllocationEnd{now + *left, fmt::format("--ends-in {}", ends_in)};
  }
  if (!env.has("FLUX_URI") && !pbs_names_nodes(env))
    if (const auto at = parse_natural(env.get("SLURM_JOB_END_TIME"), 100'000'000'000))
      return AllocationEnd{*at, "SLURM_JOB_END_TIME says so"};
  Result<Answer> answer = ask_batch_system(env, now);
  if (!answer)
    return Error{
        ErrorKind::usage,
        fmt::format("--signal: when the allocation ends is not known: {}", answer.error().message),
        "type the time that is left, for an hour and a half: --ends-in 01:30:00"};
  AllocationEnd end;
  if (answer->left.seconds) end.at = now + *answer->left.seconds;
  end.who = std::move(answer->who);
  return end;
}

Result<PlannedNotice> plan_notice(const NoticeWish& wish, const AllocationEnd& end, long long now,
                                  std::vector<Diagnostic>& diagnostics) {
  const std::string name = time_limit_signal_name(wish.signal);
  if (!end.at) {
    diagnostics.push_back(
        {"notice-never", Severity::warning,
         fmt::format("--signal: the allocation has no end ({}), so {} is never sent", end.who,
                     name),
         "type the time that is left with --ends-in HH:MM:SS"});
    return PlannedNotice{};
  }
  const long long left = *end.at - now;
  if (left <= 0)
    return Error{
        ErrorKind::usage,
        fmt::format("--signal: the allocation has ended at {} ({})", utc(*end.at), end.who),
        "type the time that is left with --ends-in HH:MM:SS, or leave out --signal"};
  long long before = wish.seconds;
  if (before >= left) {
    before = left / 2;
    diagnostics.push_back(
        {"notice-late", Severity::warning,
         fmt::format("--signal: the allocation ends in {} s ({}), sooner than {} s before the end: "
                     "{} is sent {} s before it",
                     left, end.who, wish.seconds, name, before),
         ""});
  }
  PlannedNotice planned;
  planned.notice = {wish.signal, *end.at - before};
  planned.why = fmt::format("sent to every rank at {}, {} s before the allocation ends: {}",
                            utc(planned.notice.at), before, end.who);
  return planned;
}

Result<PlannedNotice> find_notice(const Request& args, const EnvSnapshot& env,
                                  std::vector<Diagnostic>& diagnostics) {
  if (args.signal.empty()) {
    if (!args.ends_in.empty())
      return Error{ErrorKind::usage, "--ends-in says when --signal is sent, and there is none",
                   "--signal USR1@300"};
    return PlannedNotice{};
  }
  const Result<NoticeWish> wish = parse_notice(args.signal);
  if (!wish) return wish.error();
  const long long now = time(nullptr);
  const Result<AllocationEnd> end = allocation_end(args.ends_in, env, now);
  if (!end) return end.error();
  return plan_notice(*wish, *end, now, diagnostics);
}

}  // namespace hpclaunch::cli
