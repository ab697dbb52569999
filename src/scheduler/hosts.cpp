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
  for (const std::string_view line : split(text, '\n')) {
    std::vector<std::string_view> words;
    for (const std::string_view word : split(line, ' '))
      if (!trim(word).empty()) words.push_back(trim(word));
    if (!words.empty()) lines += words.front();
    if (words.size() > 1) lines += fmt::format(" slots={}", words[1]);
    lines += '\n';
  }
  Result<HostList> hosts = hosts_from_text(lines, path, "SGE host file " + path);
  if (hosts) hosts->slots_are_cores = true;
  return hosts;
}

}  // namespace hpclaunch
