#pragma once
// Everything that touches the machine, apart from the probe and the event core (events.h).
#include <functional>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/rank_report.h"
#include "hpclaunch/result.h"
#include "hpclaunch/traceback.h"

namespace hpclaunch::sys {

EnvSnapshot environment();  ///< environ, once

/// The whole file. Errors: `not_found`, `system` (unreadable; larger than `max_bytes`).
Result<std::string> read_file(const std::string& path, std::size_t max_bytes = 64u << 20);

/// The same of a file that decides for its reader, such as a profile. Errors: also `invalid`, when it is writable
/// by others (a group of this user's name with no other member is not), or owned by none of root, this user, the
/// owner of the installation and the owners in /etc/hpclaunch/trusted-owners.
Result<std::string> read_trusted_file(const std::string& path, std::size_t max_bytes);

/// All of `text` in one write(2), when the file or pipe takes it. False, with errno: it does not.
bool write_all(int fd, std::string_view text);

/// Replaces what an existing file holds; its mode, owner and links stay. Errors: `system`.
Status rewrite_file(const std::string& path, std::string_view text);

std::string host_name();          ///< uname(2) nodename
std::string own_directory();      ///< directory of this executable, links resolved
std::string working_directory();  ///< absolute; "" when it cannot be told
unsigned user_id();
/// A folder that only this user can write, for what a restart may delete: $XDG_RUNTIME_DIR/hpclaunch, else
/// /tmp/hpclaunch-UID. "" when it does not exist and is not to be created, is a link, or others may use it.
std::string runtime_folder(bool create);
double wall_clock();  ///< UNIX time in seconds
/// Names in a directory, ascending, without "." and ".."; empty when there is no such directory.
/// Errors: `system` when it is there and cannot be read.
Result<std::vector<std::string>> list_directory(const std::string& path);
bool is_executable(const std::string& path);     ///< a regular file that we may execute
std::string real_path(const std::string& path);  ///< links resolved; `path` itself when that fails

/// Where the shell would find `program`: itself when it has a '/', made absolute; else the first
/// executable regular file of that name in `path_variable`.
/// Links are not resolved: a virtual environment's python is found through its link.
/// Errors: `program_not_found`; `not_executable` when all that is there cannot be executed.
Result<std::string> find_program(const std::string& program, std::string_view path_variable);

/// How a command ended and what it wrote.
struct Captured {
  int status = 0;  ///< as a shell has it: 128+n for signal n
  std::string out;
  std::string err;

  std::string complaint() const;  ///< first line of `err`; where that is empty, of `out`
};

/// Runs a command with `input` as its stdin to its end, whatever its exit status.
/// `env`: nullptr for ours. Errors: as exec; `system` when it runs past the limit (it is killed then).
Result<Captured> capture(const std::vector<std::string>& argv, double limit_seconds,
                         const EnvSnapshot* env = nullptr, std::string_view input = {});

/// A file that others write: it may appear late, shrink, or be replaced by another one, which then counts from its
/// first byte. Opened for each look, so that a network file system asks its server.
class GrowingFile {
 public:
  explicit GrowingFile(std::string path) : path_(std::move(path)) {}
  const std::string& path() const { return path_; }
  /// What is new, at most 1 MiB; "" for nothing.
  std::string more();
  bool seen() const { return inode_ != 0; }  ///< it has been there

 private:
  std::string path_;
  unsigned long long device_ = 0, inode_ = 0;
  long long offset_ = 0;
};

/// Replaces this process. Returns only on failure: `program_not_found`, `not_executable` or `system`.
/// The new program's signal mask is empty; a signal that was held ends this process. Descriptors in `keep` stay open in
/// the new program; whatever else we opened does not.
Error exec(const std::vector<std::string>& argv, const EnvSnapshot& env,
           const std::vector<int>& keep = {});

/// The kernel's range for outgoing connections, /proc/sys/net/ipv4/ip_local_port_range;
/// 32768..60999 when it cannot be read.
std::pair<int, int> ephemeral_ports();

/// A file of this user's that no other user can open, kept for the time that the machine is up; "ports". -1: none can be
/// had.
int open_private(const std::string& name);

/// Writes a file that counts as long as a process has the descriptor open that is returned, also across exec. -1: it
/// cannot be written.
int hold_file(const std::string& path, std::string_view text);
/// Texts of the files in a directory that are held; the others, which dead processes left, are removed.
std::vector<std::string> held_files(const std::string& folder);
/// A folder of this process alone: "/tmp/hpclaunch-stage-n1-x7Tq2a".
struct HeldFolder {
  std::string path;
  int lock = -1;  ///< until closed the folder counts; -1: the file system has no locks
};
/// Makes "PARENT/KIND-HOST-XXXXXX", mode 700, and removes those of this kind that processes of this user have left: on
/// this host where their lock is free, else, and without a lock, after two days. Errors: `system`.
Result<HeldFolder> hold_folder(const std::string& parent, const std::string& kind);
/// Waits until no other process has its turn at `path`, at most `seconds`; -1: it had none.
int take_turn(const std::string& path, double seconds);
void end_turn(int fd);

/// A free port, and the lock that reserves it among launches of hpclaunch by this user on this machine.
struct PortClaim {
  int port = 0;
  int lock =
      -1;  ///< until closed, also across exec when kept open; -1: the user has no directory for it
};

/// Claims the first of `candidates` that a program could listen on, on all addresses of this host, and
/// that no other hpclaunch of this user holds. With `host`, a port of that other host: not listened on.
/// Errors: `system` when there is none; the message has the first one's reason.
Result<PortClaim> claim_port(const std::vector<int>& candidates, const std::string& host = "");

/// The address by which other nodes reach this host, where `name` resolves to loopback addresses only: the first one
/// that is not link-local, of an interface that is up and not loopback; those of cards, and of what stands
/// above cards, before others, then IPv4 before IPv6. `name` where there is none; nullopt: `name` is good.
std::optional<std::string> outward_address(const std::string& name);

/// Addresses of `name` as text ("10.0.0.1", "fe80::1%eth0"), each once, in the resolver's order.
/// Errors: `system` with the resolver's reason.
Result<std::vector<std::string>> resolve(const std::string& name);

/// All addresses of this host as text, as resolve has them.
std::vector<std::string> own_addresses();

/// Interfaces of this host but loopback, in the kernel's order.
std::vector<Interface> interfaces();

/// The affinity mask of this process in list format, up to CpuSet::kCapacity CPUs; "" when unknown.
std::string affinity();

/// Resource limits of this process as a RankReport has them.
std::map<std::string, std::string> limits();

/// Processes of our control group that the kernel has killed for lack of memory so far; 0 where that cannot be read.
int oom_kills();

/// How a command that was listened to ended.
struct Ended {
  int status = 0;          ///< as a shell has it: 128+n for signal n
  bool too_late = false;   ///< it ran past the limit and was ended
  bool enough = false;     ///< it was ended because nothing more was needed of it
  int interrupted_by = 0;  ///< a signal to hpclaunch that ended the command; 0 for none
};

/// Nodes that have not started by then are named.
inline constexpr long kStartPatience = 30'000;  // ms

/// Runs `argv` and gives each line of its stdout, without the newline, to `line` with the UNIX time of
/// its arrival; stderr is ours. `late` is called once, after kStartPatience. Its stdin stays open and empty. When the limit has passed,
/// when `enough` says so after a line, or at SIGINT, SIGTERM or SIGHUP, it gets TERM and, `grace_seconds` later, KILL, and so does everything
/// that it has started and that has become our child. The three are held from then on.
/// Errors: as exec; `system` when there is no pipe or process.
Result<Ended> listen_to(const std::vector<std::string>& argv, const EnvSnapshot& env,
                        double limit_seconds, double grace_seconds,
                        const std::function<void(std::string_view, double)>& line,
                        const std::function<void()>& late = {},
                        const std::function<bool()>& enough = {});

/// How a rank ended.
struct RankExit {
  int rank = 0;
  int pid = 0;
  int exit_status = 0;  ///< when `signal` is 0
  int signal = 0;       ///< 0: it exited
  bool core = false;    ///< with a core dump
  int sent = 0;         ///< by the launcher before that, of the signals that end programs; 0: none
  double seconds = 0;   ///< after the start of the job
  long peak_kib = 0;    ///< the most memory that it, or a process it waited for, had; 0: unknown
  int oom_kills = 0;    ///< processes of its control group that the kernel killed for memory

  bool failed() const { return signal != 0 || exit_status != 0; }
  int status() const { return signal != 0 ? 128 + signal : exit_status; }
};

/// The rank that failed first, as far as it is known.
struct RankFailure : RankExit {
  int local_rank = 0;
  int node = 0;  ///< index in Hosts::names
  std::string host;
  std::vector<std::string> last_lines;
  Traceback traceback;  ///< in them
  std::string log;      ///< its file of --log-dir; "" for none
};

/// Ranks of one node whose end was not reported.
struct SilentRanks {
  std::string host;
  std::string ranks;  ///< "8-15"
  int count = 0;
  int node = 0;  ///< index in Hosts::names
  double gone_at =
      0;  ///< UNIX time at which their connection ended; 0: it did not, or there was none
  bool connected = false;   ///< some rank of the node was
  bool whole_node = false;  ///< gone, and nothing was heard of the node since
};

/// How a job went; --report writes it.
struct Ending {
  int status = 0;      ///< for our own exit
  double started = 0;  ///< UNIX time; 0: unknown
  std::optional<RankFailure> first;
  int ok = 0;                        ///< ranks that ended with 0
  int failed = 0;                    ///< on their own, `first` included
  int ended = 0;                     ///< by hpclaunch or the launcher
  std::vector<SilentRanks> silent;   ///< in node order
  std::vector<SilentRanks> lost;     ///< of these what failed before `first`
  std::optional<int> launcher_exit;  ///< nullopt: local, or killed
  std::optional<int> launcher_signal;
  int passed_on = 0;  ///< last signal of the user that was forwarded; 0: none
  /// The user's first one that ends programs; SIGPIPE: the reader of our output has exited; 0: none.
  int interrupted_by = 0;
  bool time_limit = false;  ///< that was the batch system at the end of the job's time
  bool stalled = false;     ///< --on-stall has ended it
  std::string stall = {};   ///< the last one that was seen, JSON: what all ranks did, and who hangs
  std::string stacks = {};  ///< the same, of LastLook
};

/// Of one rank, as hpclaunch-stacks has read it: docs/reference/stacks.md.
struct RankStacks {
  std::string host = {};
  std::string text = {};     ///< "" where there is none
  std::string missing = {};  ///< and why: "it has ended"
};

/// What to do after a look at all ranks (--stall).
struct StallStep {
  std::string say = {};     ///< whole lines for stderr
  bool end = false;         ///< the job
  int rank = -1;            ///< whose fault the stall is; -1: nobody's
  std::string record = {};  ///< for the report of the job: JSON
  long next_ms = 0;         ///< until the next look, where nothing is written meanwhile
};

/// Looks at ranks that are silent.
struct StallWatch {
  long first_ms = 0;  ///< of silence
  /// `quiet_ms`: since any rank has written
  std::function<StallStep(const std::vector<RankStacks>& ranks, long quiet_ms)> look;
};

/// Shortly before ranks are ended (`why`: "time-limit", "end-timeout", "kill"), and once more a second later: what they
/// do, as JSON for the report; "": none has answered. `so_far`: how the job stands then.
using LastLook = std::function<std::string(const std::vector<RankStacks>& ranks,
                                           std::string_view why, const Ending& so_far)>;

/// How ranks are asked what they do.
struct Asking {
  std::string reader =
      {};  ///< the program hpclaunch-stacks on this machine, for ranks of the local launcher
  int ras_port = 0;  ///< where NCCL answers on each node (NCCL_RAS_ADDR); 0: nowhere
  std::optional<StallWatch> watch = {};
  double job_ends_at = 0;  ///< UNIX time; 0: unknown
  std::vector<std::string> batch_daemons =
      {};  ///< programs that signal all processes of a job: "slurmstepd"
  LastLook last_look = {};
};

/// Does work in a copy of this process, which is not waited for: a file system may hang.
class Apart {
 public:
  Apart() = default;
  Apart(const Apart&) = delete;
  Apart& operator=(const Apart&) = delete;
  ~Apart();  ///< waits up to two seconds, so that what follows is later
  /// Nothing where the last one is still at work.
  void run(const std::function<void()>& work);

 private:
  bool ends_within(long ms);
  int at_work_ = -1;  // readable when it has ended
};

/// Asks the `hpclaunch run` with this process ID, which is this user's and on this machine. Within five seconds.
/// Errors: `not_found`: none listens; `system`: it has ended meanwhile.
Result<std::vector<RankStacks>> ask_stacks(int pid, bool all_threads);

/// Starts the ranks of a one-node plan on this machine and stays until they, and everything that they
/// started, have ended; docs/reference/local-launcher.md. The status is the first failed rank's, 128+n for signal
/// n, 0 when all ended well. The failure report goes to stderr.
/// `env` is the environment of every rank (HPCLAUNCH_PLAN in it), `shim` an absolute path.
/// Takes over SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT, and holds them until the exit.
/// Errors: `program_not_found` and `not_executable` for the shim, `system`; nothing runs then.
Result<Ending> run_local(const Plan& plan, const EnvSnapshot& env, const std::string& shim,
                         const Asking& asking);

/// `directory`, or where a launch has logged there before a new one below it, for the logs of ranks that other
/// processes open. Both are created, and rank 0's file. Errors: `system` with the path.
Result<std::string> claim_log_directory(const std::string& directory, int ranks);

/// Where hpclaunch listens for the monitors of the ranks.
struct ChannelPlace {
  std::vector<std::string>
      addresses;  ///< numeric, the best first; of one alone it listens there only
  int first_port = 0, last_port = 0;  ///< 0: any
};

/// Starts the launcher and stays beside it until it, and everything on this machine that it leaves, has
/// ended; docs/reference/supervise.md. `argv` is its launch line with an absolute argv[0], `env` its environment.
/// Supervision::termination says how it stops and forwards signals. Signals as run_local.
/// Errors: `program_not_found`, `not_executable`, `system` when the launcher cannot be started.
Result<Ending> run_supervised(const Plan& plan, const std::vector<std::string>& argv,
                              const EnvSnapshot& env, const ChannelPlace& place,
                              const Asking& asking);

/// A launch with one ssh for each node (docs/ssh.md).
struct SshJob {
  struct Node {
    std::string host;
    int ranks = 1;
  };
  std::vector<Node> nodes;
  std::vector<std::string> ssh;      ///< the program, absolute, and its options
  std::vector<std::string> command;  ///< the shim of this installation, then the program
  std::string libexec;               ///< folder of the shim and of what else a node must have
  bool label = false;
  bool verbose = false;
  double grace_seconds = 5;  ///< between a signal that ends the ranks and KILL
};

/// A launcher like mpiexec: stays until all ranks have ended. The status is that of the rank that failed first; 125
/// where a node did not start, 255 where one was lost. Signals as run_local. Errors: of what a node must have.
Result<int> launch_by_ssh(const SshJob& job, const EnvSnapshot& env);

}  // namespace hpclaunch::sys
