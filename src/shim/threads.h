#pragma once
// verify --after: which CPUs the threads of a running rank and of the processes it has started may use, and what these
// processes have in their environments, against what the rank had at its start. What differs is counted, by the thread's
// name.
#include "report.h"

namespace hpclaunch::shim {

/// Threads of one name that differ in the same way.
struct ThreadGroup {
  static constexpr int kNameRoom = 16;  // the kernel's TASK_COMM_LEN
  char name[kNameRoom] = {};
  int name_size = 0;
  bool child = false;  ///< in a process that the program has started
  int side = 0;        ///< of the rank's CPUs: -1 fewer, 1 these and more, 0 others
  int each = 0;        ///< CPUs of each thread
  int threads = 0;
  Mask cpus;  ///< of all of them
};

/// A variable that processes have in another way.
struct ChangedVariable {
  Text name;
  Text value;  ///< kept where it is shown; without `at`: not set
  unsigned mark = 0;
  bool set = false;
  bool child = false;
  int processes = 0;
};

/// What one examination has found. Members that count what is left out are 0 where all was examined.
struct Findings {
  static constexpr int kMostProcesses = 4096;
  static constexpr int kMostGroups = 64;
  static constexpr int kMostVariables = 64;
  static constexpr int kMostBytes = 128;  // of a name, and of a value
  void clear();

  int threads = 0;
  int processes = 0;
  int groups = 0;
  int variables = 0;
  int more_threads = 0;    ///< that differ, beyond kMostGroups
  int more_variables = 0;  ///< the same, beyond kMostVariables
  int more_processes = 0;  ///< not examined, beyond kMostProcesses
  int hidden = 0;          ///< environments that are not readable or were overwritten
  bool no_children = false;
  ThreadGroup group[kMostGroups];
  ChangedVariable variable[kMostVariables];
  Buffer<2 * kMostVariables * kMostBytes> values;
};

inline void Findings::clear() {
  threads = processes = groups = variables = 0;
  more_threads = more_variables = more_processes = hidden = 0;
  no_children = false;
  values.cut_to(0);
}

/// "pt_autograd_7" without its number, as threads of a pool differ in it; "python3" as it is.
constexpr int stem_of(Text name) {
  int size = name.size;
  while (size > 0 && is_digit(name.at[size - 1])) --size;
  if (size == name.size || size == 0) return name.size;
  constexpr char kSeparators[] = {'_', '-', '/', ':', '#', ' '};
  for (const char c : kSeparators)
    if (name.at[size - 1] == c) return size;
  return name.size;
}

/// "/proc/PID/" and more; zero-terminated.
inline Line process_path(int pid, Text more) {
  Line path("/proc/");
  path.add(pid).add("/").add(more);
  return path;
}

inline Line task_path(int pid, int thread, Text more) {
  Line path = process_path(pid, "task/");
  path.add(thread).add("/").add(more);
  return path;
}

/// Gives `use` the processes that a thread has started and not lost. False: this kernel does not list them.
template <class Use>
bool each_child(int pid, int thread, Use use) {
  static char bytes[65536];
  const Line path = task_path(pid, thread, "children");
  const int fd = open_file(path.text().at, O_RDONLY);
  if (fd < 0) return call(SYS_faccessat, AT_FDCWD, task_path(pid, thread, "").text().at, 0) != 0;
  Text rest = read_all(fd, bytes);
  close(fd);
  for (int child = 0; take_number(rest, child); rest = rest.size > 0 ? rest.from(1) : rest)
    use(child);
  return true;
}

/// Looks at the processes once.
class Look {
 public:
  Look(const Plan& plan, const Task& task, const char* const* environment, const Mask& planned,
       Findings& out)
      : plan_(plan), task_(task), environment_(environment), planned_(planned), out_(out) {}

  /// The program, what it has started, and what was left to this process. False: the program has ended.
  bool run(int program) {
    count_ = 0;
    add(program);
    each_child(own_pid(), own_pid(), [&](int child) {
      if (child != program) add(child);
    });
    look_at(program, false);
    const bool alive = out_.processes > 0;
    for (int i = 1; i < count_; ++i) look_at(queue_[i], true);
    return alive;
  }

 private:
  void add(int pid) {
    if (count_ < Findings::kMostProcesses)
      queue_[count_++] = pid;
    else
      ++out_.more_processes;
  }

  void look_at(int pid, bool child) {
    constinit static Mask found;
    const int before = out_.threads;
    char word[1];  // of the arguments, which a process that has ended lacks
    const bool ended = read_file(process_path(pid, "cmdline").text().at, word).size == 0;
    each_name(process_path(pid, "task").text().at, [&](Text name) {
      int thread = 0;
      if (!is_number(name, thread) || (ended && thread == pid)) return;
      found = {};
      if (call(SYS_sched_getaffinity, thread, sizeof found, &found) <= 0) return;  // it has ended
      ++out_.threads;
      if (!(found == planned_)) add_thread(pid, thread, child, found);
      out_.no_children |= !each_child(pid, thread, [&](int next) { add(next); });
    });
    if (out_.threads == before) return;
    ++out_.processes;
    look_at_environment(pid, child);
  }

  void add_thread(int pid, int thread, bool child, const Mask& found) {
    constinit static Mask both;
    char bytes[ThreadGroup::kNameRoom] = {};
    Text name = first_line(task_path(pid, thread, "comm").text().at, bytes);
    name.size = stem_of(name);
    for (int i = 0; i < Mask::kWords; ++i) both.words[i] = found.words[i] & planned_.words[i];
    const int side = both == found ? -1 : both == planned_ ? 1 : 0;
    const int each = found.count();
    int at = 0;
    for (; at < out_.groups; ++at) {
      const ThreadGroup& one = out_.group[at];
      if (one.child == child && one.side == side && one.each == each &&
          Text(one.name, one.name_size) == name)
        break;
    }
    if (at == Findings::kMostGroups) return static_cast<void>(++out_.more_threads);
    ThreadGroup& group = out_.group[at];
    if (at == out_.groups) {
      ++out_.groups;
      group = {};
      for (int i = 0; i < name.size; ++i) group.name[i] = name.at[i];
      group.name_size = name.size;
      group.child = child;
      group.side = side;
      group.each = each;
    }
    ++group.threads;
    for (int i = 0; i < Mask::kWords; ++i) group.cpus.words[i] |= found.words[i];
  }

  /// A process that sets its title may write over its environment.
  void look_at_environment(int pid, bool child) {
    static char bytes[256 * 1024];
    static const char* entries[kMaxEnvironment + 1];
    const int fd = open_file(process_path(pid, "environ").text().at, O_RDONLY);
    Text rest = fd < 0 ? Text() : read_all(fd, bytes);
    if (fd >= 0) close(fd);
    bool good = fd >= 0 && rest.size < static_cast<int>(sizeof bytes);
    if (good) bytes[rest.size] = '\0';
    int count = 0;
    Text entry;
    while (good && rest.size > 0) {
      good = cut(rest, '\0', entry) && entry.size > 0 && count < kMaxEnvironment;
      if (good) entries[count++] = entry.at;
    }
    Text name;
    entry = count > 0 ? Text(entries[0]) : Text();
    good = good && (count == 0 || cut(entry, '=', name));
    if (!good) return static_cast<void>(++out_.hidden);
    entries[count] = nullptr;
    compare(entries, child);
  }

  /// The variables of the plan, and others that reports show.
  void compare(const char* const* entries, bool child) {
    each_planned(entries, plan_, task_,
                 [&](Text name, Text value, const char*) { compare_variable(name, value, child); });
    const char* const* const lists[] = {entries, environment_};
    for (const char* const* list : lists)
      for (; *list != nullptr; ++list) {
        Text rest(*list);
        Text name;
        if (!cut(rest, '=', name) || !is_shown(name, plan_.show)) continue;
        if (is_repeated(*list, entries, name)) continue;
        bool planned = false;
        each_planned(environment_, plan_, task_,
                     [&](Text other, Text, const char*) { planned |= other == name; });
        if (!planned) compare_variable(name, find(entries, name), child);
      }
  }

  /// The first entry of a name counts, in the process's own environment.
  static bool is_repeated(const char* entry, const char* const* entries, Text name) {
    const Text first = find(entries, name);
    return first.at != nullptr && first.at != entry + name.size + 1;
  }

  void compare_variable(Text name, Text value, bool child) {
    const Text before = find(environment_, name);
    const bool set = value.at != nullptr;
    if (set == (before.at != nullptr) && value == before) return;
    const unsigned mark = fnv1a(value);
    for (int i = 0; i < out_.variables; ++i) {
      ChangedVariable& one = out_.variable[i];
      if (one.name == name && one.set == set && one.mark == mark && one.child == child)
        return static_cast<void>(++one.processes);
    }
    if (out_.variables == Findings::kMostVariables) return static_cast<void>(++out_.more_variables);
    ChangedVariable& added = out_.variable[out_.variables++];
    added = {keep(name), {}, mark, set, child, 1};
    if (set && is_shown(name, plan_.show)) added.value = keep(value);
  }

  /// What lies in the buffer of an environment is overwritten by the next one.
  Text keep(Text text) {
    if (text.size > Findings::kMostBytes) text.size = Findings::kMostBytes;
    const int from = out_.values.text().size;
    out_.values.add_bytes(text);
    return out_.values.text().from(from);
  }

  inline static int queue_[Findings::kMostProcesses];
  const Plan& plan_;
  const Task& task_;
  const char* const* environment_;
  const Mask& planned_;
  Findings& out_;
  int count_ = 0;
};

}  // namespace hpclaunch::shim
