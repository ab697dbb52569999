#pragma once
// verify --after: when a running rank is examined, and its report. docs/reference/verify-checks.md has the keys.
#include <signal.h>
#include <sys/prctl.h>
#include <sys/wait.h>

#include "facts.h"
#include "threads.h"

namespace hpclaunch::shim {

inline long long monotonic_ms() {
  timespec now = {};
  call(SYS_clock_gettime, CLOCK_MONOTONIC, &now);
  return static_cast<long long>(now.tv_sec) * 1000 + now.tv_nsec / 1'000'000;
}

/// From the start of a program to the report. It is large, hence static, and all zeros, so that the file has none of it.
class Examination {
 public:
  constexpr Examination() = default;

  /// Before the program starts. `environment` stays: what the program gets but for what hpclaunch removes.
  void begin(const Plan& plan, const Place& place, const Task& task, char** environment,
             const char* program) {
    plan_ = &plan;
    place_ = &place;
    task_ = &task;
    environment_ = environment;
    int seconds = 0;
    to_end_ = !is_number(plan.after, seconds);
    wait_ = to_end_ ? kFirstMs : seconds * 1000LL;
    observe(start_, environment, plan, place, task);
    if (place.local == 0) add_facts(start_, environment, plan, place, program);
  }

  /// The program, whose pid this is, has the CPUs of this process. Orphans become children of this process.
  void started(int program) {
    program_ = program;
    read_affinity(planned_);
    call(SYS_prctl, PR_SET_CHILD_SUBREAPER, 1, 0, 0, 0);
    begun_ = monotonic_ms();
    due_ = begun_ + wait_;
  }

  /// Until the next examination; -1: there is none.
  long long ms_left() const {
    if (due_ == 0) return -1;
    const long long left = due_ - monotonic_ms();
    return left > 0 ? left : 0;
  }

  void examine() {
    Findings& found = findings_[1 - last_];
    found.clear();
    const bool alive = Look(*plan_, *task_, environment_, planned_, found).run(program_);
    if (alive) last_ = 1 - last_;
    examined_ |= alive;
    wait_ = 2 * wait_ < kMostMs ? 2 * wait_ : kMostMs;
    due_ = to_end_ ? monotonic_ms() + wait_ : 0;
    if (!to_end_ && alive) write(nullptr);
  }

  bool written() const { return written_; }

  /// `end`: how the program ended, before it was examined or with --after end; else null.
  void write(const siginfo_t* end) {
    static Json lines;
    Json& out = start_;
    out.add(",\"after\":{");
    if (examined_)
      add_findings(out, findings_[last_]);
    else
      out.add("\"threads\":0");
    if (end != nullptr) {
      out.add(",\"ran\":")
          .add_wide(static_cast<unsigned long long>(monotonic_ms() - begun_) / 1000);
      out.add(end->si_code == CLD_EXITED ? ",\"exit\":" : ",\"signal\":").add(end->si_status);
    }
    static Json whole;
    whole.add("{\"clock\":").add_time(wall_clock(), 3).add(out.text()).add("}}");
    lines.add_bytes("\n");  // the program may have begun a line
    add_pieces(lines, whole.text(), *place_);
    write_all(1, lines.text());
    written_ = true;
  }

  /// After the program: what it has left behind.
  static void kill_rest() {
    for (bool some = true; some;) {
      some = false;
      each_child(own_pid(), own_pid(), [&](int child) {
        some = true;
        call(SYS_kill, child, SIGKILL);
      });
      siginfo_t end;
      if (some && call(SYS_waitid, P_ALL, 0, &end, WEXITED, nullptr) != 0) return;
    }
  }

 private:
  static void add_count(Json& out, Text key, int count) {
    if (count > 0) out.add(",\"").add(key).add("\":").add(count);
  }

  static void add_findings(Json& out, const Findings& found) {
    out.add("\"threads\":").add(found.threads).add(",\"processes\":").add(found.processes);
    add_count(out, "more_threads", found.more_threads);
    add_count(out, "more_variables", found.more_variables);
    add_count(out, "more_processes", found.more_processes);
    add_count(out, "hidden", found.hidden);
    add_count(out, "no_children", found.no_children ? 1 : 0);
    List groups(out, ",\"groups\":[", "]");
    for (int i = 0; i < found.groups; ++i) {
      const ThreadGroup& one = found.group[i];
      add_text(groups.next().add("{\"name\":"), Text(one.name, one.name_size));
      add_count(out, "child", one.child ? 1 : 0);
      out.add(",\"threads\":").add(one.threads).add(",\"each\":").add(one.each);
      out.add(",\"cpus\":\"").add(one.cpus).add("\"}");
    }
    groups.end();
    List changes(out, ",\"changes\":[", "]");
    for (int i = 0; i < found.variables; ++i) {
      const ChangedVariable& one = found.variable[i];
      add_text(changes.next().add("{\"name\":"), one.name);
      add_count(out, "child", one.child ? 1 : 0);
      add_count(out, "set", one.set ? 1 : 0);
      if (one.value.at != nullptr) add_text(out.add(",\"value\":"), one.value);
      out.add(",\"processes\":").add(one.processes).add("}");
    }
    changes.end();
  }

  static constexpr long long kFirstMs = 1000;  // with --after end; doubled up to kMostMs
  static constexpr long long kMostMs = 60'000;

  const Plan* plan_ = nullptr;
  const Place* place_ = nullptr;
  const Task* task_ = nullptr;
  char** environment_ = nullptr;
  Mask planned_;
  bool to_end_ = false;
  bool examined_ = false;
  bool written_ = false;
  int program_ = 0;
  int last_ = 0;
  long long begun_ = 0;
  long long wait_ = 0;
  long long due_ = 0;  ///< 0: never
  Findings findings_[2];
  Json start_;  ///< what the rank had before the program
};

}  // namespace hpclaunch::shim
