#pragma once
// One process: its threads, what they wait for, where they are in Python.
#include "live.h"
#include "waits.h"

namespace hpclaunch::shim {

struct Thread {
  Stat stat;
  int tid = 0;
  int inner = 0;  ///< in the process's own namespace
  unsigned long long cpu_ms = 0;
  unsigned long long slices = 0;  ///< how often it came to run
  python::State state;
};

/// Where a thread of a pool is that has nothing to do.
struct IdlePlace {
  Text file, function;
};
constexpr IdlePlace kIdlePlaces[] = {
    {"/concurrent/futures/thread.py", "_worker"},
    {"/concurrent/futures/process.py", "wait_result_broken_or_wakeup"},
    {"/multiprocessing/pool.py", "worker"},
    {"/multiprocessing/pool.py", "_wait_for_updates"},
    {"/multiprocessing/pool.py", "_handle_tasks"},
    {"/multiprocessing/pool.py", "_handle_results"},
    {"/multiprocessing/queues.py", "_feed"},
    {"/tqdm/_monitor.py", "run"},
};
/// In whose functions such a thread waits.
constexpr Text kWaitingFiles[] = {"/threading.py",
                                  "/queue.py",
                                  "/selectors.py",
                                  "/multiprocessing/queues.py",
                                  "/multiprocessing/connection.py",
                                  "/multiprocessing/synchronize.py"};

class Snapshot {
 public:
  Snapshot(int pid, bool all_threads, Output& out)
      : pid_(pid), all_threads_(all_threads), out_(out), walker_(memory_) {}

  /// Gives `use` the process's children. False: it has ended.
  template <class Use>
  bool write(Use use) {
    if (!stat_.read(read_file(process_path(pid_, "stat").text().at, bytes_))) return false;
    memory_.restart({pid_});
    read_status();
    read_threads(use);
    Line why;
    const bool has_stacks = find_python(why);
    write_head(why.text());
    if (has_stacks) walker_.each_thread([&](const python::State& state) { assign(state); });
    constexpr int kMostPlain = 16;  // threads of a process without Python
    int listed = 0;
    for (int i = 0; i < count_; ++i) {
      if (has_stacks && !all_threads_ && is_left_out(threads_[i])) continue;
      if (!has_stacks && !all_threads_ && listed++ == kMostPlain) {
        ++more_;
        break;
      }
      write_thread(threads_[i], has_stacks);
    }
    if (more_ > 0) out_.begin("cut").field("threads").end();
    write_sockets(pid_, out_);
    return true;
  }

 private:
  /// Of a line of /proc/PID/status and the like.
  Text value_of(const char* path, Text key) {
    Text rest = read_file(path, bytes_);
    for (Text line; rest.size > 0;) {
      cut(rest, '\n', line);
      if (starts_with(line, key)) return line.from(key.size);
    }
    return {};
  }
  /// The last of "NSpid:	4711	5".
  int inner_id(const char* path, int otherwise) {
    Text rest = value_of(path, "NSpid:\t");
    Text word;
    while (cut(rest, '\t', word)) {
    }
    int id = 0;
    return is_number(word, id) ? id : otherwise;
  }
  void read_status() {
    const Line path = process_path(pid_, "status");
    nested_ = inner_id(path.text().at, pid_) != pid_;
    Text ids = value_of(path.text().at, "Uid:\t");
    Text word;
    cut(ids, '\t', word);
    cut(ids, '\t', word);
    int user = 0;
    is_number(word, user);
    const auto self = static_cast<int>(call(SYS_geteuid));
    own_ = self == 0 || user == self;
  }

  template <class Use>
  void read_threads(Use use) {
    bool children = true;
    each_name(process_path(pid_, "task").text().at, [&](Text name) {
      int tid = 0;
      if (!is_number(name, tid)) return;
      children &= each_child(pid_, tid, use);
      if (count_ == python::kMostThreads) return static_cast<void>(++more_);
      Thread& one = threads_[count_];
      one = {};
      if (!one.stat.read(read_file(task_path(pid_, tid, "stat").text().at, bytes_))) return;
      ++count_;
      one.tid = tid;
      one.inner = nested_ ? inner_id(task_path(pid_, tid, "status").text().at, tid) : tid;
      read_schedule(one);
    });
    if (!children) each_process_below(use);
  }
  /// "RUNNING WAITING SLICES", the first two in ns. Kernels without it count ticks alone.
  void read_schedule(Thread& one) {
    one.cpu_ms = one.stat.cpu_ms;
    Text rest = first_line(task_path(pid_, one.tid, "schedstat").text().at, bytes_);
    Text word;
    unsigned long long ns = 0;
    cut(rest, ' ', word);
    if (is_bytes(word, ns)) one.cpu_ms = ns / 1'000'000;
    cut(rest, ' ', word);
    has_slices_ &= is_bytes(rest, one.slices);
    slices_ += one.slices;
  }
  /// Where the kernel does not list children.
  template <class Use>
  void each_process_below(Use use) {
    static char bytes[4096];
    each_name("/proc", [&](Text name) {
      int pid = 0;
      Stat stat;
      if (is_number(name, pid) &&
          stat.read(read_file(process_path(pid, "stat").text().at, bytes)) && stat.parent == pid_)
        use(pid);
    });
  }

  bool find_python(Line& why) {
    program_ = {};
    library_ = {};
    const long found = find_images(pid_, program_, library_);
    if (found != 0) return why_not(static_cast<int>(-found), why), false;
    const Image* const images[] = {&library_, &program_};
    bool good = false;
    for (const Image* const image : images) {
      int minor = image->major == 3 ? image->minor : 0;
      const python::Address runtime = find_runtime(memory_, pid_, *image, minor);
      if (minor > 0) minor_ = minor;
      if (runtime == 0) continue;
      good = walker_.begin(runtime, minor, why);
      minor_ = walker_.minor();
      break;
    }
    if (good || image_is_old(why)) return good;
    const int error = memory_.error();
    if (error != 0 && error != EFAULT) why_not(error, why);
    return false;
  }
  /// Without _PyRuntime.
  bool image_is_old(Line& why) {
    const Image& named = library_.major > 0 ? library_ : program_;
    if (named.major == 0 || (named.major == 3 && named.minor >= python::kOldest)) return false;
    why.cut_to(0);
    why.add("Python ").add(named.major).add(".").add(named.minor).add(" is older than 3.");
    return why.add(python::kOldest), true;
  }
  void why_not(int error, Line& why) {
    char scope[8] = {};
    why.cut_to(0);
    const Text yama = first_line("/proc/sys/kernel/yama/ptrace_scope", scope);
    if (!own_) return static_cast<void>(why.add("it belongs to another user"));
    if (error == EACCES) return static_cast<void>(why.add("it is undumpable"));
    if (error == EPERM && yama.size > 0 && !(yama == "0"))
      return static_cast<void>(why.add("Yama's ptrace_scope is ").add(yama));
    why.add("its memory cannot be read (");
    if (error == EPERM) why.add("Operation not permitted");
    if (error != EPERM) why.add("errno ").add(error);
    why.add(")");
  }

  void write_head(Text why) {
    constexpr int kMostWords = 256;
    unsigned long long bytes = 0;
    const bool known = read_bytes(bytes);
    out_.begin("process").number(static_cast<unsigned>(pid_));
    out_.number(static_cast<unsigned>(stat_.parent)).field({&stat_.state, 1});
    out_.number(stat_.cpu_ms).number(slices_, has_slices_).number(bytes, known);
    Line version;
    if (minor_ > 0) version.add("3.").add(minor_);
    out_.field(version.text()).field(stat_.name.text());
    Text words = read_file(process_path(pid_, "cmdline").text().at, bytes_);
    if (words.size > kMostWords) words.size = kMostWords;
    while (words.size > 0 && words.at[words.size - 1] == '\0') --words.size;
    for (int i = 0; i < words.size; ++i)
      if (bytes_[i] == '\0') bytes_[i] = ' ';
    out_.field(words).end();
    if (why.size > 0) out_.begin("unread").field(why).end();
  }
  bool read_bytes(unsigned long long& sum) {
    const Line path = process_path(pid_, "io");
    unsigned long long written = 0;
    const bool known = is_bytes(value_of(path.text().at, "rchar: "), sum) &&
                       is_bytes(value_of(path.text().at, "wchar: "), written);
    return sum += written, known;
  }

  /// Gives a thread of the interpreter to the thread of the process that it is.
  void assign(const python::State& state) {
#ifdef __aarch64__
    constexpr int kPlaces[] = {208, 32};
#else
    constexpr int kPlaces[] = {720, 48};
#endif  // of the number in a thread's descriptor: glibc's, musl's
    Thread* found = find_inner(state.native);
    for (const int place : kPlaces)
      if (found == nullptr)
        found = find_inner(memory_.get<int>(state.descriptor + static_cast<unsigned>(place)));
    if (found == nullptr && count_ == 1) found = threads_;
    if (found != nullptr && found->state.at == 0) found->state = state;
  }
  Thread* find_inner(int id) {
    for (int i = 0; i < count_ && id > 0; ++i)
      if (threads_[i].inner == id) return &threads_[i];
    return nullptr;
  }

  bool is_left_out(const Thread& one) {
    if (one.tid == pid_ || one.state.has_gil) return false;
    return one.state.at == 0 || is_idle(one);
  }
  bool is_idle(const Thread& one) {
    walker_.read(one.state, stack_);
    int line = 0;
    for (int i = 0; i < stack_.count; ++i) {
      if (!walker_.describe(stack_.frames[i], function_, file_, line)) continue;
      const Text file = file_.text();
      for (const IdlePlace& place : kIdlePlaces)
        if (ends_with(file, place.file) && ends_with(function_.text(), place.function)) return true;
      bool waits = false;
      for (const Text name : kWaitingFiles) waits |= ends_with(file, name);
      if (!waits) return false;
    }
    return stack_.count == 0;
  }

  void write_thread(const Thread& one, bool has_stacks) {
    static char wchan[128];
    constinit static Target target;
    const Text blocked = first_line(task_path(pid_, one.tid, "syscall").text().at, bytes_);
    const Blocked call(blocked);
    Text where = first_line(task_path(pid_, one.tid, "wchan").text().at, wchan);
    if (where == "0") where = {};
    target.cut_to(0);
    add_wait(target, memory_, pid_, call, where);
    out_.begin("thread").number(static_cast<unsigned>(one.tid)).field({&one.stat.state, 1});
    out_.word(one.tid == pid_ ? "main" : "-").number(one.cpu_ms).number(one.slices, has_slices_);
    out_.field(where);
    if (call.number == Blocked::kRunning) out_.word("running");
    if (call.number != Blocked::kRunning)
      out_.number(static_cast<unsigned long long>(call.number), call.number >= 0);
    out_.field(target.text()).word(one.state.has_gil ? "gil" : "-");
    out_.field(one.stat.name.text()).end();
    if (has_stacks && one.state.at != 0) write_frames(one);
  }
  void write_frames(const Thread& one) {
    walker_.read(one.state, stack_);
    for (int i = 0; i < stack_.count; ++i) {
      int line = 0;
      if (!walker_.describe(stack_.frames[i], function_, file_, line)) continue;
      out_.begin("frame").number(static_cast<unsigned>(line));
      out_.field(function_.text()).field(file_.text()).end();
    }
    if (stack_.more) out_.begin("cut").field("frames").end();
    if (stack_.changing) out_.begin("cut").field("changing").end();
  }

  int pid_;
  bool all_threads_;
  Output& out_;
  python::Walker<Pages<LiveProcess>> walker_;
  Stat stat_;
  int count_ = 0;
  int more_ = 0;  ///< threads that are left out
  int minor_ = 0;
  bool nested_ = false;
  bool own_ = false;  ///< of the same user, or we are root
  bool has_slices_ = true;
  unsigned long long slices_ = 0;
  constinit inline static Pages<LiveProcess> memory_;
  inline static Thread threads_[python::kMostThreads];
  inline static char bytes_[16384];
  inline static Image program_, library_;
  constinit inline static python::Stack stack_;
  constinit inline static python::Name function_, file_;
};

}  // namespace hpclaunch::shim
