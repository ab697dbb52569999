// LSF: three ways to say which hosts a job has.
//
// Source: IBM Spectrum LSF, "Environment variables set for job execution"; MPICH Hydra reads
// LSB_MCPU_HOSTS (lsf_query_node_list.c), PyTorch Lightning drops the launch node of CORAL systems.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "job/hosts.h"

namespace hpclaunch::cli {

namespace {

std::string lines_of(std::string_view words) {
  std::string lines(words);
  std::replace(lines.begin(), lines.end(), ' ', '\n');
  return lines;
}

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

Result<Hosts> hosts_of_lsf(const EnvSnapshot& env) {
  const auto finished = [](Result<Hosts> hosts) {
    if (!hosts) return hosts;
    hosts->of_lsf = true;
    hosts->slots_are_cpus = true;
    hosts->allocation = true;  // slots are repeated lines, and jsrun and mpirun know them
    return hosts;
  };
  if (const std::string path = env.get("LSB_DJOB_HOSTFILE"); !path.empty()) {
    const Result<std::string> text = sys::read_file(path);
    if (text) return finished(hosts_from_text(*text, path, "LSF host file " + path));
    if (!env.has("LSB_MCPU_HOSTS") && !env.has("LSB_HOSTS"))
      return Error{ErrorKind::unsupported,
                   fmt::format("LSB_DJOB_HOSTFILE: {} on this machine ({})", text.error().message,
                               sys::host_name()),
                   "start hpclaunch from the job script, or --nodes 1 for this machine alone"};
  }
  const std::string job = env.get("LSB_JOBID");
  if (env.has("LSB_MCPU_HOSTS")) {
    const Result<std::string> lines = lines_of_pairs(env.get("LSB_MCPU_HOSTS"));
    if (!lines) return lines.error();
    return finished(hosts_from_text(*lines, "LSB_MCPU_HOSTS",
                                    fmt::format("the hosts of LSF job {} (LSB_MCPU_HOSTS)", job)));
  }
  if (env.has("LSB_HOSTS"))
    return finished(hosts_from_text(lines_of(env.get("LSB_HOSTS")), "LSB_HOSTS",
                                    fmt::format("the hosts of LSF job {} (LSB_HOSTS)", job)));
  return Error{ErrorKind::unsupported,
               fmt::format("LSF job {}: none of LSB_DJOB_HOSTFILE, LSB_MCPU_HOSTS and LSB_HOSTS "
                           "is set, which would name its hosts",
                           job),
               "pass the hosts with --hostfile FILE, or --nodes 1 for this machine alone"};
}

void drop_launch_node(std::optional<bool> by_profile, bool jsrun_here, Hosts& hosts) {
  if (!hosts.of_lsf || hosts.names.size() < 2 || by_profile == false) return;
  const std::vector<int>& slots = hosts.slots;
  const bool shape =
      slots.size() == hosts.names.size() && slots[0] <= 1 && slots[1] > 1 &&
      std::all_of(slots.begin() + 1, slots.end(), [&](int count) { return count == slots[1]; });
  if (by_profile != true && !(jsrun_here && shape)) {
    if (shape)
      hosts.why += fmt::format(
          "; {} has one slot, as a launch node would: \"lsf_launch_node\": true in a profile "
          "leaves it out",
          hosts.names.front());
    return;
  }
  hosts.why +=
      by_profile == true
          ? fmt::format("; without {}, the launch node by the profile", hosts.names.front())
          : fmt::format(
                "; without {}, a launch node: it has one slot, the others have {} "
                "each, and jsrun is here",
                hosts.names.front(), slots[1]);
  hosts.names.erase(hosts.names.begin());
  if (!hosts.slots.empty()) hosts.slots.erase(hosts.slots.begin());
  hosts.only_here = hosts.names.size() == 1 && same_host(hosts.names.front(), sys::host_name());
}

}  // namespace hpclaunch::cli
