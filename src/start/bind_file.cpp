// The plans of a launch on this node in one file: the first rank makes one while the others wait.
#include <fcntl.h>
#include <fmt/format.h>
#include <signal.h>
#include <sys/file.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstdio>
#include <cstdlib>
#include <ctime>
#include <utility>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "hpclaunch/world.h"
#include "start/bind.h"

namespace hpclaunch::job {

namespace {

constexpr double kFreshSeconds =
    600;                            // between one rank of a node and the next; later ones plan anew
constexpr unsigned kPatience = 60;  // seconds, for one that plans
constexpr long kMostOfFile = 4L << 20;
constexpr const char* kStem = "hpclaunch-bind-";

// In the order in which they are tried: memory of this node first.
std::vector<std::string> bind_folders() {
  std::vector<std::string> folders = {"/dev/shm"};
  const char* const runtime = std::getenv("XDG_RUNTIME_DIR");
  if (runtime != nullptr && *runtime == '/') folders.emplace_back(runtime);
  folders.emplace_back("/tmp");
  return folders;
}

int open_bind_file(const std::string& path, int flags) {
  return open(path.c_str(), flags | O_CLOEXEC | O_NOFOLLOW | O_NONBLOCK, S_IRUSR | S_IWUSR);
}

// Nobody else can have written it.
bool is_own(const struct stat& info) {
  return S_ISREG(info.st_mode) && info.st_uid == geteuid() &&
         (info.st_mode & (S_IRWXG | S_IRWXO)) == 0 && info.st_nlink == 1;
}

// Of this start of the machine, and not of an earlier job.
bool is_fresh(const struct stat& info) {
  timespec up{};
  clock_gettime(CLOCK_BOOTTIME, &up);
  const double now = sys::wall_clock();
  const auto written = static_cast<double>(info.st_mtime);
  return now - written <= kFreshSeconds && written >= now - static_cast<double>(up.tv_sec) - 1;
}

// What the file of a launch says to one of its ranks.
struct Left {
  std::string port;  // of its first plan
  std::optional<NodePlan> plan;
};

std::string text_of(int fd) {
  struct stat info {};
  std::string text;
  if (fstat(fd, &info) != 0 || !is_fresh(info) || info.st_size > kMostOfFile) return text;
  text.resize(static_cast<std::size_t>(info.st_size));
  const ssize_t got = pread(fd, text.data(), text.size(), 0);
  text.resize(got > 0 ? static_cast<std::size_t>(got) : 0);
  return text;
}

std::string taken_line(int local) { return fmt::format("taken {}\n", local); }
std::string plan_line(const PlanAsked& asked) {
  return fmt::format("for {:08x}{:08x}\n", fnv1a(asked.plan), fnv1a("second " + asked.plan));
}

bool are_as_planned(const NodePlan& plan) {
  const World here = this_world({});
  return std::ranges::all_of(
      plan.files, [&](const auto& file) { return here.stamp(file.first) == file.second; });
}

// nullopt: nobody has written it, somebody has died there, or it is of an earlier launch, of which this rank was one.
std::optional<Left> left_for(const PlanAsked& asked, std::string_view text) {
  constexpr std::string_view kEnd = "\nend\n";
  if (!text.ends_with('\n')) return std::nullopt;
  Left left;
  while (!text.empty()) {
    const std::size_t line = text.find('\n') + 1;
    const std::string_view first = text.substr(0, line);
    text.remove_prefix(line);
    if (first == taken_line(asked.local)) return std::nullopt;
    if (!first.starts_with("for ")) continue;
    const std::size_t end = text.find(kEnd);
    if (end == text.npos) return std::nullopt;
    const bool own = first == plan_line(asked);
    if (own || left.port.empty())
      if (std::optional<NodePlan> plan = read_node_plan(text.substr(0, end + kEnd.size()))) {
        if (left.port.empty()) left.port = plan->port;
        if (own) left.plan = std::move(plan);
      }
    text.remove_prefix(end + kEnd.size());
  }
  if (left.plan && !are_as_planned(*left.plan)) left.plan.reset();
  return left;
}

void nothing(int) {}

// Open and locked. The end of its holder, also by a signal, frees it. -1: there is none to be had.
int wait_for_file(const std::string& path) {
  struct sigaction before {};
  struct sigaction wake {};
  wake.sa_handler = nothing;  // without SA_RESTART: flock(2) returns
  sigaction(SIGALRM, &wake, &before);
  const unsigned others = alarm(kPatience);
  int fd = -1;
  bool again = true;  // remove_old has removed it while this process waited, or it is no such file
  while (again) {
    fd = open_bind_file(path, O_RDWR | O_CREAT);
    struct stat info {};
    const bool locked = fd >= 0 && flock(fd, LOCK_EX) == 0 && fstat(fd, &info) == 0;
    if (locked && is_own(info)) break;
    const bool waited = fd >= 0 && !locked;
    again = !waited && ((locked && info.st_nlink == 0) || unlink(path.c_str()) == 0);
    if (fd >= 0) close(std::exchange(fd, -1));
  }
  alarm(others);
  sigaction(SIGALRM, &before, nullptr);
  return fd;
}

void clear(int fd) {
  if (ftruncate(fd, 0) != 0) return;  // what is half written counts for nobody
}

void add(int fd, const std::string& text) {
  if (lseek(fd, 0, SEEK_END) < 0 || !sys::write_all(fd, text)) clear(fd);
}

// Ranks of one launch meet at one port, also where their environments differ.
void keep_port(const std::string& port, NodePlan& made) {
  if (made.port_lock >= 0 && made.port != port) close(std::exchange(made.port_lock, -1));
  made.port = port;
}

// What earlier jobs of this user have left. A lock that is held stays.
void remove_old(const std::string& folder) {
  const std::string own = fmt::format("{}{}-", kStem, geteuid());
  const Result<std::vector<std::string>> names = sys::list_directory(folder);
  for (const std::string& name : names ? *names : std::vector<std::string>()) {
    if (!name.starts_with(own)) continue;
    const std::string path = fmt::format("{}/{}", folder, name);
    const int fd = open_bind_file(path, O_RDONLY);
    struct stat info {};
    if (fd >= 0 && fstat(fd, &info) == 0 && is_own(info) && !is_fresh(info) &&
        flock(fd, LOCK_EX | LOCK_NB) == 0)
      unlink(path.c_str());
    if (fd >= 0) close(fd);
  }
}

}  // namespace

Result<NodePlan> shared_node_plan(const PlanAsked& asked,
                                  const std::function<Result<NodePlan>()>& make) {
  const std::string name = fmt::format("{}{}-{:08x}{:08x}", kStem, geteuid(), fnv1a(asked.launch),
                                       fnv1a("second " + asked.launch));
  for (const std::string& folder : bind_folders()) {
    const int file = wait_for_file(fmt::format("{}/{}", folder, name));
    if (file < 0) continue;
    const std::string text = text_of(file);
    std::optional<Left> left = left_for(asked, text);
    if (!left) clear(file);
    if (left && left->plan) {
      add(file, taken_line(asked.local));
      close(file);
      return *std::move(left->plan);
    }
    Result<NodePlan> made = make();
    if (made) {
      if (left && !left->port.empty()) keep_port(left->port, *made);
      add(file, plan_line(asked) + node_plan_text(*made) + taken_line(asked.local));
      remove_old(folder);
    }
    close(file);
    return made;
  }
  return make();
}

}  // namespace hpclaunch::job
