// Files, directories and programs by their paths, and what this process has: environment, CPUs, limits.
#include <fcntl.h>
#include <fmt/format.h>
#include <grp.h>
#include <pwd.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdint>
#include <cstdlib>
#include <cstring>
#include <ctime>
#include <filesystem>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

extern char** environ;

namespace hpclaunch::sys {

EnvSnapshot environment() {
  std::vector<std::string> entries;
  for (char** entry = environ; entry != nullptr && *entry != nullptr; ++entry)
    entries.emplace_back(*entry);
  return EnvSnapshot(std::move(entries));
}

std::string host_name() {
  utsname names{};
  return uname(&names) == 0 ? names.nodename : "localhost";
}

std::string own_directory() {
  static const std::string kPath = [] {
    std::error_code failed;
    return std::filesystem::read_symlink("/proc/self/exe", failed).parent_path().string();
  }();
  return kPath;
}

std::string working_directory() {
  std::error_code failed;
  return std::filesystem::current_path(failed).string();
}

double wall_clock() {
  timespec now{};
  clock_gettime(CLOCK_REALTIME, &now);
  return static_cast<double>(now.tv_sec) + static_cast<double>(now.tv_nsec) / 1e9;
}

std::string affinity() {
  std::array<std::uint64_t, 2048> words{};  // for more CPUs than any kernel has
  const long bytes = syscall(SYS_sched_getaffinity, 0, sizeof words, words.data());
  if (bytes <= 0) return "";
  const auto count = static_cast<std::size_t>(bytes) / sizeof words[0];
  return CpuSet::of_words({words.data(), std::min<std::size_t>(count, CpuSet::kCapacity / 64)})
      .to_list();
}

int oom_kills() {
  const auto text_of = [](const std::string& path) {
    Result<std::string> text = read_file(path);
    return text ? *std::move(text) : std::string();
  };
  const std::string groups = text_of("/proc/self/cgroup");
  std::string path;
  for (const std::string_view line : split(groups, '\n')) {
    const std::vector<std::string_view> parts = split(line, ':');
    if (parts.size() < 3) continue;
    if (parts[1] == "memory")  // version 1
      path = fmt::format("/sys/fs/cgroup/memory{}/memory.oom_control", parts[2]);
    else if (parts[0] == "0" && path.empty())
      path = fmt::format("/sys/fs/cgroup{}/memory.events", parts[2]);
  }
  const std::string counts = text_of(path);
  constexpr std::string_view kName = "oom_kill ";
  for (const std::string_view line : split(counts, '\n'))
    if (line.starts_with(kName))
      return static_cast<int>(parse_natural(line.substr(kName.size())).value_or(0));
  return 0;
}

std::map<std::string, std::string> limits() {
  const struct {
    const char* name;
    decltype(RLIMIT_CORE) which;
  } kLimits[] = {{"core", RLIMIT_CORE},
                 {"memlock", RLIMIT_MEMLOCK},
                 {"nofile", RLIMIT_NOFILE},
                 {"stack", RLIMIT_STACK}};
  const auto text = [](rlim_t value) {
    return value == RLIM_INFINITY ? std::string("unlimited") : fmt::format("{}", value);
  };
  std::map<std::string, std::string> all;
  for (const auto& [name, which] : kLimits) {
    rlimit limit{};
    if (getrlimit(which, &limit) != 0) continue;
    all[name] = text(limit.rlim_cur);
    if (which == RLIMIT_CORE) all["core-hard"] = text(limit.rlim_max);
  }
  return all;
}

unsigned user_id() { return getuid(); }

std::string runtime_folder(bool create) {
  const char* const runtime = getenv("XDG_RUNTIME_DIR");
  std::vector<std::string> paths = {fmt::format("/tmp/hpclaunch-{}", geteuid())};
  if (runtime != nullptr && *runtime == '/')
    paths.insert(paths.begin(), fmt::format("{}/hpclaunch", runtime));
  for (std::string& path : paths) {
    if (create) mkdir(path.c_str(), S_IRWXU);
    struct stat info {};
    if (lstat(path.c_str(), &info) == 0 && S_ISDIR(info.st_mode) && info.st_uid == geteuid() &&
        (info.st_mode & (S_IRWXG | S_IRWXO)) == 0)
      return std::move(path);
  }
  return "";
}

namespace {

constexpr long kPipePatience = 10'000;  // ms

// False: nothing came, and nobody closed it.
bool wait_for_input(int fd, long patience = kPipePatience) {
  Wait wait;
  wait.on(fd);
  wait.until(patience == kNever ? kNever : clock_ms() + patience);
  wait.run();
  return patience == kNever || wait.ready(fd);
}

}  // namespace

Result<std::string> read_file(const std::string& path, std::size_t max_bytes) {
  const auto refused = [&](ErrorKind kind) {
    return Error{kind, fmt::format("cannot read \"{}\": {}", path, std::strerror(errno))};
  };
  // A pipe that nobody writes to would block the open already.
  const int fd = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  if (fd < 0)
    return refused(errno == ENOENT || errno == ENOTDIR ? ErrorKind::not_found : ErrorKind::system);
  struct stat info {};
  const bool pipe = fstat(fd, &info) == 0 && S_ISFIFO(info.st_mode);
  std::string text;
  char buffer[1 << 16];
  for (;;) {
    if (pipe && !wait_for_input(fd)) {
      close(fd);
      return Error{ErrorKind::system,
                   fmt::format("cannot read \"{}\": a pipe without input for {} s", path,
                               kPipePatience / 1000)};
    }
    const ssize_t got = read(fd, buffer, sizeof buffer);
    if (got < 0 && (errno == EINTR || (errno == EAGAIN && wait_for_input(fd, kNever)))) continue;
    if (got < 0) {
      Error error = refused(ErrorKind::system);
      close(fd);
      return error;
    }
    if (got == 0) break;
    text.append(buffer, static_cast<std::size_t>(got));
    if (text.size() > max_bytes) {
      close(fd);
      return Error{ErrorKind::system,
                   fmt::format("\"{}\" is larger than {}", path, human_bytes(max_bytes))};
    }
  }
  close(fd);
  return text;
}

std::string GrowingFile::more() {
  constexpr std::size_t kMost = 1u << 20;
  std::string text;
  const int fd = open(path_.c_str(), O_RDONLY | O_CLOEXEC | O_NOCTTY | O_NONBLOCK);
  struct stat info {};
  if (fd >= 0 && fstat(fd, &info) == 0 && S_ISREG(info.st_mode)) {
    if (info.st_dev != device_ || info.st_ino != inode_ || info.st_size < offset_) offset_ = 0;
    device_ = info.st_dev;
    inode_ = info.st_ino;
    text.resize(std::min(kMost, static_cast<std::size_t>(info.st_size - offset_)));
    const ssize_t got = pread(fd, text.data(), text.size(), offset_);
    text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
    offset_ += static_cast<long long>(text.size());
  }
  if (fd >= 0) close(fd);
  return text;
}

bool write_all(int fd, std::string_view text) {
  while (!text.empty()) {
    const ssize_t written = write(fd, text.data(), text.size());
    if (written < 0 && errno == EINTR) continue;
    if (written <= 0) return false;
    text.remove_prefix(static_cast<std::size_t>(written));
  }
  return true;
}

Status rewrite_file(const std::string& path, std::string_view text) {
  const int fd = open(path.c_str(), O_WRONLY | O_CLOEXEC);
  const bool written =
      fd >= 0 && write_all(fd, text) && ftruncate(fd, static_cast<off_t>(text.size())) == 0;
  const int why = errno;
  const bool closed = fd >= 0 && close(fd) == 0;
  if (written && closed) return Done{};
  return Error{ErrorKind::system, fmt::format("cannot write {}: {}", path, std::strerror(why))};
}

Result<std::vector<std::string>> list_directory(const std::string& path) {
  std::vector<std::string> names;
  std::error_code failed;
  for (std::filesystem::directory_iterator entry(path, failed), end; entry != end;
       entry.increment(failed))
    names.push_back(entry->path().filename());
  const int why = failed.value();
  if (why != 0 && why != ENOENT && why != ENOTDIR)
    return Error{ErrorKind::system,
                 fmt::format("cannot read directory \"{}\": {}", path, std::strerror(why))};
  std::sort(names.begin(), names.end());
  return names;
}

std::string real_path(const std::string& path) {
  std::error_code failed;
  const std::filesystem::path resolved = std::filesystem::canonical(path, failed);
  return failed ? path : resolved.string();
}

namespace {

constexpr const char* kOwners = "/etc/hpclaunch/trusted-owners";

// Other users than this one can write it. A group that has this user's name and no other member is only this user.
bool open_to_others(const struct stat& info) {
  if ((info.st_mode & S_IWGRP) == 0) return (info.st_mode & S_IWOTH) != 0;
  const passwd* user = getpwuid(geteuid());
  const group* writers = getgrgid(info.st_gid);
  if ((info.st_mode & S_IWOTH) != 0 || user == nullptr || writers == nullptr) return true;
  const std::string_view name = user->pw_name;
  bool others = user->pw_gid != info.st_gid || name != writers->gr_name;
  for (char** member = writers->gr_mem; *member != nullptr; ++member)
    others = others || name != *member;
  return others;
}

std::string owner_name(uid_t uid) {
  const passwd* entry = getpwuid(uid);
  return entry != nullptr ? entry->pw_name : std::to_string(uid);
}

// Root, this user, the owner of the installation, and names or numbers in root's list.
bool is_trusted(uid_t uid) {
  struct stat info {};
  if (uid == 0 || uid == geteuid()) return true;
  if (stat((own_directory() + "/..").c_str(), &info) == 0 && info.st_uid == uid) return true;
  if (stat(kOwners, &info) != 0 || info.st_uid != 0 || (info.st_mode & (S_IWGRP | S_IWOTH)) != 0)
    return false;
  const Result<std::string> listed = read_file(kOwners, 1 << 16);
  return listed && std::ranges::any_of(split(*listed, '\n'), [&](std::string_view line) {
           const std::string_view owner = trim(line.substr(0, line.find('#')));
           return owner == std::to_string(uid) || owner == owner_name(uid);
         });
}

enum class Found { nothing, directory, not_executable, executable };

Found look(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return Found::nothing;
  if (S_ISDIR(info.st_mode)) return Found::directory;
  const bool runs =
      S_ISREG(info.st_mode) && faccessat(AT_FDCWD, path.c_str(), X_OK, AT_EACCESS) == 0;
  return runs ? Found::executable : Found::not_executable;
}

std::string absolute(const std::string& path) {
  if (path.starts_with('/')) return path;
  const std::string here = working_directory();
  return here + (here.ends_with('/') ? "" : "/") + (path.starts_with("./") ? path.substr(2) : path);
}

Error cannot_execute(const std::string& path) {
  return Error{ErrorKind::not_executable, fmt::format("\"{}\" is not executable", path),
               fmt::format("chmod +x {}", path)};
}

}  // namespace

Result<std::string> read_trusted_file(const std::string& path, std::size_t max_bytes) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return read_file(path, max_bytes);  // that has the reason
  if (open_to_others(info))
    return Error{ErrorKind::invalid, fmt::format("\"{}\" is writable by group or others", path),
                 fmt::format("chmod go-w {}", path)};
  if (is_trusted(info.st_uid)) return read_file(path, max_bytes);
  const std::string owner = owner_name(info.st_uid);
  return Error{
      ErrorKind::invalid,
      fmt::format("\"{}\" is owned by {}: not root, you, the owner of the installation or "
                  "a user in {}",
                  path, owner, kOwners),
      fmt::format("as root: mkdir -p /etc/hpclaunch; echo {} >> {}; or use a copy of your own",
                  owner, kOwners)};
}

bool is_executable(const std::string& path) { return look(path) == Found::executable; }

Result<std::string> find_program(const std::string& program, std::string_view path_variable) {
  if (program.empty())
    return Error{ErrorKind::program_not_found, "program name is empty",
                 "name the program after --"};
  if (program.find('/') != std::string::npos) {
    switch (look(program)) {
      case Found::executable:
        return absolute(program);
      case Found::not_executable:
        return cannot_execute(program);
      case Found::directory:
        return Error{ErrorKind::not_executable, fmt::format("\"{}\" is a directory", program),
                     "name a program file"};
      case Found::nothing:
        return Error{ErrorKind::program_not_found,
                     fmt::format("program \"{}\" does not exist", program)};
    }
  }
  std::optional<std::string> unusable;
  for (const std::string_view directory : split(path_variable, ':')) {
    std::string path(directory.empty() ? "." : directory);
    path += "/" + program;
    const Found found = look(path);
    if (found == Found::executable) return absolute(path);
    if (found == Found::not_executable && !unusable) unusable = path;
  }
  if (unusable) return cannot_execute(*unusable);
  return Error{ErrorKind::program_not_found, fmt::format("program \"{}\" is not on PATH", program),
               "give its path, or load the module that provides it"};
}

}  // namespace hpclaunch::sys
