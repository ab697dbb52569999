#include "start/recorder.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <utility>
#include <vector>

#include "hpclaunch/sys.h"

namespace hpclaunch::job {

namespace {

// The first of them that the plan sets.
std::string value(const Plan& plan, std::initializer_list<const char*> names) {
  for (const char* name : names)
    if (const Setting* setting = plan.find_env(name))
      if (const auto* text = std::get_if<std::string>(&setting->value())) return *text;
  return "";
}

// A file system of other machines may be what hangs.
std::string if_local(std::string path) {
  const bool local = std::ranges::any_of(
      std::initializer_list<const char*>{"/tmp/", "/dev/shm/", "/var/tmp/", "/run/"},
      [&](const char* begin) { return path.starts_with(begin); });
  return local ? path : "";
}

}  // namespace

Recorder::Recorder(const Plan& plan)
    : pipes_(value(plan, {"TORCH_NCCL_DEBUG_INFO_PIPE_FILE", "TORCH_FR_DEBUG_INFO_PIPE_FILE"})),
      dumps_(if_local(value(plan, {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE"}))),
      ranks_(plan.world_size()) {}

void Recorder::ask() {
  asked_ = sys::wall_clock();
  for (int rank = 0; rank < ranks_ && !pipes_.empty(); ++rank) {
    const std::string path = fmt::format("{}{}.pipe", pipes_, rank);
    const int pipe = open(path.c_str(), O_WRONLY | O_NONBLOCK | O_CLOEXEC | O_NOFOLLOW);
    if (pipe < 0) continue;  // not here, or nobody reads it
    sys::write_all(pipe, "1");
    close(pipe);
  }
}

stacks::Sequences Recorder::read() const {
  constexpr std::size_t kMost = 32u << 20;  // bytes of a dump
  std::vector<stacks::Sequences> found;
  for (int rank = 0; rank < ranks_ && !dumps_.empty(); ++rank) {
    const std::string path = fmt::format("{}{}", dumps_, rank);
    struct stat file {};
    if (asked_ == 0 || lstat(path.c_str(), &file) != 0 || !S_ISREG(file.st_mode) ||
        static_cast<double>(file.st_mtim.tv_sec) + 1 < asked_)
      continue;
    const Result<std::string> dump = sys::read_file(path, kMost);
    if (!dump) continue;
    Result<stacks::Sequences> one = stacks::parse_flight_recorder(rank, *dump);
    if (one) found.push_back(*std::move(one));
  }
  return stacks::merged(found);
}

}  // namespace hpclaunch::job
