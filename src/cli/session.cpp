#include "cli/session.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace hpclaunch::cli {

int exit_status(ErrorKind kind, ExitRules rules) {
  constexpr int kReportFailed = 2;
  constexpr int kLaunchFailed = 125;
  constexpr int kNotExecutable = 126;
  constexpr int kNotFound = 127;
  if (rules == ExitRules::report) return kReportFailed;
  if (kind == ErrorKind::program_not_found) return kNotFound;
  if (kind == ErrorKind::not_executable) return kNotExecutable;
  return kLaunchFailed;
}

int report(Session& session, const Error& error) {
  std::string place;
  if (error.where) {
    place = error.where->file;
    if (error.where->line > 0) place += fmt::format(":{}", error.where->line);
    if (error.where->column > 0) place += fmt::format(":{}", error.where->column);
    if (!error.where->pointer.empty()) place += fmt::format(" ({})", error.where->pointer);
    if (place == "<command line>") place.clear();
    if (!place.empty()) place += ": ";
  }
  std::string text = fmt::format("hpclaunch: {}{}\n", place, error.message);
  if (!error.hint.empty()) text += fmt::format("hpclaunch: try: {}\n", error.hint);
  std::fputs(text.c_str(), session.err);
  return exit_status(error.kind, session.exit_rules);
}

void report(Session& session, const std::vector<Diagnostic>& diagnostics) {
  for (const Diagnostic& diagnostic : diagnostics) {
    std::string text = fmt::format("hpclaunch: {}: {} [{}]\n", to_string(diagnostic.severity),
                                   diagnostic.message, diagnostic.id);
    if (!diagnostic.fix.empty()) text += fmt::format("hpclaunch: try: {}\n", diagnostic.fix);
    std::fputs(text.c_str(), session.err);
  }
}

bool print(Session& session, const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), session.out) == text.size();
  if (written && std::fflush(session.out) == 0) return true;
  if (errno != EPIPE)
    std::fprintf(session.err, "hpclaunch: cannot write the output: %s\n", std::strerror(errno));
  return false;
}

}  // namespace hpclaunch::cli
