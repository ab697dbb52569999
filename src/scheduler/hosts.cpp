// Host lists from the text of a file or a command: SGE, and the user's own host file.
#include "hpclaunch/hosts.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {

Result<HostList> hosts_from_text(const std::string& text, const std::string& file,
                                 const std::string& what) {
  Result<HostFile> read = parse_host_file(text, file);
  if (!read) return read.error();
  HostList hosts;
  hosts.why = what;
  hosts.names = std::move(read->names);
  hosts.slots = std::move(read->slots);
  const bool repeated = std::ranges::max(hosts.slots) > 1;
  if (repeated)  // a host that is not repeated has one slot
    for (int& slots : hosts.slots) slots = std::max(1, slots);
  if (std::ranges::min(hosts.slots) == 0) hosts.slots.clear();
  if (!hosts.slots.empty()) hosts.slots_why = fmt::format("{} has a count for each node", what);
  hosts.allocation = !repeated;
  return hosts;
}

Result<HostNames> hosts_from_list(std::string_view list) {
  constexpr std::size_t kMostShown = 200;
  Result<HostNames> names = expand_hostlist(list);
  if (!names) return names;
  for (const std::string& host : names->samples())
    if (const auto strange = strange_in_host(host))
      return Error{ErrorKind::invalid, fmt::format("list of hosts: \"{}\" is not a host name: {}",
                                                   shown(host, kMostShown), *strange)};
  return names;
}

HostList hosts_from_names(HostNames names, std::string why) {
  HostList hosts;
  hosts.why = std::move(why);
  hosts.names = std::move(names);
  hosts.allocation = !merge_repeated(hosts.names, hosts.slots);
  return hosts;
}

// "host slots queue processors" per line; the latter two do not describe hosts.
Result<HostList> sge_hosts(const EnvSnapshot&, const Request&, const std::string& text,
                           const std::string& path) {
  std::string lines;
  for (std::size_t at = 0; at < text.size();) {
    const std::size_t end = std::min(text.find('\n', at), text.size());
    std::string_view line = trim(std::string_view(text).substr(at, end - at));
    at = end + 1;
    const auto word = [&] {
      const std::string_view first = line.substr(0, line.find_first_of(" \t"));
      line = trim(line.substr(first.size()));
      return first;
    };
    const bool long_line = line.size() > kMostOfHostLine;  // refused below, with its number
    lines += long_line ? line : word();
    if (const std::string_view slots = long_line ? "" : word(); !slots.empty())
      lines.append(" slots=").append(slots);
    lines += '\n';
  }
  Result<HostList> hosts = hosts_from_text(lines, path, "SGE host file " + path);
  if (hosts) hosts->slots_are_cores = true;
  return hosts;
}

}  // namespace hpclaunch
