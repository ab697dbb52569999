#include "job/write_file.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>

#include "hpclaunch/sys.h"

namespace hpclaunch::cli {

namespace {

Error cannot_write(const std::string& option, const std::string& path, int error, ErrorKind kind) {
  return Error{kind, fmt::format("{}: cannot write {}: {}", option, path, std::strerror(error)),
               "name a file in a directory that you may write to"};
}

std::string temporary(const std::string& path) { return fmt::format("{}.{}.new", path, getpid()); }

// errno, or 0 when all of it is in the new file.
int write_new(const std::string& path, const std::string& text) {
  const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_CLOEXEC, 0666);
  if (file < 0) return errno;
  std::size_t done = 0;
  while (done < text.size()) {
    const ssize_t written = write(file, text.data() + done, text.size() - done);
    if (written < 0 && errno == EINTR) continue;
    if (written < 0) break;
    done += static_cast<std::size_t>(written);
  }
  int error = done == text.size() ? 0 : errno;
  if (close(file) != 0 && error == 0) error = errno;
  return error;
}

}  // namespace

Status check_file(const std::string& option, const std::string& path) {
  struct stat found {};
  const std::string target = sys::real_path(path);
  if (stat(target.c_str(), &found) == 0 && !S_ISREG(found.st_mode))
    return Error{ErrorKind::usage, fmt::format("{}: {} is no file", option, path),
                 "name a file; it is made, or replaced as a whole"};
  const std::string attempt = temporary(target);
  const int error = write_new(attempt, "");
  if (error != EEXIST) unlink(attempt.c_str());
  if (error != 0) return cannot_write(option, path, error, ErrorKind::usage);
  return Done{};
}

Status write_file(const std::string& option, const std::string& path, const std::string& text) {
  const std::string target = sys::real_path(path);
  const std::string fresh = temporary(target);
  int error = write_new(fresh, text);
  if (error == 0 && rename(fresh.c_str(), target.c_str()) != 0) error = errno;
  if (error == 0) return Done{};
  unlink(fresh.c_str());
  return cannot_write(option, path, error, ErrorKind::system);
}

}  // namespace hpclaunch::cli
