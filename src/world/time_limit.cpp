// --signal SIGNAL@SECONDS: when the allocation ends, and which signal the ranks get before it.
#include "world/time_limit.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <ctime>

#include "hpclaunch/launch.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

Error bad_signal(const std::string& text, const std::string& what) {
  std::vector<std::string_view> names;
  for (const SignalName& one : kTimeLimitSignals) names.push_back(one.name);
  return Error{ErrorKind::usage, fmt::format("--signal {}: {}", text, what),
               fmt::format("--signal USR1@300 (signals: {}; seconds before the end)",
                           fmt::join(names, ", "))};
}

// The names that sbatch and kill accept, in any case.
std::optional<int> signal_number(std::string name) {
  for (char& c : name)
    if (c >= 'a' && c <= 'z') c = static_cast<char>(c - 'a' + 'A');
  if (name.starts_with("SIG")) name.erase(0, 3);
  for (const SignalName& one : kTimeLimitSignals)
    if (one.name == name || std::to_string(one.number) == name) return one.number;
  return std::nullopt;
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

Result<AllocationEnd> ask_for_end(const BatchJob& batch, const World& world, long long now) {
  if (batch.scheduler == nullptr || batch.scheduler->time_left == nullptr ||
      batch.scheduler->ask_time_left.empty())
    return Error{ErrorKind::usage, "not in a job of a batch system that reports its end"};
  const std::string name(batch.scheduler->ask_time_left.front());
  Result<sys::Captured> text = sys::Captured{0, batch.said, ""};
  if (batch.said.empty()) text = ask_about_job(batch, world);
  if (!text) return text.error();
  const std::optional<TimeLeft> left = batch.scheduler->time_left(text->out);
  if (left && !left->seconds) return AllocationEnd{std::nullopt, name + ": no limit"};
  const std::optional<long long> from = !left                 ? std::nullopt
                                        : left->since.empty() ? std::optional<long long>(now)
                                                              : c_time(left->since);
  if (!from)
    return Error{ErrorKind::invalid,
                 fmt::format("\"{}\" does not print the end of the job{}{}",
                             fmt::join(batch.scheduler->ask_time_left, " "),
                             text->complaint().empty() ? "" : ": ", text->complaint())};
  const long long at = *from + *left->seconds;
  return AllocationEnd{at, fmt::format("{}: {} s left", name, at - now)};
}

}  // namespace

Result<sys::Captured> ask_about_job(const BatchJob& batch, const World& world) {
  std::vector<std::string> question;
  for (const std::string_view word : batch.scheduler->ask_time_left)
    question.emplace_back(word == "{job}" ? batch.id : word);
  return ask_batch_system(std::move(question), world);
}

std::string utc(long long unix_time) {
  const auto seconds = static_cast<time_t>(unix_time);
  tm parts{};
  gmtime_r(&seconds, &parts);
  return fmt::format("{:04}-{:02}-{:02}T{:02}:{:02}:{:02}Z", parts.tm_year + 1900, parts.tm_mon + 1,
                     parts.tm_mday, parts.tm_hour, parts.tm_min, parts.tm_sec);
}

Result<SignalRequest> parse_signal(const std::string& text) {
  constexpr long kMostSeconds = 30L * 86400;
  SignalRequest wanted;
  const std::size_t at = text.find('@');
  const std::string name = text.substr(0, at);
  if (name.find(':') != std::string::npos)
    return bad_signal(text, "omit the letter and colon before the signal: every rank gets it");
  const std::optional<int> signal = signal_number(name);
  if (!signal) return bad_signal(text, fmt::format("unsupported signal \"{}\"", name));
  wanted.signal = *signal;
  if (at == std::string::npos) return wanted;
  const std::optional<long> seconds = parse_natural(text.substr(at + 1), kMostSeconds);
  if (!seconds || *seconds < 1)
    return bad_signal(text, fmt::format("seconds must be from 1 to {}, not \"{}\"", kMostSeconds,
                                        text.substr(at + 1)));
  wanted.seconds = *seconds;
  return wanted;
}

Result<AllocationEnd> allocation_end(const std::string& ends_in, const World& world,
                                     const BatchJob& batch) {
  const long long now = world.clock();
  if (!ends_in.empty()) {
    const std::optional<long> left = parse_duration(ends_in);
    if (left) return AllocationEnd{now + *left, fmt::format("--ends-in {}", ends_in)};
    return Error{ErrorKind::usage, fmt::format("--ends-in must be HH:MM:SS, not \"{}\"", ends_in),
                 "--ends-in 01:30:00 when an hour and a half is left"};
  }
  if (batch.ends_at)
    return AllocationEnd{*batch.ends_at, std::string(batch.scheduler->end_variable)};
  Result<AllocationEnd> answer = ask_for_end(batch, world, now);
  if (answer) return answer;
  return Error{ErrorKind::usage,
               fmt::format("--signal: end of the allocation unknown: {}", answer.error().message),
               "--ends-in 01:30:00 when an hour and a half is left"};
}

Result<PlannedSignal> plan_signal(const SignalRequest& wanted, const AllocationEnd& end,
                                  long long now, Diagnostics& diagnostics) {
  const std::string name = time_limit_signal_name(wanted.signal);
  if (!end.at) {
    diagnostics.push_back(
        {"signal-never", Severity::warning,
         fmt::format("--signal: the allocation has no time limit ({}); {} is never sent",
                     end.source, name),
         "give the time left with --ends-in HH:MM:SS"});
    return PlannedSignal{};
  }
  const long long left = *end.at - now;
  if (left <= 0)
    return Error{ErrorKind::usage,
                 fmt::format("--signal: the allocation ended at {} ({})", utc(*end.at), end.source),
                 "give the time left with --ends-in HH:MM:SS, or omit --signal"};
  long long before = wanted.seconds;
  if (before >= left) {
    before = left / 2;
    diagnostics.push_back(
        {"signal-late", Severity::warning,
         fmt::format(
             "--signal: only {} s left ({}), {} s requested: {} is sent {} s before the end", left,
             end.source, wanted.seconds, name, before),
         ""});
  }
  PlannedSignal planned;
  planned.signal = {wanted.signal, *end.at - before, 0, *end.at};
  planned.why = fmt::format("sent to every rank at {}, {} s before the allocation ends ({})",
                            utc(planned.signal.at), before, end.source);
  return planned;
}

Result<PlannedSignal> find_signal(const Request& request, const World& world, const BatchJob& batch,
                                  Diagnostics& diagnostics) {
  if (request.signal.empty() && !request.ends_in.empty())
    return Error{ErrorKind::usage, "--ends-in needs --signal", "--signal USR1@300"};
  if (request.signal.empty()) return PlannedSignal{};
  const Result<SignalRequest> wanted = parse_signal(request.signal);
  if (!wanted) return wanted.error();
  const Result<AllocationEnd> end = allocation_end(request.ends_in, world, batch);
  if (!end) return end.error();
  return plan_signal(*wanted, *end, world.clock(), diagnostics);
}

}  // namespace hpclaunch::job
