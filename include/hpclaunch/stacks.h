#pragma once
// Stacks of the ranks of a job: read from the text of hpclaunch-stacks (docs/reference/stacks.md), merged to one tree, and
// judged: who waits for whom, and where. Pure.
#include <map>
#include <set>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/progress.h"
#include "hpclaunch/result.h"

namespace hpclaunch::stacks {

struct Frame {
  std::string function;  ///< "Trainer.step"
  std::string file;      ///< "/home/ann/train.py"
  int line = 0;          ///< 0: unknown
  friend auto operator<=>(const Frame&, const Frame&) = default;
};

struct Thread {
  int tid = 0;
  char state = '?';  ///< of /proc: 'S'
  bool main = false;
  long cpu_ms = 0;
  long switches = 0;
  std::string wchan;     ///< "futex_wait_queue"
  int system_call = -1;  ///< -1: unknown; -2: it runs
  std::string
      waits_for;  ///< "tcp 10.0.0.2:4711", "file /data/x"; with its own end where that is known: "tcp PEER OWN"
  bool has_gil = false;
  std::string name;           ///< "pt_nccl_watchdg"
  std::vector<Frame> frames;  ///< outermost first
};

struct Process {
  int pid = 0;
  int parent = 0;
  char state = '?';
  long cpu_ms = 0;
  long switches = 0;    ///< of all threads
  long bytes = -1;      ///< read and written; -1: unknown
  std::string python;   ///< "3.11"; "": not Python
  std::string name;     ///< "python3"
  std::string command;  ///< "python3 train.py"
  std::string unread;   ///< why there are no stacks of it; "" where there are
  std::vector<Thread> threads;
  std::map<std::string, std::string> sockets;  ///< own address -> peer, "" for one that listens
};

struct Rank {
  int rank = 0;
  std::string host;
  double at = 0;                   ///< UNIX time
  std::vector<Process> processes;  ///< the program, then those that it started
  std::vector<std::string> cut;    ///< what was left out: "frames"
  std::vector<std::string> ras;    ///< lines of the answer of NCCL's RAS
  std::string missing;             ///< why nothing else is known: kNoAnswer, ...
};

struct Snapshot {
  std::vector<Rank> ranks;  ///< all of the job, in order
};

/// What is too much is cut and named in Rank::cut. Errors: `invalid`, `unsupported` (of a later version).
Result<Rank> parse(int rank, std::string host, std::string_view text);

struct TreeOptions {
  int width = 100;  ///< columns
  bool all_threads =
      false;           ///< and all processes; else the main threads, and workers that are not idle
  int rank = -1;       ///< this one alone; -1: all
  int most_lines = 0;  ///< 0: all
};

/// A prefix tree (as STAT's): frames from the outermost in, ranks as sets, what each waits for as a leaf.
std::string tree_text(const Snapshot& snapshot, const TreeOptions& options = {});

/// The rank did not move between the two: the same stack, and no processor time, switches or bytes; or it waits for other
/// ranks by the same stack, busy or not.
bool is_still(const Rank& before, const Rank& now);

/// For `run --stall`: follows the job over snapshots, a tenth of the limit apart or less.
class Stall {
 public:
  explicit Stall(double limit) : limit_(limit) {}
  /// True once per stall: no rank has moved for the limit, and not all are waiting for a request, a person or a clock. A
  /// rank that is busy outside of all collectives counts after three times the limit at one line. `output`: when a rank
  /// has written last. Both in the clock of `now`, seconds.
  /// `dumps`: ranks were asked to write one since the last snapshot, so that bytes are no movement.
  bool add(const Snapshot& snapshot, double now, double output, const Sequences& sequences = {},
           bool dumps = false);

 private:
  struct Seen {
    Rank last;
    double still_since = 0;  ///< is_still
    double quiet_since = 0;  ///< the same, and the thread did not run
    double line_since =
        0;  ///< at the same innermost line, without bytes and without children that compute
  };
  double limit_;
  std::map<int, Seen> seen_;
  std::map<std::string, std::map<int, long>> launched_;  ///< by group
  double launched_since_ = 0;
  bool told_ = false;
};

struct Verdict {
  enum class Kind {
    moves,        ///< nothing to say: the job moves, or too little is known
    serving,      ///< a rank waits for a request or a person, the others for it
    gone,         ///< a rank's node does not answer, or it has ended
    stopped,      ///< SIGSTOP
    driver,       ///< in the kernel: a disk or a driver
    outside,      ///< a rank is not where the others wait
    dead_worker,  ///< a process that a rank waits for has died
    mismatch,     ///< ranks are in different collectives
    deadlock,     ///< ranks wait for each other
    same_place,   ///< all wait in the same place
    unknown,
  };
  enum class Sure { unknown, likely, certain };
  Kind kind = Kind::moves;
  Sure sure = Sure::unknown;
  std::vector<int> culprits, waiters;
  std::vector<std::string> hosts;  ///< of the culprits, each once
  std::string place;    ///< last user frame of the first culprit: "train.py:41 step"; "" unknown
  std::string doing;    ///< "sleeps", "reads file /data/x"
  std::string waiting;  ///< of most waiters: "in all_reduce at train.py:88 main"
  std::vector<std::string> evidence;  ///< sentences without full stop
  std::string advice;                 ///< one line
};

/// `before` may be empty; then nothing is certain that needs two looks. `sequences_before`: of the time of `before`.
Verdict judge(const Snapshot& before, const Snapshot& now, const Sequences& sequences = {},
              const Sequences& sequences_before = {});

/// At most 12 lines of `width` columns.
std::string text(const Verdict& verdict, int width = 100);

std::string_view to_string(Verdict::Kind kind);
std::string_view to_string(Verdict::Sure sure);

/// An object with "verdict", where there is one, and "ranks".
std::string to_json(const Snapshot& snapshot, const Verdict* verdict = nullptr);

}  // namespace hpclaunch::stacks
