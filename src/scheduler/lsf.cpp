// LSF: three ways to name the hosts of a job, and the launch node of CORAL systems.
//
// Source: IBM Spectrum LSF, "Environment variables set for job execution"; MPICH Hydra reads
// LSB_MCPU_HOSTS (lsf_query_node_list.c), PyTorch Lightning drops the launch node of CORAL systems.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "scheduler/rows.h"

namespace hpclaunch {

namespace {

// "h1 4 h2 4": a host and its slots.
Result<std::string> lines_of_pairs(std::string_view words) {
  std::string lines;
  bool count = false;
  for (const std::string_view word : split(words, ' ')) {
    if (trim(word).empty()) continue;
    lines += count ? " slots=" : "";
    lines += word;
    if (count) lines += '\n';
    count = !count;
  }
  if (!count) return lines;
  return Error{ErrorKind::unsupported,
               fmt::format("LSB_MCPU_HOSTS=\"{}\": a host without its number of slots",
                           words.substr(0, 200)),
               "write the hosts into a file, one per line, and pass it with --hostfile"};
}

}  // namespace

Result<HostList> lsf_hosts(const EnvSnapshot& env, const Request&, const std::string& text,
                           const std::string& path) {
  const std::string job = env.get("LSB_JOBID");
  const auto named_by = [&](const char* variable) {
    return fmt::format("hosts of LSF job {} ({})", job, variable);
  };
  Result<HostList> hosts = Error{};
  if (!text.empty()) {
    hosts = hosts_from_text(text, path, "LSF host file " + path);
  } else if (env.has("LSB_MCPU_HOSTS")) {
    const Result<std::string> lines = lines_of_pairs(env.get("LSB_MCPU_HOSTS"));
    if (!lines) return lines.error();
    hosts = hosts_from_text(*lines, "LSB_MCPU_HOSTS", named_by("LSB_MCPU_HOSTS"));
  } else if (env.has("LSB_HOSTS")) {
    std::string lines = env.get("LSB_HOSTS");
    std::ranges::replace(lines, ' ', '\n');
    hosts = hosts_from_text(lines, "LSB_HOSTS", named_by("LSB_HOSTS"));
  } else {
    return Error{ErrorKind::unsupported,
                 fmt::format("LSF job {}: no host list; LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS and "
                             "LSB_HOSTS are not set",
                             job),
                 "pass the hosts with --hostfile FILE, or --nodes 1 for this machine alone"};
  }
  if (!hosts) return hosts;
  hosts->slots_are_cores = true;
  hosts->allocation = true;  // slots are repeated lines, which jsrun and mpirun know
  return hosts;
}

void drop_launch_node(std::optional<bool> by_profile, bool jsrun_here, HostList& hosts) {
  if (hosts.names.size() < 2 || by_profile == false) return;
  const std::vector<int>& slots = hosts.slots;
  const bool shape =
      slots.size() == hosts.names.size() && slots[0] <= 1 && slots[1] > 1 &&
      std::all_of(slots.begin() + 1, slots.end(), [&](int count) { return count == slots[1]; });
  if (by_profile != true && !(jsrun_here && shape)) {
    if (shape)
      hosts.why += fmt::format(
          "; {} has one slot, like a launch node: \"lsf_launch_node\": true in a profile removes "
          "it",
          hosts.names.front());
    return;
  }
  hosts.why +=
      by_profile == true
          ? fmt::format("; without {}, the launch node by the profile", hosts.names.front())
          : fmt::format(
                "; without {}, a launch node: it has one slot, the others {} each, and jsrun is on "
                "PATH",
                hosts.names.front(), slots[1]);
  hosts.names = HostNames(++hosts.names.begin(), hosts.names.end());
  if (!hosts.slots.empty()) hosts.slots.erase(hosts.slots.begin());
}

}  // namespace hpclaunch
