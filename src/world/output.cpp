// What commands print, their exit statuses, and the files that the user names for output.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <limits>

#include "hpclaunch/session.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

Error cannot_write(const std::string& option, const std::string& path, int error, ErrorKind kind) {
  return Error{kind, fmt::format("{}: cannot write {}: {}", option, path, std::strerror(error)),
               "choose a file in a writable directory"};
}

std::string temporary(const std::string& path) { return fmt::format("{}.{}.new", path, getpid()); }

// errno, or 0 when all of it is in the new file.
int write_new(const std::string& path, const std::string& text, unsigned mode) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, mode);
  if (file < 0) return errno;
  int error = sys::write_all(file, text) ? 0 : errno;
  if (close(file) != 0 && error == 0) error = errno;
  return error;
}

// A message of ours, in one line but on a terminal that is narrower.
std::string said(const Session& session, std::string_view text) {
  Style style;
  style.width = session.err_columns.value_or(std::numeric_limits<int>::max());
  return paragraph("hpclaunch: ", text, style);
}

}  // namespace

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
    place = place_text(error.where);
    if (!error.where->pointer.empty()) place += fmt::format(" ({})", error.where->pointer);
    if (place == "<command line>") place.clear();
    if (!place.empty()) place += ": ";
  }
  std::string text = said(session, place + error.message);
  if (!error.hint.empty()) text += said(session, "try: " + error.hint);
  std::fputs(text.c_str(), session.err);
  return exit_status(error.kind, session.exit_rules);
}

int report(Session& session, const std::vector<Diagnostic>& diagnostics) {
  std::string text;
  for (const Diagnostic& diagnostic : diagnostics) {
    text += said(session, fmt::format("{}: {} [{}]", to_string(diagnostic.severity),
                                      diagnostic.message, diagnostic.id));
    if (!diagnostic.fix.empty()) text += said(session, "try: " + diagnostic.fix);
  }
  std::fputs(text.c_str(), session.err);
  return session.err_columns ? static_cast<int>(std::ranges::count(text, '\n')) : 0;
}

Style line_style(const Session& session) {
  Style style = session.style;
  style.width = session.columns.value_or(std::numeric_limits<int>::max());
  return style;
}

bool print(Session& session, const std::string& text) {
  const bool written = std::fwrite(text.data(), 1, text.size(), session.out) == text.size();
  if (written && std::fflush(session.out) == 0) return true;
  if (errno != EPIPE)
    std::fprintf(session.err, "hpclaunch: cannot write the output: %s\n", std::strerror(errno));
  return false;
}

int print_all(Session& session, const std::string& text) {
  return print(session, text) ? 0 : exit_status(ErrorKind::system, session.exit_rules);
}

Status check_file(const std::string& option, const std::string& path) {
  struct stat found {};
  const std::string target = sys::real_path(path);
  if (stat(target.c_str(), &found) == 0 && !S_ISREG(found.st_mode))
    return Error{ErrorKind::usage, fmt::format("{}: {} is not a regular file", option, path),
                 "name a file; it is created or replaced"};
  const std::string attempt = temporary(target);
  const int error = write_new(attempt, "", S_IRUSR | S_IWUSR);
  if (error != EEXIST) unlink(attempt.c_str());
  if (error != 0) return cannot_write(option, path, error, ErrorKind::usage);
  return Done{};
}

Status write_file(const std::string& option, const std::string& path, const std::string& text,
                  unsigned mode) {
  const std::string target = sys::real_path(path);
  const std::string fresh = temporary(target);
  int error = write_new(fresh, text, mode);
  if (error == 0 && rename(fresh.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return Done{};
  unlink(fresh.c_str());
  return cannot_write(option, path, error, ErrorKind::system);
}

}  // namespace hpclaunch::job
