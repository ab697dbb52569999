#pragma once
// What each rank of `hpclaunch verify` reports about itself and its node (docs/verify.md).
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch {

/// A network interface of the node.
struct Interface {
  std::string name;
  bool up = false;
  std::vector<std::string> addresses;  ///< IPv4 and IPv6 as text, link-local ones left out
  friend bool operator==(const Interface&, const Interface&) = default;
};

/// A directory that programs need room in.
struct Room {
  std::string path;
  std::string problem;                ///< "" when it is there and can be written
  unsigned long long free_bytes = 0;  ///< for us, without what is kept for root
  friend bool operator==(const Room&, const Room&) = default;
};

/// What is the same for all ranks of a node; the node's local rank 0 looks at it.
struct NodeFacts {
  std::string online;                        ///< CPUs that are there, in list format; "" unknown
  std::map<std::string, int> pci;            ///< display and accelerator devices, by vendor
  std::vector<std::string> gpus;             ///< PCI addresses of those of vendors that we know
  std::string numa;                          ///< NUMA nodes with CPUs, in list format; "" unknown
  std::vector<std::string> fabrics;          ///< devices of high-speed networks: "mlx5_0", "cxi0"
  std::vector<Interface> interfaces;         ///< without loopback
  std::string master;                        ///< MASTER_ADDR; "" when not set
  std::string master_problem;                ///< why it does not resolve; "" when it does
  std::vector<std::string> master_resolves;  ///< addresses, loopback among them
  std::string port_problem;                  ///< why MASTER_PORT is not free here; node 0 only
  std::string program_problem;               ///< why the program cannot be started; "" when it can
  std::vector<Room> rooms;
  friend bool operator==(const NodeFacts&, const NodeFacts&) = default;
};

/// What one rank found of itself.
struct RankReport {
  std::string host;  ///< uname(2) nodename
  int pid = 0;
  int rank = -1;  ///< of the plan: from the environment that the shim has made
  int local_rank = -1;
  int local_size = 0;
  int node = -1;
  int launcher_local_rank = -1;        ///< what the launcher itself says; -1: nothing, or not asked
  std::string cpus;                    ///< affinity mask, in list format
  std::string cpuset;                  ///< of the control group; "" where it cannot be read
  std::string memory_policy;           ///< "default", "bind", "local", ...; "" unknown
  std::string memory_nodes;            ///< of the policy, in list format
  std::string memory_allowed;          ///< NUMA nodes that the cpuset leaves; "" unknown
  std::map<std::string, int> devices;  ///< device files that this rank can open, by vendor
  std::vector<std::string> refused;    ///< device files that are there and cannot be opened
  std::string fingerprints;            ///< kFingerprint digits for each name that was asked for
  std::map<std::string, std::string> values;  ///< of placement variables that are set
  std::map<std::string, std::string> limits;  ///< "core", "core-hard", ...: bytes or "unlimited"
  double clock = 0;                           ///< UNIX time when the line was written
  std::string module;                         ///< imported before this report; "" for none
  std::string import_problem;                 ///< why it could not be imported
  std::string cpus_before;                    ///< before the import
  std::string fingerprints_before;
  std::optional<NodeFacts> facts;  ///< of local rank 0
  friend bool operator==(const RankReport&, const RankReport&) = default;
};

/// The line's first word; launchers may put a tag in front of it.
inline constexpr std::string_view kReportMark = "@hpclaunch-report ";

/// How many characters a fingerprint has.
inline constexpr std::size_t kFingerprint = 8;

/// The fingerprint of a variable that is not set.
inline constexpr std::string_view kNoFingerprint = "--------";

/// 32 bits of a hash as hexadecimal digits. Equal values give equal ones; a value that differs gives
/// another one but for one case in four billion.
std::string fingerprint(std::string_view value);

/// The report as one line, with mark and newline. Text that is not UTF-8 is replaced by U+FFFD.
std::string report_line(const RankReport& report);

/// The report in a line of a launcher's output, whatever stands around it. nullopt: there is none.
/// Errors: `invalid` when there is one and it cannot be read.
std::optional<Result<RankReport>> report_from_line(std::string_view line);

/// Slurm passes lines on whole up to this many bytes with the newline (MAX_MSG_LEN in its
/// src/slurmd/slurmstepd/io.c); longer ones it mixes with those of other ranks.
inline constexpr std::size_t kReportPiece = 1000;

/// report_line as lines of at most kReportPiece bytes: mark, "HOST:PID:RANK K/N SIZE " and SIZE bytes of it.
std::string report_pieces(const RankReport& report);

/// Puts such lines together again, of any number of ranks and in any order.
class ReportPieces {
 public:
  /// The report that `line` completes. nullopt: it is a piece of one, or none at all (`was_piece`).
  /// Errors: as report_from_line.
  std::optional<Result<RankReport>> take(std::string_view line, bool& was_piece);
  int unfinished() const {
    return static_cast<int>(parts_.size());
  }  ///< reports with pieces missing

 private:
  std::map<std::string, std::map<int, std::string>, std::less<>> parts_;
};

/// The report as a JSON object without fingerprints, for people and their programs.
std::string report_to_json(const RankReport& report);

/// True for variables whose value a report carries in the clear: ranks, device masks, threads and
/// their places, interfaces, the meeting point. Never a secret.
bool is_placement_variable(std::string_view name);

/// What is wrong with the interfaces that `value` of `variable` names, e.g. "ib0 is down"; "" when
/// nothing is. Sources: NCCL's manual (prefixes, "=" exact, "^" all others, lists), gloo's and
/// TensorPipe's device lookup (exact names; gloo takes a list), libfabric's fi_tcp(7), oneCCL's manual.
std::string interface_problem(std::string_view variable, std::string_view value,
                              const std::vector<Interface>& interfaces);

}  // namespace hpclaunch
