#pragma once
// Everything that touches the machine, apart from the probe. docs: each function says what it asks.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/env.h"
#include "hpclaunch/plan.h"
#include "hpclaunch/result.h"

namespace hpclaunch::sys {

EnvSnapshot environment();  ///< environ, once

/// The whole file. Errors: `not_found`, `system` (unreadable; larger than `max_bytes`).
Result<std::string> read_file(const std::string& path, std::size_t max_bytes = 64u << 20);

std::string host_name();          ///< uname(2) nodename
std::string own_directory();      ///< directory of this executable, links resolved
std::string working_directory();  ///< absolute; "" when it cannot be told
unsigned user_id();
/// Names in a directory, ascending, without "." and ".."; empty when there is no such directory.
/// Errors: `system` when it is there and cannot be read.
Result<std::vector<std::string>> list_directory(const std::string& path);
/// True when somebody else than its owner may change the file or replace it: the file is writable by
/// group or world, or belongs to neither us nor root.
bool others_may_write(const std::string& path);
bool is_executable(const std::string& path);     ///< a regular file that we may execute
std::string real_path(const std::string& path);  ///< links resolved; `path` itself when that fails

/// Where the shell would find `program`: itself when it has a '/', made absolute; else the first
/// executable regular file of that name in `path_variable`.
/// Links are not resolved: a virtual environment's python is found through its link.
/// Errors: `program_not_found`; `not_executable` when all that is there cannot be executed.
Result<std::string> find_program(const std::string& program, std::string_view path_variable);

/// stdout and stderr of a command together, with stdin from /dev/null; whatever its exit status.
/// Errors: `system` when it cannot be started or runs past the limit (it is killed then).
Result<std::string> capture(const std::vector<std::string>& argv, double limit_seconds);

/// Replaces this process. Returns only on failure: `program_not_found`, `not_executable` or `system`.
/// Descriptors in `keep` stay open in the new program; whatever else we opened does not.
Error exec(const std::vector<std::string>& argv, const EnvSnapshot& env,
           const std::vector<int>& keep = {});

/// The kernel's range for outgoing connections, /proc/sys/net/ipv4/ip_local_port_range;
/// 32768..60999 when it cannot be read.
std::pair<int, int> ephemeral_ports();

/// A port that nobody listens on, and the lock that keeps other launches of ours away from it.
struct PortClaim {
  int port = 0;
  int lock =
      -1;  ///< held until closed, also across exec when kept open; the port itself stays unbound
};

/// Claims the first of `candidates` that a program could listen on, on all addresses of this host, and
/// that no other hpclaunch of this network namespace holds.
/// Errors: `system` when there is none; the message has the first one's reason.
Result<PortClaim> claim_port(const std::vector<int>& candidates);

/// The address by which other nodes reach this host, when its name leads to loopback only: the first
/// IPv4 address of an interface that is up and not loopback. nullopt: there is none.
std::optional<std::string> outward_address();

/// True when `name` resolves to loopback addresses only.
bool resolves_to_loopback(const std::string& name);

/// Starts the ranks of a one-node plan on this machine and stays until they, and everything that they
/// started, have ended; docs/local-launcher.md. Returns the exit status for the process: the first
/// failed rank's, 128+n for signal n, 0 when all ended well. Reports the failure on stderr itself.
/// `env` is the environment of every rank (HPCLAUNCH_PLAN in it), `shim` an absolute path.
/// Takes over SIGINT, SIGTERM, SIGHUP, SIGQUIT, SIGUSR1, SIGUSR2, SIGTSTP and SIGCONT meanwhile.
/// Errors: `program_not_found` and `not_executable` for the shim, `system`; nothing runs then.
Result<int> run_local(const Plan& plan, const EnvSnapshot& env, const std::string& shim);

}  // namespace hpclaunch::sys
