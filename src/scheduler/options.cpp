// What is asked of a batch system for a job: options in its own words, and the id of the job in its answer.
#include <fmt/format.h>

#include <algorithm>
#include <iterator>
#include <utility>

#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {

namespace {

// A value as directives and shells read it. No system expands variables there.
Result<std::string> quoted(const char* option, const std::string& value) {
  if (consists_of(value, "._-+=/:,@%{}^~")) return value;
  const auto bad = [](char c) {
    return static_cast<unsigned char>(c) < ' ' || c == '\x7f' ||
           std::string_view("\"\\$`'!").find(c) != std::string_view::npos;
  };
  if (std::ranges::none_of(value, bad)) return '"' + value + '"';
  return Error{ErrorKind::usage,
               fmt::format("{} \"{}\" cannot stand in a batch directive", option, shown(value)),
               "write it without quotes, $, `, ! and control characters"};
}

bool is_job_name(std::string_view name) {
  constexpr std::size_t kMost = 230;  // PBS
  return !name.empty() && name.size() <= kMost && consists_of(name, "._-+");
}

struct Wanted {
  const char* option;  // of hpclaunch
  std::string_view directive;
  std::string value;
};

// "-q {}", "--requires", "-l select"
std::string_view option_of(const Wanted& one) {
  return one.directive.substr(0, one.directive.find('='));
}

std::string minutes_of(long seconds, const char* form) {
  const long minutes = (seconds + 59) / 60;
  return fmt::format(fmt::runtime(form), minutes, minutes / 60, minutes % 60);
}

}  // namespace

std::string clock_text(long seconds) {
  return fmt::format("{:02}:{:02}:{:02}", seconds / 3600, seconds / 60 % 60, seconds % 60);
}

std::string minutes_time(long seconds) { return minutes_of(seconds, "{0}m"); }
std::string hours_time(long seconds) { return minutes_of(seconds, "{1}:{2:02}"); }

Result<std::vector<std::string>> job_directives(const Scheduler& scheduler,
                                                const JobOptions& options) {
  const Directives& known = scheduler.directives;
  const std::string own_queue =
      options.queue_option.empty() ? std::string(known.queue) : options.queue_option + " {}";
  const auto number = [](int count, std::string_view directive = "-") {
    return count > 0 && !directive.empty() ? std::to_string(count) : std::string();
  };
  const bool slots = known.nodes.empty();  // it counts them, not nodes
  auto* const time_text = known.time_text != nullptr ? known.time_text : clock_text;
  std::vector<Wanted> all = {
      {"--nodes", known.nodes, slots && options.nodes == 1 ? "" : std::to_string(options.nodes)},
      {"--time", known.time, options.seconds > 0 ? time_text(options.seconds) : ""},
      {"--account", known.account, options.account},
      {"--queue", own_queue, options.queue},
      {"--filesystems", known.filesystems, options.filesystems},
      {"--constraint", known.constraint, options.constraint},
      {"--name", known.name, options.name},
      {"--output", known.output, options.output},
      {"--error", known.error, options.error},
      {"--gpus", known.devices, number(options.devices)},
      {"--cpus-per-rank", known.cpus, number(options.cpus, known.cpus)},
      {"--ranks-per-node", known.ranks, number(options.ranks, known.ranks)},
      {"--mem", known.memory, options.memory},
      {"--dependency", known.dependency, options.dependency},
      {"--array", known.array, options.array},
      {"--reservation", known.reservation, options.reservation},
      {"--exclude", known.exclude, options.exclude},
      {"--mail", known.mail, options.mail}};
  if (!options.name.empty() && !is_job_name(options.name))
    return Error{ErrorKind::usage,
                 fmt::format("--name \"{}\" cannot name a job", shown(options.name)),
                 "use letters, digits, '.', '_', '-' and '+'"};
  if (!options.account.empty() && trim(options.account).empty())
    return Error{ErrorKind::usage, "--account is blank", "-A ACCOUNT"};
  for (Wanted& one : all) {
    if (one.value.empty()) continue;
    if (one.directive.empty())
      return Error{ErrorKind::unsupported,
                   fmt::format("{} has no directive for {} {}", scheduler.title, one.option,
                               shown(one.value)),
                   fmt::format("omit {}, or use --batch OPTION", one.option)};
    const auto same = std::ranges::find_if(all, [&](const Wanted& other) {
      return !other.value.empty() && option_of(other) == option_of(one);
    });
    if (&*same != &one)
      return Error{
          ErrorKind::unsupported,
          fmt::format("{} takes one of {} and {}", scheduler.title, same->option, one.option),
          "omit one of them"};
    Wanted* const whole = one.directive.starts_with(':')   ? &all[0]
                          : one.directive.starts_with('[') ? &all[6]
                                                           : nullptr;
    if (whole == nullptr) continue;
    whole->value += fmt::format(fmt::runtime(one.directive), std::exchange(one.value, ""));
  }
  std::vector<std::string> made;
  for (const auto& [option, directive, value] : all) {
    if (value.empty()) continue;
    const Result<std::string> word = quoted(option, value);
    if (!word) return word.error();
    made.push_back(fmt::format(fmt::runtime(directive), *word));
  }
  for (const std::string& one : options.batch)
    if (std::ranges::any_of(one, [](char c) { return static_cast<unsigned char>(c) < ' '; }) ||
        trim(one).empty())
      return Error{
          ErrorKind::usage,
          fmt::format("--batch \"{}\" is not an option of {}", shown(one), scheduler.title),
          "write it as in a script of yours: --batch=--comment=mine"};
  return made;
}

Status check_memory(const std::string& text) {
  constexpr long kMost = 1'000'000'000;
  const std::string_view unit = text.empty() ? "" : std::string_view(text).substr(text.size() - 1);
  const auto number = parse_natural(text.substr(0, text.size() - unit.size()), kMost);
  if (number && *number > 0 && std::string_view("KMGT").find(unit) != std::string_view::npos)
    return Done{};
  return Error{ErrorKind::usage,
               fmt::format("--mem must be a size of each node's memory, not \"{}\"", shown(text)),
               "--mem 64G, with K, M, G or T"};
}

// "90", "1.5" of units of `size` seconds.
static std::optional<long> amount(std::string_view text, long size, long most) {
  constexpr long kTens[] = {1, 10, 100, 1000};
  const std::size_t point = text.find('.');
  const std::string_view fraction = point == text.npos ? "0" : text.substr(point + 1);
  const auto number = parse_natural(text.substr(0, point), most / size);
  const auto part = parse_natural(fraction, 999);
  if (!number || !part || point == 0 || text.empty() || fraction.empty() || fraction.size() > 3)
    return std::nullopt;
  return *number * size + (point == text.npos ? 0 : *part * size / kTens[fraction.size()]);
}

Result<long> parse_time_limit(const std::string& text) {
  constexpr long kMost = 10'000L * 86'400;
  constexpr std::pair<char, long> kUnits[] = {{'d', 86'400}, {'h', 3'600}, {'m', 60}, {'s', 1}};
  const auto colons = std::ranges::count(text, ':');
  const bool days = text.find('-') != std::string::npos && colons < 2;  // "1-12:00": no seconds
  const std::string whole = days ? text + (colons == 1 ? ":00" : ":00:00") : text;
  const bool is_clock = days || colons == 2;
  if (const auto clock = is_clock ? parse_duration(whole) : std::nullopt; clock && *clock > 0)
    return *clock;
  long seconds = 0;
  std::size_t at = 0;
  for (const auto& [unit, size] : kUnits) {
    const std::size_t end = text.find(unit, at);
    if (end == std::string::npos) continue;
    const auto part = amount(std::string_view(text).substr(at, end - at), size, kMost);
    if (!part) break;
    seconds += *part;
    at = end + 1;
  }
  if (at == text.size() && seconds > 0 && seconds <= kMost) return seconds;
  std::string meant = "--time 1:30:00, 90m or 1h30m";
  if (parse_natural(text, kMost))
    meant = fmt::format("--time {0}m for minutes, {0}s for seconds", text);
  if (colons == 1 && parse_duration(text))
    meant = fmt::format("--time 0:{0} for minutes and seconds, {0}:00 for hours and minutes", text);
  return Error{ErrorKind::usage,
               fmt::format("--time must be H:MM:SS or have units, not \"{}\"", shown(text)), meant};
}

std::string submitted_job(std::string_view output) {
  std::vector<std::string_view> lines = split(output, '\n');
  for (; !lines.empty(); lines.pop_back()) {
    std::string_view id = trim(lines.back());
    if (const std::size_t open = id.find('<'); open != std::string_view::npos)
      id = id.substr(open + 1, id.find('>', open) - open - 1);
    id = id.substr(0, id.find(';'));
    const bool number = !id.empty() && ((id.front() >= '0' && id.front() <= '9') ||
                                        id.front() == 'f' || id.starts_with("\u0192"));
    if (number && id.find_first_of(" \t") == std::string_view::npos) return std::string(id);
  }
  return "";
}

}  // namespace hpclaunch
