#pragma once
// Names of hosts and lists of them, as batch systems and host files write them.
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch {

/// One node and its ranks in a host file.
struct HostSlots {
  std::string name;
  int slots = 0;  ///< 0: the list does not say
  friend bool operator==(const HostSlots&, const HostSlots&) = default;
};

/// Reads a host file: a host per line, as "host", "host:4" (Hydra) or "host slots=4", also with "max_slots=8" (Open MPI). Blank
/// lines and what follows '#' do not count. A repeated host, as in a PBS node file, adds its
/// slots (one per line where none is written) and keeps its first place.
/// Errors: `invalid` with file and line; also when there is no host at all.
Result<std::vector<HostSlots>> parse_host_file(std::string_view text, const std::string& file);

/// The hosts of a list as Slurm and Flux write it, "n[1-3,08-11]-ib0,gpu1", in Slurm's order; repeated
/// hosts stay. Numbers get as many digits as the lower end of their range has.
/// Errors: `invalid` with the unreadable piece; no host; more than 1,000,000 hosts.
Result<std::vector<std::string>> expand_hostlist(std::string_view text);

/// The same the other way round, "n[1-3,08-11]-ib0,gpu1": neighbours that differ in one number share a bracket.
/// What is longer than `most` bytes ends in ",... (512 nodes)".
std::string host_ranges(const std::vector<std::string>& hosts, std::size_t most);

/// "4(x2),3" as SLURM_TASKS_PER_NODE has it: 4, 4, 3. Counts are 1 at least.
/// Errors: `invalid` with the unreadable piece; counts for more than 1,000,000 nodes.
Result<std::vector<int>> expand_tasks_per_node(std::string_view text);

/// What no host name has: "\"n1:2\" is not a host name". nullopt for a name.
std::optional<std::string> strange_in_host(std::string_view host);

/// True for text that is an address and no name: digits and dots only, or with a colon.
bool is_address(std::string_view host);

/// For maps of hosts: the name in lower case up to the first dot; an address whole.
std::string short_host(std::string_view host);

/// True when both name the same machine: letter case and what follows the first
/// dot do not count, unless both have a domain and the domains differ. Addresses must be equal.
bool same_host(std::string_view a, std::string_view b);

}  // namespace hpclaunch
