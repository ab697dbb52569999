// `hpclaunch bind`: one rank, started by somebody else.
#include <memory>

#include "cli/command.h"
#include "hpclaunch/start.h"

namespace hpclaunch::cli {

Runner declare_bind(Parser& parser) {
  constexpr int kMost = 1'000'000;
  constexpr int kMostCores = 4'096;
  auto args = std::make_shared<job::BindRequest>();
  Request& request = args->launch;
  parser.group("Place");
  parser.number("--local-rank", args->local_rank, "R", 0, kMost,
                "Rank on this node, from 0; else by the launcher's variables");
  parser.number("--local-size", args->local_size, "N", 1, kMost, "Ranks on this node");
  parser.group("Binding");
  parser.number("--cpus-per-rank", request.cores_per_rank, "N", 1, kMostCores,
                "Physical cores per rank");
  parser.number("--threads-per-core", request.threads_per_core, "N", 1, kMostCores,
                "Hardware threads of each core");
  parser.text("--cpu-bind", request.cpu_bind, "LIST",
              "CPUs of each rank of the node: 0-3:8-11, or masks 0xf,0xf00");
  parser.number("--devices-per-rank", request.devices_per_rank, "N", 0, kMostCores,
                "Devices of each rank");
  parser.choice("--gpu-view", request.gpu_view, "VIEW", {"own", "all", "launcher"},
                "Devices visible to the rank: its own, all, or as set by the launcher");
  parser.choice("--mem", args->memory, "HOW", {"none", "preferred", "bind"},
                "Memory on the rank's NUMA nodes");
  parser.flag("--strict", args->strict, "End with 125 where what was planned cannot be done");
  parser.group("Site");
  parser.path("--profile", request.profile, "NAME", "Site profile (name, file, or none)",
              job::absolute_profile);
  parser.text("--node-type", request.node_type, "NAME", "Node type of the profile");
  parser.path("--topology", request.topology, "FILE", "Node to plan for, in place of this one");
  parser.assignments("--set", request.set, "NAME=VALUE", "Set a variable; repeatable");
  parser.list("--unset", request.unset, "NAME", "Remove a variable; repeatable");
  parser.flag("-v,--verbose", args->verbose, "Print where the rank is, and what it got");
  parser.takes_program(request.command, true);
  parser.footer(
      "Exit status: the program's, which replaces hpclaunch; 125 hpclaunch failed before, 126 "
      "program not executable, 127 program not found.");
  return [args](Session& session) { return job::bind(*args, session); };
}

}  // namespace hpclaunch::cli
