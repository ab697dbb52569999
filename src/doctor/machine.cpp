// File systems and what the shell has left.
#include <fcntl.h>
#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>
#include <set>

#include "doctor/examination.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace fs = std::filesystem;

namespace {

constexpr unsigned long long kMiB = 1ull << 20;

// 0, or errno: whether a file of some blocks can be written below `folder`.
int try_writing(const std::string& folder) {
  const std::string path = fmt::format("{}/.hpclaunch-doctor-{}", folder, getpid());
  const int file = open(path.c_str(), O_CREAT | O_EXCL | O_WRONLY | O_CLOEXEC, 0600);
  if (file < 0) return errno;
  const std::string block(64u << 10, 'x');
  errno = 0;
  const bool written = sys::write_all(file, block) && fsync(file) == 0;
  const int failed = written ? 0 : errno;
  close(file);
  unlink(path.c_str());
  return failed;
}

void examine_shared_memory(Examination& doctor) {
  constexpr unsigned long long kLeast =
      64 * kMiB;  // as podman's default, which is known to be too small
  struct statvfs found {};
  if (statvfs("/dev/shm", &found) != 0)
    return doctor.fault("shared memory", Severity::error, "no-shared-memory",
                        fmt::format("/dev/shm: {}", std::strerror(errno)),
                        "in a container: mount the host's /dev/shm");
  const unsigned long long free = static_cast<unsigned long long>(found.f_bavail) * found.f_frsize;
  const unsigned long long size = static_cast<unsigned long long>(found.f_blocks) * found.f_frsize;
  if (free < kLeast)
    return doctor.fault(
        "shared memory", Severity::error, "shared-memory-full",
        fmt::format("/dev/shm has {} free of {}: NCCL and workers of DataLoader fail",
                    human_bytes(free), human_bytes(size)),
        size < 2 * kLeast ? "in a container: mount the host's /dev/shm"
                          : "remove what dead jobs have left in /dev/shm");
  doctor.sound("shared memory",
               fmt::format("/dev/shm: {} free of {}", human_bytes(free), human_bytes(size)));
}

void examine_home(Examination& doctor) {
  const std::string home = doctor.env().get("HOME");
  std::error_code ignored;
  if (home.empty() || !fs::is_directory(home, ignored))
    return doctor.fault(
        "home", Severity::warning, "no-home",
        home.empty() ? "HOME is not set" : fmt::format("HOME {} is not there", home),
        "export HOME with a directory that exists");
  const int failed = try_writing(home);
  if (failed == EDQUOT || failed == ENOSPC)
    return doctor.fault(
        "home", Severity::error, "home-full",
        fmt::format("{} cannot be written: {}", home, std::strerror(failed)),
        "free space there, and set HF_HOME, TORCH_HOME, TRITON_CACHE_DIR, PIP_CACHE_DIR "
        "to another file system");
  if (failed != 0)
    return doctor.fault(
        "home", Severity::note, "home-read-only",
        fmt::format("{} cannot be written: {}", home, std::strerror(failed)),
        "caches below it need another place: HF_HOME, TORCH_HOME, TRITON_CACHE_DIR");
  doctor.sound("home", fmt::format("{} can be written", home));
}

// TMPDIR is often inherited from a login node, or from a job that is over.
void examine_temporary(Examination& doctor) {
  const std::string folder = doctor.env().get("TMPDIR");
  if (folder.empty()) return;
  std::error_code ignored;
  const int failed = fs::is_directory(folder, ignored) ? try_writing(folder) : ENOENT;
  if (failed != 0)
    return doctor.fault("TMPDIR", Severity::error, "no-tmpdir",
                        fmt::format("{}: {}: Python's multiprocessing and compilers fail", folder,
                                    std::strerror(failed)),
                        "unset TMPDIR, or a folder of this node");
  doctor.sound("TMPDIR", folder);
}

void examine_caches(Examination& doctor) {
  for (const char* name :
       {"HF_HOME", "TORCH_HOME", "TRITON_CACHE_DIR", "TORCHINDUCTOR_CACHE_DIR", "CUDA_CACHE_PATH",
        "MIOPEN_USER_DB_PATH", "MIOPEN_CUSTOM_CACHE_DIR", "XDG_CACHE_HOME"}) {
    fs::path folder = doctor.env().get(name);
    if (folder.empty() || folder.is_relative()) continue;
    std::error_code ignored;
    while (!fs::exists(folder, ignored) && folder.has_relative_path())
      folder = folder.parent_path();
    if (access(folder.c_str(), W_OK) == 0) continue;
    doctor.fault("caches", Severity::warning, "cache-unusable",
                 fmt::format("{}={} cannot be made or written: {}: {}", name,
                             doctor.env().get(name), folder.string(), std::strerror(errno)),
                 fmt::format("export {} with a folder that you may write", name));
  }
}

// What the loader is told for every program.
void examine_loader_paths(Examination& doctor) {
  const std::string preloads = replaced(doctor.env().get("LD_PRELOAD"), {{' ', ":"}});
  std::error_code ignored;
  for (const std::string_view one : split(preloads, ':'))
    if (one.starts_with('/') && !fs::exists(one, ignored))
      doctor.fault("loader", Severity::warning, "preload-missing",
                   fmt::format("LD_PRELOAD names {}, which is not there", one),
                   "unset LD_PRELOAD, or load the module that it is from");
  const std::string path = doctor.env().get("LD_LIBRARY_PATH");
  const std::vector<std::string_view> folders = split(path, ':');
  if (!path.empty() && std::ranges::count(folders, std::string_view()) > 0)
    doctor.fault("loader", Severity::note, "library-path-here",
                 "LD_LIBRARY_PATH has an empty entry, which is the current folder",
                 "export LD_LIBRARY_PATH=NEW${LD_LIBRARY_PATH:+:$LD_LIBRARY_PATH}");
}

void examine_modules(Examination& doctor) {
  const std::string names = doctor.env().get("LOADEDMODULES");
  const std::string files = doctor.env().get("_LMFILES_");
  std::vector<std::string> gone;
  std::error_code ignored;
  for (const std::string_view file : split(files, ':'))
    if (!file.empty() && !fs::exists(file, ignored)) gone.emplace_back(file);
  if (!gone.empty())
    return doctor.fault("modules", Severity::warning, "stale-module",
                        fmt::format("loaded, but no longer there: {}", fmt::join(gone, ", ")),
                        "log in anew, and load the modules of today");
  if (!names.empty()) doctor.sound("modules", replaced(names, {{':', " "}}));
}

void examine_installations(Examination& doctor) {
  std::vector<std::string> found;
  std::set<std::string> real;
  const std::string path = doctor.env().get("PATH");
  for (const std::string_view folder : split(path, ':')) {
    const std::string program = fmt::format("{}/hpclaunch", folder);
    if (!folder.empty() && sys::is_executable(program) &&
        real.insert(sys::real_path(program)).second)
      found.push_back(program);
  }
  if (found.size() > 1)
    return doctor.fault("hpclaunch", Severity::warning, "two-installations",
                        fmt::format("PATH has {}: the first is used", fmt::join(found, ", then ")),
                        "remove one from PATH");
  doctor.sound("hpclaunch", sys::own_directory() + "/hpclaunch");
}

}  // namespace

void examine_files(Examination& doctor) {
  examine_shared_memory(doctor);
  examine_home(doctor);
  examine_temporary(doctor);
  examine_caches(doctor);
}

void examine_environment(Examination& doctor) {
  examine_modules(doctor);
  examine_loader_paths(doctor);
  examine_installations(doctor);
}

}  // namespace hpclaunch::job
