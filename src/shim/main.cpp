// hpclaunch-shim /ABSOLUTE/PROGRAM [ARG...]
//
// Runs once per rank, between the launcher and the program. At 100,000 ranks every path it looks up
// is looked up 100,000 times, so it looks up none: no PATH search, no configuration, no locale, no
// dynamic library, no log file. Its input is the environment, its output is execve(2).
// tests/shim/black_box.py proves it with strace. Messages and exit codes: docs/shim.md.
#include <errno.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/syscall.h>
#include <sys/utsname.h>
#include <time.h>
#include <unistd.h>

#include "environment.h"

namespace {

using namespace hpclaunch::shim;

constexpr int kFailed = 125;
constexpr int kCannotRun = 126;
constexpr int kNotFound = 127;

/// One line on stderr, in one write(2), so that lines of different ranks do not mix.
class Line {
 public:
  explicit Line(Text start) { add(start); }

  /// Bytes outside ASCII's printing range become '?'. What does not fit is cut, visibly.
  Line& add(Text text) {
    for (int i = 0; i < text.size && size_ < kRoom; ++i) {
      const bool prints = text.at[i] >= ' ' && text.at[i] <= '~';
      bytes_[size_++] = prints ? text.at[i] : '?';
    }
    return *this;
  }
  Line& add(int number) {
    if (number >= 10) add(number / 10);
    const char digit = static_cast<char>('0' + number % 10);
    return add(Text{&digit, 1});
  }
  Line& add(const Mask& mask) {
    const char* separator = "";
    for (int cpu = 0; cpu < kMaskBits; ++cpu) {
      if (!mask.has(cpu)) continue;
      int last = cpu;
      while (last + 1 < kMaskBits && mask.has(last + 1)) ++last;
      add(separator).add(cpu);
      if (last > cpu) add("-").add(last);
      separator = ",";
      cpu = last;
    }
    return *this;
  }
  Line& quote(Text text) { return add(" '").add(text).add("'"); }

  void print() {
    if (size_ == kRoom) {
      for (int i = 1; i <= 3; ++i) bytes_[kRoom - i] = '.';
    }
    bytes_[size_] = '\n';
    if (write(STDERR_FILENO, bytes_, static_cast<size_t>(size_) + 1) < 0) return;
  }

 private:
  static constexpr int kRoom = 1023;
  char bytes_[kRoom + 1] = {};
  int size_ = 0;
};

/// Many launchers kill all ranks as soon as one has failed. A rank that leaves the line to another
/// one therefore waits a little, so that the other one lives to print it.
constexpr timespec kSilentPause = {0, 200'000'000};

[[noreturn]] void stop(int status, Line& line, bool speak = true) {
  if (speak) {
    line.print();
  } else {
    nanosleep(&kSilentPause, nullptr);
  }
  _exit(status);
}

Line rank_line(const Place& place) {
  static utsname host;
  const bool known = uname(&host) == 0;
  Line line("hpclaunch: rank ");
  line.add(place.rank).add(" on ").add(known ? Text(host.nodename) : Text("?")).add(": ");
  return line;
}

// The C libraries disagree about cpu_set_t and the result; the kernel's own calls do not.
bool read_affinity(Mask& mask) {
  mask = {};
  return syscall(SYS_sched_getaffinity, 0, sizeof mask, &mask) > 0;
}
bool write_affinity(const Mask& mask) {
  return syscall(SYS_sched_setaffinity, 0, sizeof mask, &mask) == 0;
}

Line& add_found(Line& line, const Mask& mask, bool known) {
  return known ? line.add(mask) : line.add("(unknown)");
}

void bind(const Task& task, const Place& place, Verify verify) {
  const bool expect = task.binding == Binding::expect;
  if (task.binding == Binding::none || (expect && verify == Verify::off)) return;
  Line line = rank_line(place);
  Mask found;
  bool known = false;
  if (expect) {
    known = read_affinity(found);
    if (known && found == task.mask) return;
    add_found(line.add("the launcher bound CPUs "), found, known).add(", planned ").add(task.mask);
    if (verify == Verify::strict) stop(kFailed, line);
  }
  const bool accepted = write_affinity(task.mask);
  known = read_affinity(found);
  if (accepted && known && found == task.mask) {
    if (expect) line.add("; mended").print();
    return;
  }
  if (verify == Verify::off) return;
  if (!expect) line.add("planned CPUs ").add(task.mask);
  line.add(accepted ? "; the kernel gave only " : "; the kernel refuses them, the rank has ");
  add_found(line, found, known);
  if (verify == Verify::strict) stop(kFailed, line);
  line.print();
}

/// The soft limit, as far as the hard one allows. Raising beyond it is nobody's to do at this point.
void limit_core(const Plan& plan) {
  rlimit limit;
  if (plan.core.size == 0 || getrlimit(RLIMIT_CORE, &limit) != 0) return;
  unsigned long long bytes = 0;
  const bool unlimited = !is_bytes(plan.core, bytes);
  const rlim_t wanted = unlimited ? RLIM_INFINITY : static_cast<rlim_t>(bytes);
  const bool fits = limit.rlim_max == RLIM_INFINITY || (!unlimited && wanted <= limit.rlim_max);
  limit.rlim_cur = fits ? wanted : limit.rlim_max;
  setrlimit(RLIMIT_CORE, &limit);  // lowers, or raises to the hard limit: neither can be refused
}

const char* directory_reason(int error) {
  switch (error) {
    case ENOENT:
      return "the directory above it is missing";
    case EACCES:
    case EPERM:
      return "permission denied";
    case ENOTDIR:
      return "a part of the path is not a directory";
    case EROFS:
      return "the file system is read-only";
    case ENOSPC:
    case EDQUOT:
      return "no space";
    default:
      return "not made";
  }
}

/// Every rank asks for every directory, so that none starts before they are there. Of those that
/// cannot be made the node's first rank names the first one.
void make_directories(const Plan& plan, const Place& place) {
  static char path[kMaxPath];
  static char failed[kMaxPath];
  Text rest = plan.directories;
  Text item;
  int failures = 0;
  int error = 0;
  for (bool more = rest.size > 0; more;) {
    more = cut(rest, '/', item);
    if (!read_path(item, path) || mkdir(path, 0700) == 0 || errno == EEXIST) continue;
    if (failures++ > 0) continue;
    error = errno;
    read_path(item, failed);
  }
  if (failures == 0 || place.local != 0) return;
  Line line = rank_line(place);
  line.add("directory ").add(failed).add(": ").add(directory_reason(error));
  line.add(" (errno ").add(error).add(")");
  if (failures > 1) line.add(", and ").add(failures - 1).add(" more");
  line.print();
}

/// Reads the plan and finds this rank in it, or stops.
void find_place(char** environment, Plan& plan, Place& place) {
  Line line("hpclaunch-shim: ");
  const Text wire = find(environment, "HPCLAUNCH_PLAN");
  if (wire.at == nullptr) {
    line.add("HPCLAUNCH_PLAN is not set: the launcher did not pass it on");
    stop(kFailed, line, reports(environment, {}));
  }
  const Fault fault = read_plan(wire, plan);
  if (fault.what != nullptr) {
    line.add("HPCLAUNCH_PLAN: ").add(fault.what).add(":").quote(fault.piece);
    stop(kFailed, line, reports(environment, plan.rank_name));
  }
  const Text value = find(environment, plan.rank_name);
  if (value.at == nullptr || !is_number(value, place.rank)) {
    line.add(plan.rank_name);
    if (value.at == nullptr) line.add(" is not set: the launcher is not the one of the plan");
    if (value.at != nullptr) line.add(" is not a rank:").quote(value);
    stop(kFailed, line, reports(environment, {}));
  }
}

/// Stops when the launcher has not dealt the ranks as the plan has it.
void check_place(char** environment, const Plan& plan, Place& place) {
  const bool inside = locate(plan, place);
  int local = 0;
  const Text value = find(environment, plan.local_name);
  const bool known = plan.local_name.size > 0 && value.at != nullptr && is_number(value, local);
  if (!inside) {
    const int world = world_size(plan);
    Line line = rank_line(place);
    line.add("the plan is for ").add(world).add(world == 1 ? " rank" : " ranks");
    line.add(", the launcher has started more");
    stop(kFailed, line, place.rank == world || !known || local == 0);
  }
  if (plan.local_name.size == 0) return;
  Line line = rank_line(place);
  line.add(plan.local_name);
  if (!known) {
    if (value.at == nullptr) line.add(" is not set: the launcher is not the one of the plan");
    if (value.at != nullptr) line.add(" is not a local rank:").quote(value);
    stop(kFailed, line, place.local == 0);
  }
  if (local == place.local) return;
  line.add(" is ").add(local).add(", by the plan the local rank is ").add(place.local);
  line.add(": the launcher does not deal the ranks node by node");
  stop(kFailed, line, place.node == 0 || place.local == 0);
}

const char* reason(int error) {
  switch (error) {
    case ENOENT:
      return "no such file, or its interpreter is missing";
    case EACCES:
      return "permission denied, or not a file";
    case ENOEXEC:
      return "not a program for this machine, and no #! line";
    case ENOTDIR:
      return "a part of the path is not a directory";
    case E2BIG:
      return "environment and arguments are too long";
    default:
      return "cannot be executed";
  }
}

/// Called when execve has returned. What all ranks of a node share, the node's first rank reports.
[[noreturn]] void not_started(int error, Text program, const Place& place) {
  const bool shared = error == ENOENT || error == EACCES || error == ENOEXEC || error == ENOTDIR;
  Line line = rank_line(place);
  line.add(program).add(": ").add(reason(error)).add(" (errno ").add(error).add(")");
  stop(error == ENOENT ? kNotFound : kCannotRun, line, !shared || place.local == 0);
}

}  // namespace

int main(int argc, char** argv, char** environment) {
  if (argc < 2 || argv[1][0] != '/') {
    Line line("hpclaunch-shim: usage: hpclaunch-shim /ABSOLUTE/PROGRAM [ARG...]");
    stop(kFailed, line, reports(environment, {}));
  }
  static Plan plan;
  static Place place;
  find_place(environment, plan, place);
  check_place(environment, plan, place);

  static char arena[kArenaBytes];
  static Task task;
  static char* out[kMaxEnvironment + 1];
  task.arena = arena;
  task.arena_size = kArenaBytes;
  const Fault fault = read_task(plan, place, task);
  if (fault.what != nullptr) {
    Line line = rank_line(place);
    line.add("HPCLAUNCH_PLAN: ").add(fault.what).add(":").quote(fault.piece);
    stop(kFailed, line);
  }
  if (!compose(environment, task, out, kMaxEnvironment + 1)) {
    Line line = rank_line(place);
    line.add("the environment has more than ").add(kMaxEnvironment).add(" entries");
    stop(kFailed, line);
  }
  bind(task, place, plan.verify);
  limit_core(plan);
  make_directories(plan, place);
  execve(argv[1], argv + 1, out);
  not_started(errno, argv[1], place);
}
