#include "cli/options.h"

#include <fmt/format.h>

namespace hpclaunch::cli {

namespace {

void declare_placement(Parser& parser, Request& request) {
  constexpr int kMost = 1'000'000;
  constexpr int kMostCores = 4'096;
  constexpr int kMostGroups = 127;
  parser.group("Placement");
  parser.number("-n,--ranks", request.ranks, "N", 1, kMost, "Ranks in all");
  parser.number("-N,--nodes", request.nodes, "N", 1, kMost,
                "Nodes to use, the first ones of the list");
  parser.number("--ppn,--ranks-per-node", request.ranks_per_node, "N", 1, kMost,
                "Ranks on each node");
  parser.number("--ranks-per-device", request.ranks_per_device, "K", 1, kMostCores,
                "Ranks that share one device, or one part of it under --device-mode; in order");
  parser.number("--devices-per-rank", request.devices_per_rank, "N", 0, kMostCores,
                "Devices, or parts of them, for each rank, near one another; 0: ranks see none");
  parser.number("--cpus-per-rank", request.cores_per_rank, "N", 1, kMostCores,
                "Cores for each rank, exactly; their hardware threads go with them");
  parser.flag("--oversubscribe", request.oversubscribe,
              "Let ranks share cores when there are more ranks than cores");
  parser.text("--hostfile", request.hostfile, "FILE",
              "Nodes, one per line: host, host:4 or host slots=4");
  parser.number("--het-group", request.het_group, "N", 0, kMostGroups,
                "Component of a heterogeneous Slurm job that the ranks run in");
  parser.text("--topology", request.topology, "FILE",
              "Plan for this node instead of the live one: hwloc XML, or JSON of hpclaunch topo");
  parser.named("--bind-via", request.bind_via, "WHO",
               {BindVia::launcher, BindVia::shim, BindVia::none}, "Who binds ranks to CPUs");
}

void declare_site(Parser& parser, Request& request) {
  parser.group("Site");
  parser.text("--profile", request.profile, "NAME",
              "What is known of the site: a name of hpclaunch profile list, a file, or none");
  parser.text("--stack", request.stack, "NAME", "Which of the site's software stacks");
  parser.text("--node-type", request.node_type, "NAME", "Which of the site's kinds of nodes");
  parser.text("--device-mode", request.device_mode, "NAME",
              "What one rank gets of a device, as the profile names it: tile, gpu, ...");
  parser.choice(
      "--gpu-view", request.gpu_view, "VIEW", {"own", "all", "launcher"},
      "What a rank sees: its own device, all of them, or what the launcher's flags leave");
  parser.choice("--local-rank", request.local_rank, "WHAT", {"device", "node"},
                "LOCAL_RANK: device indexes what the rank sees, node is its place on the node");
}

void declare_launch(Parser& parser, Request& request) {
  constexpr int kMostPorts = 65'535;
  parser.group("Launch");
  parser.text(
      "--launcher", request.launcher, "NAME",
      "flux, hydra, intelmpi, jsrun, local, openmpi, pals, prrte, slurm, or the path of one");
  parser.list("--launcher-arg", request.launcher_args, "ARG",
              "Pass one argument on to the launcher, as in --launcher-arg=-v; repeatable");
  parser.named("--verify", request.verify, "HOW", {Verify::warn, Verify::strict, Verify::off},
               "When a rank did not get its CPUs: warn (and mend), strict (stop) or off");
  parser.named("--on-drift", request.on_drift, "HOW",
               {OnDrift::warn, OnDrift::fail, OnDrift::replan},
               "When this node is not the planned one: warn, fail, or replan for this one");
  parser.assignments("--set", request.set, "NAME=VALUE",
                     "Set a variable on every rank, over everything else; repeatable");
  parser.list("--unset", request.unset, "NAME", "Remove a variable on every rank; repeatable");
  parser.text("--master-addr", request.master_addr, "HOST", "Where ranks meet: MASTER_ADDR");
  parser.number("--master-port", request.master_port, "PORT", 1, kMostPorts,
                "Where ranks meet: MASTER_PORT");
  parser.flag("--label", request.output.label, "Begin each line of output with its rank");
  parser.text("--log-dir", request.output.log_dir, "DIR", "Also write one file per rank there");
  parser.seconds("--grace", request.output.grace_seconds,
                 "Seconds between TERM and KILL when ranks are ended");
  parser.yes_no("--supervise", "--no-supervise", request.supervise,
                "Stay beside the launcher: first failure, exact status, fail fast",
                "Become the launcher instead");
  parser.text("--report", request.output.report, "FILE", "Write how the job went there, as JSON");
  parser.text("--signal", request.signal, "SIGNAL@SECONDS",
              "Send every rank SIGNAL so long before the allocation ends, as USR1@300");
  parser.text("--ends-in", request.ends_in, "HH:MM:SS",
              "With --signal, where no batch system says it: when the allocation ends");
}

}  // namespace

void declare_launch_options(Parser& parser, Request& request) {
  declare_placement(parser, request);
  declare_site(parser, request);
  declare_launch(parser, request);
}

}  // namespace hpclaunch::cli
