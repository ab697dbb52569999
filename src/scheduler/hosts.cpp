// Host lists from the text of a file or a command: SGE, Flux, and the user's own host file.
#include "hpclaunch/hosts.h"

#include <fmt/format.h>

#include <algorithm>
#include <set>

#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {

Result<HostList> hosts_from_text(const std::string& text, const std::string& file,
                                 const std::string& what) {
  const Result<std::vector<HostSlots>> read = parse_host_file(text, file);
  if (!read) return read.error();
  HostList hosts;
  hosts.why = what;
  const bool repeated =
      std::ranges::any_of(*read, [](const HostSlots& host) { return host.slots > 1; });
  for (const HostSlots& host : *read) {
    hosts.names.push_back(host.name);
    // Where others are repeated, a host that is not has one slot.
    const int slots = repeated ? std::max(1, host.slots) : host.slots;
    if (slots > 0) hosts.slots.push_back(slots);
  }
  if (hosts.slots.size() != hosts.names.size()) hosts.slots.clear();
  if (!hosts.slots.empty()) hosts.slots_why = fmt::format("{} has a count for each node", what);
  hosts.allocation = !repeated;
  return hosts;
}

HostList hosts_from_names(const std::vector<std::string>& names, std::string why) {
  HostList hosts;
  hosts.why = std::move(why);
  std::set<std::string_view> known;
  for (const std::string& name : names)
    if (known.insert(name).second) hosts.names.push_back(name);
  hosts.allocation = hosts.names.size() == names.size();
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

Result<HostList> flux_hosts(const EnvSnapshot&, const Request&, const std::string& text,
                            const std::string&) {
  const Result<std::vector<std::string>> names = expand_hostlist(text);
  // A message of flux itself has a colon; no host name does.
  if (names && !names->empty() && text.find(':') == std::string::npos)
    return hosts_from_names(*names, "nodes of the Flux instance");
  return Error{ErrorKind::unsupported,
               fmt::format("\"flux hostlist local\" printed no host list: {}",
                           trim(text.substr(0, text.find('\n')))),
               "flux hostlist -e local > hosts.txt, then --hostfile hosts.txt; or --nodes 1"};
}

}  // namespace hpclaunch
