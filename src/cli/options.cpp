#include "cli/options.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include "hpclaunch/launcher_traits.h"

namespace hpclaunch::cli {

namespace {

void declare_placement(Parser& parser, LaunchArgs& args) {
  constexpr int kMost = 1'000'000;
  constexpr int kMostCores = 4'096;
  constexpr int kMostGroups = 127;
  parser.group("Placement");
  parser.number("-n,--ranks", args.ranks, "N", 1, kMost, "Ranks in all");
  parser.number("-N,--nodes", args.nodes, "N", 1, kMost,
                "Nodes to use, the first ones of the list");
  parser.number("--ppn,--ranks-per-node", args.ranks_per_node, "N", 1, kMost, "Ranks on each node");
  parser.number("--ranks-per-device", args.ranks_per_device, "K", 1, kMostCores,
                "Ranks that share one device, or one part of it under --device-mode; in order");
  parser.number("--devices-per-rank", args.devices_per_rank, "N", 0, kMostCores,
                "Devices, or parts of them, for each rank, near one another; 0: ranks see none");
  parser.number("--cpus-per-rank", args.cores_per_rank, "N", 1, kMostCores,
                "Cores for each rank, exactly; their hardware threads go with them");
  parser.flag("--oversubscribe", args.oversubscribe,
              "Let ranks share cores when there are more ranks than cores");
  parser.text("--hostfile", args.hostfile, "FILE",
              "Nodes, one per line: host, host:4 or host slots=4");
  parser.number("--het-group", args.het_group, "N", 0, kMostGroups,
                "Component of a heterogeneous Slurm job that the ranks run in");
  parser.text("--topology", args.topology, "FILE",
              "Plan for this node instead of the live one: hwloc XML, or JSON of hpclaunch topo");
  parser.choice("--bind-via", args.bind_via, "WHO", {"launcher", "shim", "none"},
                "Who binds ranks to CPUs");
}

void declare_site(Parser& parser, LaunchArgs& args) {
  parser.group("Site");
  parser.text("--profile", args.profile, "NAME",
              "What is known of the site: a name of hpclaunch profile list, a file, or none");
  parser.text("--stack", args.stack, "NAME", "Which of the site's software stacks");
  parser.text("--node-type", args.node_type, "NAME", "Which of the site's kinds of nodes");
  parser.text("--device-mode", args.device_mode, "NAME",
              "What one rank gets of a device, as the profile names it: tile, gpu, ...");
  parser.choice(
      "--gpu-view", args.gpu_view, "VIEW", {"own", "all", "launcher"},
      "What a rank sees: its own device, all of them, or what the launcher's flags leave");
  parser.choice("--local-rank", args.local_rank, "WHAT", {"device", "node"},
                "LOCAL_RANK: device indexes what the rank sees, node is its place on the node");
}

void declare_launch(Parser& parser, LaunchArgs& args) {
  constexpr int kMostPorts = 65'535;
  parser.group("Launch");
  parser.text("--launcher", args.launcher, "NAME",
              fmt::format("{}, or the path of one", fmt::join(kLauncherNames, ", ")));
  parser.list("--launcher-arg", args.launcher_args, "ARG",
              "Pass one argument on to the launcher, as in --launcher-arg=-v; repeatable");
  parser.choice("--verify", args.verify, "HOW", {"warn", "strict", "off"},
                "When a rank did not get its CPUs: warn (and mend), strict (stop) or off");
  parser.choice("--on-drift", args.on_drift, "HOW", {"warn", "fail", "replan"},
                "When this node is not the planned one: warn, fail, or replan for this one");
  parser.list("--set", args.set, "NAME=VALUE",
              "Set a variable on every rank, over everything else; repeatable");
  parser.list("--unset", args.unset, "NAME", "Remove a variable on every rank; repeatable");
  parser.text("--master-addr", args.master_addr, "HOST", "Where ranks meet: MASTER_ADDR");
  parser.number("--master-port", args.master_port, "PORT", 1, kMostPorts,
                "Where ranks meet: MASTER_PORT");
  parser.flag("--label", args.label, "Begin each line of output with its rank");
  parser.text("--log-dir", args.log_dir, "DIR", "Also write one file per rank there");
  parser.seconds("--grace", args.grace_seconds,
                 "Seconds between TERM and KILL when ranks are ended");
  parser.flag("--supervise", args.supervise,
              "Stay beside the launcher: first failure, exact status, fail fast");
  parser.flag("--no-supervise", args.no_supervise, "Become the launcher instead");
  parser.text("--report", args.report, "FILE", "Write how the job went there, as JSON");
  parser.text("--signal", args.signal, "SIGNAL@SECONDS",
              "Send every rank SIGNAL so long before the allocation ends, as USR1@300");
  parser.text("--ends-in", args.ends_in, "HH:MM:SS",
              "With --signal, where no batch system says it: when the allocation ends");
}

}  // namespace

void declare_launch_options(Parser& parser, LaunchArgs& args) {
  declare_placement(parser, args);
  declare_site(parser, args);
  declare_launch(parser, args);
}

Result<std::vector<std::pair<std::string, std::string>>> assignments(
    const std::vector<std::string>& set) {
  std::vector<std::pair<std::string, std::string>> pairs;
  for (const std::string& text : set) {
    const std::size_t equals = text.find('=');
    if (equals == std::string::npos || equals == 0)
      return Error{ErrorKind::usage, fmt::format("--set: \"{}\" is not NAME=VALUE", text),
                   "write --set NAME=VALUE; the value may be empty"};
    pairs.emplace_back(text.substr(0, equals), text.substr(equals + 1));
  }
  return pairs;
}

Result<std::optional<bool>> supervise_from(const LaunchArgs& args) {
  if (args.supervise && args.no_supervise)
    return Error{ErrorKind::usage, "--supervise and --no-supervise contradict each other",
                 "leave one of them out"};
  if (args.supervise) return std::optional<bool>(true);
  if (args.no_supervise) return std::optional<bool>(false);
  return std::optional<bool>();
}

std::optional<BindVia> bind_via_from(const std::string& name) {
  for (const BindVia via : {BindVia::launcher, BindVia::shim, BindVia::none})
    if (name == to_string(via)) return via;
  return std::nullopt;
}

Verify verify_from(const std::string& name) {
  for (const Verify verify : {Verify::off, Verify::strict})
    if (name == to_string(verify)) return verify;
  return Verify::warn;
}

}  // namespace hpclaunch::cli
