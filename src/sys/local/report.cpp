#include "sys/local/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <csignal>
#include <cstring>

#include "hpclaunch/text.h"

namespace hpclaunch::sys::local {
namespace {

std::string how(const Death& death) {
  if (death.signal == 0) return fmt::format("exit status {}", death.exit_status);
  return fmt::format("{} (signal {}{})", signal_name(death.signal), death.signal,
                     death.core ? ", core dumped" : "");
}

std::string others(const Story& story) {
  std::string text;
  const auto say = [&text](int count, std::string_view what) {
    if (count > 0) text += fmt::format("hpclaunch: {} {}\n", counted(count, "other rank"), what);
  };
  say(story.also_failed, "failed as well");
  say(story.ended, (story.ended == 1 ? "was ended by " : "were ended by ") + story.ended_by);
  return text;
}

}  // namespace

void Tail::add(std::string_view bytes) {
  if (bytes.size() > kBytes) bytes.remove_prefix(bytes.size() - kBytes);
  if (bytes_.size() + bytes.size() > 2 * kBytes) bytes_.erase(0, bytes_.size() - kBytes);
  bytes_ += bytes;
}

std::vector<std::string> Tail::lines(std::size_t count) const {
  std::string_view rest = bytes_;
  if (rest.size() > kBytes) rest.remove_prefix(rest.size() - kBytes);
  while (!rest.empty() && std::strchr("\r\n \t", rest.back()) != nullptr) rest.remove_suffix(1);
  std::vector<std::string> found;
  while (!rest.empty() && found.size() < count) {
    const std::size_t newline = rest.rfind('\n');
    std::string_view line = newline == std::string_view::npos ? rest : rest.substr(newline + 1);
    while (!line.empty() && line.back() == '\r') line.remove_suffix(1);
    const std::size_t bar = line.rfind('\r');
    found.emplace_back(bar == std::string_view::npos ? line : line.substr(bar + 1));
    rest = newline == std::string_view::npos ? std::string_view{} : rest.substr(0, newline);
  }
  std::reverse(found.begin(), found.end());
  return found;
}

bool is_crash(const Death& death) {
  constexpr std::array kCrashes = {SIGKILL, SIGSEGV, SIGABRT, SIGBUS, SIGILL,
                                   SIGFPE,  SIGSYS,  SIGTRAP, SIGXCPU};
  return std::find(kCrashes.begin(), kCrashes.end(), death.signal) != kCrashes.end();
}

bool explains_better(const Death& later, const Death& first) {
  if (is_crash(later) != is_crash(first)) return is_crash(later);
  return later.rank < first.rank;
}

std::string signal_name(int signal) {
  if (const char* name = sigabbrev_np(signal)) return fmt::format("SIG{}", name);
  if (signal >= SIGRTMIN && signal <= SIGRTMAX) {
    return fmt::format("SIGRTMIN+{}", signal - SIGRTMIN);
  }
  return fmt::format("signal {}", signal);
}

std::string failure_report(const Story& story) {
  const Death& first = story.first;
  std::string text =
      fmt::format("hpclaunch: rank {}{}: host {}, pid {}, {}, {:.1f} s after start\n", first.rank,
                  story.ranks == 1 ? " failed" : " failed first", story.host, first.pid, how(first),
                  first.seconds);
  if (story.passed_on != 0) {
    text += fmt::format("hpclaunch: {} had been passed on to the ranks\n",
                        signal_name(story.passed_on));
  }
  if (!story.last_lines.empty()) {
    text += fmt::format("hpclaunch: last output of rank {}:\n", first.rank);
    for (const std::string& line : story.last_lines) text += fmt::format("  | {}\n", line);
  }
  if (!story.log.empty()) text += fmt::format("hpclaunch: all its output: {}\n", story.log);
  return text + others(story);
}

}  // namespace hpclaunch::sys::local
