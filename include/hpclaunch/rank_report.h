#pragma once
// What each rank of `hpclaunch verify` reports about itself and its node (docs/reference/verify.md).
#include <array>
#include <map>
#include <memory>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/result.h"

namespace hpclaunch {

/// A network interface of the node.
struct Interface {
  std::string name;
  bool up = false;
  std::vector<std::string> addresses;  ///< IPv4 and IPv6 as text, without link-local ones
  friend bool operator==(const Interface&, const Interface&) = default;
};

/// A directory in which programs need free space.
struct Room {
  std::string path;
  std::string problem;                ///< "" when it exists and is writable
  unsigned long long free_bytes = 0;  ///< available to the user
  friend bool operator==(const Room&, const Room&) = default;
};

/// What is the same for all ranks of a node; reported by local rank 0.
struct NodeFacts {
  std::string online;                        ///< CPUs, in list format; "" unknown
  std::vector<std::string> gpus;             ///< PCI addresses of planned devices that are there
  std::string numa;                          ///< NUMA nodes with CPUs, in list format; "" unknown
  std::vector<std::string> fabrics;          ///< devices of high-speed networks: "mlx5_0", "cxi0"
  std::vector<Interface> interfaces;         ///< without loopback
  std::string master;                        ///< MASTER_ADDR; "" when not set
  std::string master_problem;                ///< why it does not resolve; "" when it does
  std::vector<std::string> master_resolves;  ///< addresses, loopback among them
  std::vector<std::string> host_resolves;    ///< what the node's own name leads to there
  std::string port_problem;                  ///< why MASTER_PORT is not free here; node 0 only
  std::string program_problem;               ///< why the program cannot be started; "" when it can
  std::vector<Room> rooms;
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

/// Threads of one name whose CPUs are not the rank's.
struct ThreadGroup {
  std::string name;    ///< without a number behind it: "pt_autograd_"
  bool child = false;  ///< in processes that the program started
  int threads = 0;
  int each = 0;      ///< CPUs of each thread
  std::string cpus;  ///< of all of them, in list format
  friend bool operator==(const ThreadGroup&, const ThreadGroup&) = default;
};

/// A variable that processes have in another way than the rank had it.
struct ChangedVariable {
  std::string name;
  bool child = false;
  bool set = false;
  std::string value;  ///< of placement variables
  int processes = 0;
  friend bool operator==(const ChangedVariable&, const ChangedVariable&) = default;
};

/// A rank while its program runs (verify --after).
struct Examined {
  int threads = 0;    ///< that were examined; 0: the program ended before that
  int processes = 0;  ///< the program's own among them
  std::vector<ThreadGroup> groups;
  std::vector<ChangedVariable> changes;
  int more_threads = 0;    ///< that differ and are in no group
  int more_variables = 0;  ///< the same of changes
  int more_processes = 0;  ///< not examined
  int hidden = 0;          ///< processes whose environment could not be read
  int no_children = 0;     ///< 1: the kernel does not list what a process has started
  int ran = -1;            ///< seconds, where the program has ended; -1: it runs
  int exit = -1;           ///< its status; -1: a signal, or it runs
  int signal = 0;
  friend bool operator==(const Examined&, const Examined&) = default;
};

/// What one rank observed of itself, where it differs from the plan: what is empty, or -1, is as planned, and without
/// `limits` also what it has in common with most ranks (Observed::usual). Complete reports have the rest too.
struct RankReport {
  int launcher_local_rank = -1;               ///< from the launcher's own variable; -1 unknown
  std::string cpus;                           ///< affinity mask, in list format
  std::string cpus_given;                     ///< by the launcher, where planned ones are missing
  std::string cpuset;                         ///< of the control group; "" where it cannot be read
  std::string memory_policy;                  ///< "default", "bind", "local", ...; "" unknown
  std::string memory_nodes;                   ///< of the policy, in list format
  std::string memory_allowed;                 ///< NUMA nodes of the cpuset; "" unknown
  std::map<std::string, int> devices;         ///< device files that this rank can open, by vendor
  std::vector<std::string> refused;           ///< device files that exist and cannot be opened
  std::map<std::string, std::string> values;  ///< of placement variables that are set
  std::map<std::string, std::string> limits;  ///< "core", "core-hard", ...: bytes or "unlimited"
  std::string import_problem;                 ///< why a module could not be imported
  std::map<std::string, std::string> variables;  ///< fingerprints of those that differ
  bool imported = false;                         ///< a module, and what follows was before that
  std::string cpus_before;
  std::map<std::string, std::string> variables_before;
  std::optional<NodeFacts> facts;  ///< of local rank 0
  std::optional<Examined> after;   ///< with --after
  friend bool operator==(const RankReport&, const RankReport&) = default;
};

/// The first word of a line; launchers may put a tag in front of it.
inline constexpr std::string_view kReportMark = "@hpclaunch-report ";

/// Characters of a fingerprint.
inline constexpr std::size_t kFingerprint = 8;

/// The fingerprint of a variable that is not set.
inline constexpr std::string_view kNoFingerprint = "--------";

/// FNV-1a of 32 bits as hexadecimal digits.
std::string fingerprint(std::string_view value);

/// Slurm keeps lines whole up to this many bytes with the newline (MAX_MSG_LEN in its
/// src/slurmd/slurmstepd/io.c), and mixes longer lines with those of other ranks. A report is written (src/shim) as
/// lines of at most this size: mark, "HOST:PID:RANK K/N SIZE " and SIZE bytes of its JSON.
inline constexpr std::size_t kReportPiece = 1000;

/// A report as it is kept: what many ranks have in common is kept once.
struct RankSeen {
  std::string host;  ///< uname(2) nodename
  int pid = 0;
  int rank = -1;     ///< of the plan, from the environment
  double clock = 0;  ///< UNIX time when the line was written
  std::shared_ptr<const RankReport> found;
};

/// Joins such lines, of any number of ranks and in any order, with any text around them.
class ReportPieces {
 public:
  /// The report that `line` completes. nullopt: none yet, or no piece at all (`was_piece`).
  /// Errors: `invalid` for a piece or a report that cannot be read.
  std::optional<Result<RankSeen>> take(std::string_view line, bool& was_piece);
  /// Reports with missing pieces.
  int unfinished() const { return static_cast<int>(parts_.size()); }

 private:
  Result<RankSeen> read(std::string_view sender, std::string_view object);

  std::map<std::string, std::map<int, std::string>, std::less<>> parts_;
  std::map<std::string, std::shared_ptr<const RankReport>, std::less<>> known_;  // by text
};

/// A complete report as a JSON object without fingerprints, for --json. `module`: imported before it; "" for none.
std::string report_to_json(const RankSeen& seen, const RankPlace& place, const RankReport& report,
                           const std::string& module);

/// Variables whose value a report shows: ranks, device masks, threads, interfaces, rendezvous; a '*' at the end
/// stands for any text.
const std::vector<std::string_view>& placement_variables();
bool is_placement_variable(std::string_view name);

/// Variables that name the interfaces of the job's traffic.
inline constexpr std::array<std::string_view, 6> kInterfaceVariables = {
    "CCL_KVS_IFACE",      "FI_SOCKETS_IFACE",   "FI_TCP_IFACE",
    "GLOO_SOCKET_IFNAME", "NCCL_SOCKET_IFNAME", "TP_SOCKET_IFNAME"};

/// What is wrong with the interfaces that `value` of `variable` names, e.g. "ib0 is down"; "" when
/// all are usable. Sources: NCCL's manual (prefixes, "=" exact, "^" all others, lists), gloo's and
/// TensorPipe's device lookup (exact names; gloo takes a list), libfabric's fi_tcp(7), oneCCL's manual.
std::string interface_problem(std::string_view variable, std::string_view value,
                              const std::vector<Interface>& interfaces);

}  // namespace hpclaunch
