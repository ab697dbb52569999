// hpclaunch-shim /ABSOLUTE/PROGRAM [ARG...]
//
// Runs once per rank, between the launcher and the program. At 100,000 ranks every path it looks up
// is looked up 100,000 times, so it looks up none: no PATH search (but in a container, where only it can), no configuration, no locale, no
// dynamic library, no log file. Its input is the environment, its output is execve(2).
// tests/shim/black_box.py checks it with strace. Messages and exit codes: docs/reference/shim.md.
#include <fcntl.h>
#include <sys/resource.h>
#include <sys/stat.h>

#include "arguments.h"
#include "monitor.h"

namespace {

using namespace hpclaunch;
using namespace hpclaunch::shim;

/// For a rank whose CPUs the plan could not know for each node. False: the rank stays as it is.
bool find_part(const Place& place, Verify verify, Task& task) {
  Mask found;
  int many = 0;
  if (!read_affinity(found)) return false;
  if (choose_part(found, task, many)) return true;
  if (verify == Verify::off) return false;
  const char* unit = task.counted.size > 0 ? " cores" : " CPUs";
  Line line = rank_line(place);
  if (task.granted == 0 || many == task.granted) {
    line.add("planned").add(unit).add(" ").add(task.part_first + 1).add(" to ");
    line.add(task.part_last + 1).add(" of the granted ones, the rank has ").add(many);
  } else {
    line.add("the job was granted ").add(task.granted).add(unit);
    line.add(" of this node, the rank may use ").add(many);
  }
  line.add(" (").add(found).add("): not bound");
  differs(line, verify, place, false);
  return false;
}

void bind(Task& task, const Place& place, Verify verify) {
  if (task.binding == Binding::part && !find_part(place, verify, task)) return;
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
  } else if (read_affinity(task.given)) {
    task.outside = !task.given.contains(task.mask);
  }
  const bool accepted = write_affinity(task.mask);
  known = read_affinity(found);
  if (accepted && known && found == task.mask) {
    if (expect) line.add("; rebound").print();
    return;
  }
  if (verify == Verify::off) return;
  if (!expect) line.add("planned CPUs ").add(task.mask);
  line.add(accepted ? "; the kernel gave only " : "; the kernel refuses them, the rank has ");
  add_found(line, found, known);
  differs(line, verify, place, false);
}

/// The soft limit, as far as the hard one allows.
void limit_core(const Plan& plan) {
  rlimit limit;
  if (plan.core.size == 0 || call(SYS_prlimit64, 0, RLIMIT_CORE, nullptr, &limit) != 0) return;
  unsigned long long bytes = 0;
  const bool unlimited = !is_bytes(plan.core, bytes);
  const rlim_t wanted = unlimited ? RLIM_INFINITY : static_cast<rlim_t>(bytes);
  const bool fits = limit.rlim_max == RLIM_INFINITY || (!unlimited && wanted <= limit.rlim_max);
  limit.rlim_cur = fits ? wanted : limit.rlim_max;
  call(SYS_prlimit64, 0, RLIMIT_CORE, &limit, nullptr);  // up to the hard limit: cannot fail
}

struct Reason {
  int error;
  const char* text;
};

template <int kCount>
const char* reason(const Reason (&known)[kCount], int error, const char* otherwise) {
  for (const Reason& one : known) {
    if (one.error == error) return one.text;
  }
  return otherwise;
}

constexpr Reason kNotCreated[] = {{ENOENT, "its parent directory is missing"},
                                  {EACCES, "permission denied"},
                                  {EPERM, "permission denied"},
                                  {ENOTDIR, "a part of the path is not a directory"},
                                  {EROFS, "the file system is read-only"},
                                  {ENOSPC, "no space"},
                                  {EDQUOT, "no space"}};
constexpr Reason kNotExecuted[] = {{ENOENT, "no such file, or its interpreter is missing"},
                                   {EACCES, "permission denied, or not a file"},
                                   {ENOEXEC, "not a program for this machine, and no #! line"},
                                   {ENOTDIR, "a part of the path is not a directory"},
                                   {E2BIG, "environment and arguments are too long"}};

/// Why a directory that was there already is not used; null where it is: this user's own, no link, closed to others.
/// Others could have planted what programs load from it.
const char* objection(const char* path) {
  struct stat found;
  if (call(SYS_newfstatat, AT_FDCWD, path, &found, AT_SYMLINK_NOFOLLOW) != 0)
    return "cannot be examined";
  if (S_ISLNK(found.st_mode)) return "it is a symbolic link";
  if (!S_ISDIR(found.st_mode)) return "it is not a directory";
  if (found.st_uid != static_cast<uid_t>(call(SYS_geteuid))) return "it belongs to another user";
  return (found.st_mode & 0777) == 0700 ? nullptr : "its mode is not 700";
}

/// Every rank creates every directory, so that none starts before they exist. Of those that cannot be
/// created the node's first rank names the first one. One that may not be used stops the rank.
void make_directories(const Plan& plan, const Place& place) {
  static char path[kMaxPath];
  static char failed[kMaxPath];
  int failures = 0;
  int error = 0;
  each_piece(plan.directories, [&](Text item) {
    read_path(item, path);
    const long result = call(SYS_mkdirat, AT_FDCWD, path, 0700);
    const char* why = result == -EEXIST ? objection(path) : nullptr;
    if (why != nullptr) {
      Line line = rank_line(place);
      line.add("directory ").add(path).add(" refused: ").add(why);
      line.add("; remove it, or chmod 700 your own");
      stop(kFailed, line, place.local == 0);
    }
    if (result == 0 || result == -EEXIST || failures++ > 0) return;
    error = static_cast<int>(-result);
    read_path(item, failed);
  });
  if (failures == 0 || place.local != 0) return;
  Line line = rank_line(place);
  line.add("directory ").add(failed).add(": ").add(reason(kNotCreated, error, "not created"));
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
    if (value.at == nullptr) line.add(" is not set: this is not the planned launcher");
    if (value.at != nullptr) line.add(" is not a rank:").quote(value);
    stop(kFailed, line, reports(environment, {}));
  }
  place.rank += plan.first;
}

constinit Channel line_to;  // hpclaunch

struct Nobody {  // has no program
  void deliver(int) {}
  void ask(const channel::Ask&) {}
} nobody;

void tell_the_end(int status, Text why) {
  line_to.open(true);
  line_to.tell_begun(own_pid());
  channel::Ended end;
  end.pid = own_pid();
  end.status = static_cast<uint8_t>(status);
  line_to.tell_ended(end, why);
  while (line_to.on() && !line_to.released()) {
    const long long ms = line_to.ms_left();
    const timespec limit = {static_cast<long>(ms / 1000), static_cast<long>(ms % 1000 * 1'000'000)};
    pollfd wanted = {line_to.fd(), POLLIN, 0};
    call(SYS_ppoll, &wanted, 1, ms < 0 ? nullptr : &limit, nullptr, 0);
    line_to.turn(nobody);
  }
}

/// Stops when the launcher did not distribute the ranks as planned.
void check_place(char** environment, const Plan& plan, Place& place) {
  const bool inside = locate(plan, place);
  if (inside && plan.stay != Stay::no) line_to.read(find(environment, kChannel), place);
  if (line_to.planned()) tell_stop = tell_the_end;
  int local = 0;
  const Text value = find(environment, plan.local_name);
  const bool compared = plan.local_name.size > 0 && plan.verify != Verify::report;
  const bool known = compared && value.at != nullptr && is_number(value, local);
  if (!inside) {
    const long long world = world_size(plan);
    Line line = rank_line(place);
    line.add("the plan has ")
        .add_wide(static_cast<unsigned long long>(world))
        .add(world == 1 ? " rank" : " ranks");
    line.add(", the launcher started more");
    stop(kFailed, line, place.rank == world || !known || local == 0);
  }
  if (!compared) return;
  Line line = rank_line(place);
  line.add(plan.local_name);
  if (!known) {
    if (value.at == nullptr) line.add(" is not set: this is not the planned launcher");
    if (value.at != nullptr) line.add(" is not a local rank:").quote(value);
    stop(kFailed, line, place.local == 0);
  }
  if (local == place.local) return;
  line.add(" is ").add(local).add(", planned ").add(place.local);
  line.add(": the launcher does not distribute the ranks in blocks");
  stop(kFailed, line, place.node == 0 || place.local == 0);
}

/// The plan's working directory, in a container, which starts where its image says.
void enter_directory(const Plan& plan, const Place& place) {
  static char path[kMaxPath];
  if (plan.cwd.size == 0) return;
  read_path(plan.cwd, path);
  const long error = -call(SYS_chdir, path);
  if (error == 0) return;
  Line line = rank_line(place);
  line.add("working directory ").add(path).add(" cannot be entered in the container (errno ");
  line.add(static_cast<int>(error)).add("); bind it with --container-bind ").add(path);
  stop(kFailed, line, place.local == 0);
}

/// Called when execve has returned. What all ranks of a node share, the node's first rank reports.
[[noreturn]] void not_started(int error, Text program, const Plan& plan, const Place& place) {
  static char image[kMaxPath];
  const bool shared = error == ENOENT || error == EACCES || error == ENOEXEC || error == ENOTDIR;
  Line line = rank_line(place);
  line.add(program).add(": ").add(reason(kNotExecuted, error, "cannot be executed"));
  line.add(" (errno ").add(error).add(")");
  read_path(plan.image, image);
  if (plan.image.size > 0) line.add(" in image ").add(image);
  stop(error == ENOENT ? kNotFound : kCannotRun, line, !shared || place.local == 0);
}

/// {RANK} and the like in the program's words; `environment` is what the program gets.
void fill(char** argv, char** environment, const Place& place) {
  static Arguments arguments;
  fill_arguments(argv, environment, arguments);
  if (!arguments.full && arguments.missing.size == 0) return;
  Line line = rank_line(place);
  if (arguments.full)
    line.add("words with {RANK} and the like are longer than ").add(kArgumentBytes).add(" bytes");
  else
    line.add("{").add(arguments.missing).add("} in an argument: ").add(arguments.missing);
  if (!arguments.full) line.add(" is not set; double the braces for the text itself");
  stop(kFailed, line, place.local == 0);
}

/// Adds an entry that is NAME=VALUE already.
void set_entry(Task& task, Text entry, Text name) {
  task.set[task.count] = const_cast<char*>(entry.at);
  task.name_size[task.count++] = name.size;
}

/// The report, in place of the program in argv. Before this, to import first: PYTHON -c CODE MODULE SHIM. CODE starts
/// SHIM again, with what is wrong with the import behind the program. `environment` is what the program would get, or
/// what the import has left.
[[noreturn]] void report(const Plan& plan, const Place& place, const Task& task, char** argv,
                         char** environment, Text plan_entry) {
  constexpr int kImportWords = 5;
  static Json found;
  static Json lines;
  static Task more;
  static char* out[kMaxEnvironment + 1];
  const Text before = find(environment, kBefore);
  Text problem;
  if (before.at != nullptr) {
    problem = argv[2];
  } else if (plan.import) {
    observe(found, environment, plan, place, task);
    lines.add(kBefore).add("={\"clock\":0").add(found.text()).add("}");
    set_entry(more, lines.text(), kBefore);
    set_entry(more, plan_entry, "HPCLAUNCH_PLAN");
    compose(environment, more, out, kMaxEnvironment + 1);
    const long error = -call(SYS_execve, find_program(argv[1], environment), argv + 1, out);
    problem = reason(kNotExecuted, static_cast<int>(error), "cannot be executed");
    argv += kImportWords;
    lines.cut_to(0);
    found.cut_to(0);
  }
  observe(found, environment, plan, place, task);
  if (before.at != nullptr) found.add(",\"before\":").add(before);
  if (problem.size > 0) add_text(found.add(",\"import_problem\":"), problem);
  if (place.local == 0) add_facts(found, environment, plan, place, argv[1]);
  static Json whole;
  whole.add("{\"clock\":").add_time(wall_clock(), 3).add(found.text()).add("}");
  add_pieces(lines, whole.text(), place);
  leave(write_all(1, lines.text()) == 0 ? 0 : 1);
}

/// What `run` would correct, once the report has it: CPUs, and variables that are set again.
void correct(Task& task, const Plan& plan, char** environment, char** out) {
  if (task.binding == Binding::expect) write_affinity(task.mask);
  task.absent = plan.absent;
  compose(environment, task, out, kMaxEnvironment + 1);
}

}  // namespace

[[noreturn]] static void run(int argc, char** argv, char** environment) {
  // -q: a word that the launcher would have read as its own comes with a '%' in front.
  if (argc >= 2 && argv[1][0] == '-' && argv[1][1] == 'q' && argv[1][2] == 0) {
    ++argv;
    --argc;
    for (int i = 1; i < argc; ++i)
      if (argv[i][0] == '%') ++argv[i];
  }
  static Plan plan;
  static Place place;
  const bool named = argc >= 2 && argv[1][0] != '/';  // in a container only
  const bool planned = argc >= 2 && (!named || find(environment, "HPCLAUNCH_PLAN").at != nullptr);
  if (planned) find_place(environment, plan, place);
  if (!planned || (named && plan.image.size == 0)) {
    Line line("hpclaunch-shim: usage: hpclaunch-shim /ABSOLUTE/PROGRAM [ARG...]");
    stop(kFailed, line, reports(environment, {}));
  }
  check_place(environment, plan, place);
  const bool compares = plan.verify == Verify::warn || plan.verify == Verify::strict;
  if (compares) check_host(plan, place);
  if (compares) check_environment(environment, plan, place);

  static char arena[kArenaBytes];
  static Task task;
  static char* out[kMaxEnvironment + 1];
  task.arena = arena;
  task.arena_size = kArenaBytes;
  if (wants_address(plan)) task.address = address_of(find(environment, "GLOO_SOCKET_IFNAME"));
  const Fault fault = read_task(plan, place, task);
  if (fault.what != nullptr) {
    Line line = rank_line(place);
    line.add("HPCLAUNCH_PLAN: ").add(fault.what).add(":").quote(fault.piece);
    stop(kFailed, line);
  }
  const bool reports_only = plan.verify == Verify::report;
  const bool examines = reports_only && plan.after.size > 0 && plan.stay != Stay::no;
  const Text entry(find(environment, "HPCLAUNCH_PLAN").at - sizeof "HPCLAUNCH_PLAN");
  if (reports_only && find(environment, kBefore).at != nullptr)
    report(plan, place, task, argv, environment, entry);
  if (reports_only && plan.image.size == 0)
    task.absent = {};  // variables that are set again are to be seen
  if (!compose(environment, task, out, kMaxEnvironment + 1)) {
    Line line = rank_line(place);
    line.add("the environment has more than ").add(kMaxEnvironment).add(" entries");
    stop(kFailed, line);
  }
  enter_directory(plan, place);
  bind(task, place, reports_only ? Verify::off : plan.verify);
  if (compares) check_memory(plan, place);
  if (compares) check_port(plan, place);
  limit_core(plan);
  make_directories(plan, place);
  if (plan.with_parent) die_with_parent(plan.stay);
  constinit static Examination examination;
  if (examines) {
    examination.begin(plan, place, task, out, argv[1]);
    correct(task, plan, environment, out);
  } else if (reports_only) {
    report(plan, place, task, argv, out, entry);
  }
  if (plan.stay != Stay::no) {
    RankMonitor monitor(plan, place, line_to, examines ? &examination : nullptr);
    const Text times = find(environment, "HPCLAUNCH_START");
    if (times.size > 0) monitor.stamp_exec(times);
    if (!monitor.start()) monitor.run();  // in the child this falls through to the program
  }
  fill(argv + 1, out, place);
  const long error = -call(SYS_execve, find_program(argv[1], out), argv + 1, out);
  not_started(static_cast<int>(error), argv[1], plan, place);
}

#ifdef HPCLAUNCH_FREESTANDING
/// `stack`: argc, the arguments, a null pointer, the environment.
extern "C" [[noreturn, gnu::used]] void hpclaunch_start(char** stack) {
  const int argc = static_cast<int>(reinterpret_cast<long>(stack[0]));
  run(argc, stack + 1, stack + argc + 2);
}
#else
int main(int argc, char** argv, char** environment) { run(argc, argv, environment); }
#endif
