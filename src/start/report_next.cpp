// `hpclaunch report`: the one next command.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/render.h"
#include "hpclaunch/secret.h"
#include "hpclaunch/text.h"
#include "start/report_values.h"

namespace hpclaunch::job::report_values {

namespace {

// Lines of a shell that together are the command; empty where it is too long.
Lines command_lines(const Lines& words) {
  constexpr std::size_t kMost = 3;
  Lines lines = {""};
  for (const std::string& word : words) {
    const std::string quoted = quote_sh(word);
    const std::size_t end = lines.back().size() + quoted.size() + 3;  // a blank, and " \"
    if (!lines.back().empty() && end > kRoom) {
      lines.back() += " \\";
      lines.push_back("  " + quoted);
    } else {
      lines.back() += (lines.back().empty() ? "" : " ") + quoted;
    }
    if (lines.back().size() > kRoom - 2) return {};
  }
  return lines.size() > kMost ? Lines{} : lines;
}

// Behind hpclaunch's own words: at "--", or at the program.
Lines::iterator own_end(Lines& words, const Json& record) {
  const auto name = [](const std::string& path) { return path.substr(path.rfind('/') + 1); };
  const Lines command = texts_of(record, "command");
  const auto end = std::ranges::find(words, "--");
  if (end != words.end() || command.empty()) return end;
  return std::ranges::find(words, name(command.front()), name);
}

// Takes the option and its value out of the words. The value of the last one; "" where there is none.
std::string take_option(Lines& words, const Json& record, const std::string& option) {
  std::string value;
  for (auto at = words.begin(); at != own_end(words, record);) {
    if (at->starts_with(option + "="))
      value = at->substr(option.size() + 1);
    else if (*at == option && at + 1 != words.end())
      value = *(at = words.erase(at));
    else {
      ++at;
      continue;
    }
    at = words.erase(at);
  }
  return value;
}

// The same launch with more options.
Lines again(const Json& record, Lines more) {
  Lines words = texts_of(record, "typed");
  // A secret is hidden; what is not printed as it is would be another program.
  const auto hidden = [](const std::string& word) { return word.find(kHidden) != word.npos; };
  if (words.empty() || words.front() != "run" || std::ranges::any_of(words, hidden) ||
      at(record, "typed") != Json(words))
    return {fmt::format("hpclaunch run {} ..., with the rest as before", fmt::join(more, " "))};
  // What was too late comes earlier.
  constexpr const char* kSignal = "--signal";
  if (const std::string old = more.front() == kSignal ? take_option(words, record, kSignal) : "";
      !old.empty()) {
    constexpr long kUsual = 300, kMost = 86'400;  // s
    const std::size_t end = std::min(old.find('@'), old.size());
    const long before =
        end == old.size() ? kUsual : parse_natural(old.substr(end + 1), kMost).value_or(kUsual);
    more.back() = fmt::format("{}@{}", old.substr(0, end), 2 * before);
  }
  words.insert(words.begin() + 1, more.begin(), more.end());
  words.insert(words.begin(), "hpclaunch");
  Lines lines = command_lines(words);
  if (lines.empty())
    return {fmt::format("hpclaunch run {} ..., with the rest as before", fmt::join(more, " "))};
  return lines;
}

}  // namespace

Lines next(const Json& record) {
  if (const Json& error = at(record, "error"); error.is_object()) {
    const std::string hint = text_of(error, "hint");
    return hint.empty() ? Lines{} : Lines{hint};
  }
  if (number_of(record, "status") == 0) return {};
  const Json& lost = at(record, "lost");
  if (lost.is_array() && !lost.empty()) return again(record, {"--preflight"});
  if (at(record, "time_limit") == true) return again(record, {"--signal", "TERM@300"});
  const Json& failure = at(record, "first_failure");
  if (!failure.is_object() && number_of(record, "status") == kOutputLost) return {"df -h ."};
  if (!failure.is_object())
    return text_of(record, "interrupted_by").empty() ? again(record, {"--preflight"}) : Lines{};
  const std::string signal = text_of(failure, "signal");
  const bool crash = signal == "SIGSEGV" || signal == "SIGABRT" || signal == "SIGBUS" ||
                     signal == "SIGILL" || signal == "SIGFPE";
  if (crash && !at(failure, "where").is_object())
    return again(record, {"--set", "PYTHONFAULTHANDLER=1"});
  if (const std::string log = text_of(failure, "log"); !log.empty())
    return command_lines({"less", "+G", log});
  return again(record, {"--log-dir", "logs"});
}

}  // namespace hpclaunch::job::report_values
