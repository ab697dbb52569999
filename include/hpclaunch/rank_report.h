#pragma once
// What each rank of `hpclaunch verify` reports about itself and its node (docs/reference/verify.md).
#include <array>
#include <map>
#include <memory>
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
  std::map<std::string, int> pci;            ///< display and accelerator devices, by vendor
  std::vector<std::string> gpus;             ///< PCI addresses of supported vendors
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

/// What one rank observed of itself. The rank compares with the plan: of a `brief` report what is empty, or -1, is as
/// planned, and without `limits` also what it has in common with most ranks (Observed::usual).
struct RankReport {
  std::string host;  ///< uname(2) nodename
  int pid = 0;
  int rank = -1;  ///< of the plan, from the environment
  int local_rank = -1;
  int local_size = 0;
  int node = -1;
  int launcher_local_rank = -1;               ///< from the launcher's own variable; -1 unknown
  std::string cpus;                           ///< affinity mask, in list format
  std::string cpuset;                         ///< of the control group; "" where it cannot be read
  std::string memory_policy;                  ///< "default", "bind", "local", ...; "" unknown
  std::string memory_nodes;                   ///< of the policy, in list format
  std::string memory_allowed;                 ///< NUMA nodes of the cpuset; "" unknown
  std::map<std::string, int> devices;         ///< device files that this rank can open, by vendor
  std::vector<std::string> refused;           ///< device files that exist and cannot be opened
  std::string fingerprints;                   ///< kFingerprint digits for each requested name
  std::map<std::string, std::string> values;  ///< of placement variables that are set
  std::map<std::string, std::string> limits;  ///< "core", "core-hard", ...: bytes or "unlimited"
  double clock = 0;                           ///< UNIX time when the line was written
  std::string module;                         ///< imported before this report; "" for none
  std::string import_problem;                 ///< why it could not be imported
  std::string cpus_before;                    ///< before the import
  std::string fingerprints_before;
  bool brief = false;
  std::map<std::string, std::string> variables;  ///< brief: fingerprints of those that differ
  std::map<std::string, std::string> variables_before;
  bool imported = false;           ///< brief: `module` has been imported
  std::optional<NodeFacts> facts;  ///< of local rank 0
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
/// src/slurmd/slurmstepd/io.c), and mixes longer lines with those of other ranks.
inline constexpr std::size_t kReportPiece = 1000;

/// A report as it is kept: what many ranks have in common is kept once.
struct RankSeen {
  std::string host;
  int pid = 0;
  int rank = -1;
  double clock = 0;
  std::shared_ptr<const RankReport> found;
};

/// The report as lines of at most kReportPiece bytes: mark, "HOST:PID:RANK K/N SIZE " and SIZE bytes of its
/// JSON. Text that is not UTF-8 is replaced by U+FFFD.
std::string report_pieces(const RankSeen& seen);

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

/// The report as a JSON object without fingerprints, for --json.
std::string report_to_json(const RankReport& report);

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
