#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cerrno>
#include <cstring>
#include <utility>

#include "sys/local/job.h"

namespace hpclaunch::sys::local {
namespace {

constexpr int kMostLaunches = 10'000;

// errno of the last mkdir that counts; 0 when `path` is a directory afterwards.
int make_directories(const std::string& path) {
  for (std::size_t slash = path.find('/', 1);; slash = path.find('/', slash + 1)) {
    const std::string part = path.substr(0, slash);
    const int error = mkdir(part.c_str(), 0777) == 0 ? 0 : errno;
    if (slash != std::string::npos) continue;
    struct stat found {};
    if (stat(path.c_str(), &found) != 0) return error;
    return S_ISDIR(found.st_mode) ? 0 : ENOTDIR;
  }
}

std::string log_path(const std::string& directory, int rank, int ranks) {
  const std::size_t width = std::to_string(ranks - 1).size();
  return fmt::format("{}/rank-{:0{}}.log", directory, rank, width);
}

void close_all(const Logs& logs) {
  for (const int file : logs.files) close(file);
}

// All files of `directory`, made new. errno; EEXIST when one of them is there.
int create(const std::string& directory, int ranks, Logs& logs) {
  logs = {directory, {}, {}};
  for (int rank = 0; rank < ranks; ++rank) {
    const std::string path = log_path(directory, rank, ranks);
    const int file = open(path.c_str(), O_WRONLY | O_CREAT | O_EXCL | O_APPEND | O_CLOEXEC, 0666);
    if (file < 0) {
      const int error = errno;
      close_all(logs);
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
    int error = 0;
    if (launch == 1) {
      error = make_directories(place);
    } else if (mkdir(place.c_str(), 0777) != 0) {
      error = errno;
    }
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
