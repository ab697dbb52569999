#include <fcntl.h>
#include <fmt/format.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <filesystem>

#include "sys/local/job.h"

namespace hpclaunch::sys::local {
namespace {

constexpr int kMostLaunches = 10'000;

// Exclusive unless it is the directory that the user named. errno.
int make_directory(const std::string& path, bool named) {
  std::error_code failed;
  const bool made = named ? (std::filesystem::create_directories(path, failed), true)
                          : std::filesystem::create_directory(path, failed);
  return failed ? failed.value() : made ? 0 : EEXIST;
}

// All files of `directory`, newly created. errno; EEXIST when one of them exists.
int create(const std::string& directory, int ranks, Logs& logs) {
  logs = {directory, {}, {}};
  const std::size_t width = std::to_string(ranks - 1).size();
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string path = fmt::format("{}/rank-{:0{}}.log", directory, rank, width);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) {
      const int error = errno;
      for (const int opened : logs.files) close(opened);
      for (const std::string& made : logs.paths) unlink(made.c_str());
      return error;
    }
    logs.paths.push_back(path);
    logs.files.push_back(file);
  }
  return 0;
}

}  // namespace

Result<Logs> open_logs(const std::string& directory, int ranks) {
  Logs logs;
  if (directory.empty()) return logs;
  for (int launch = 1; launch < kMostLaunches; ++launch) {
    const std::string place = launch == 1 ? directory : fmt::format("{}/{}", directory, launch);
    int error = make_directory(place, launch == 1);
    if (error == 0) error = create(place, ranks, logs);
    if (error == 0) return logs;
    if (error != EEXIST) {
      return Error{ErrorKind::system,
                   fmt::format("cannot create log files in {}: {}", place, std::strerror(error)),
                   "choose another directory with --log-dir"};
    }
  }
  return Error{ErrorKind::system,
               fmt::format("{} contains logs of {} launches", directory, kMostLaunches - 1),
               "choose another directory with --log-dir"};
}

}  // namespace hpclaunch::sys::local
