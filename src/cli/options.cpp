// The options that commands share.

#include <fmt/format.h>

#include <nlohmann/json.hpp>

#include "cli/command.h"
#include "hpclaunch/launcher_traits.h"
#include "hpclaunch/text.h"
#include "hpclaunch/verify.h"

namespace hpclaunch::cli {

namespace {

void declare_placement(Parser& parser, Request& request) {
  constexpr int kMost = 1'000'000;
  constexpr int kMostCores = 4'096;
  constexpr int kMostGroups = 127;
  parser.group("Placement", true);
  parser.number("-n,--ranks", request.ranks, "N", 1, kMost, "Total number of ranks");
  parser.range("-N,--nodes", request.least_nodes, request.nodes, "N|MIN:MAX", kMost,
               "Number of nodes: the first N hosts");
  parser.number("--node-rank", request.node_rank, "R", 0, kMost,
                "This node of --nodes N, of which each starts its own ranks");
  parser.number("--ppn,--ranks-per-node", request.ranks_per_node, "N", 1, kMost, "Ranks per node");
  parser.number("--ranks-per-device", request.ranks_per_device, "K", 1, kMostCores,
                "Ranks per device, or per part of it under --device-mode");
  parser.choice("--mps", request.mps, "HOW", {"auto", "on", "off"},
                "Start NVIDIA's MPS where ranks share a GPU; auto: as the profile says");
  parser.number("--devices-per-rank", request.devices_per_rank, "N", 0, kMostCores,
                "Devices per rank, near each other; 0: none visible");
  parser.number("--cpus-per-rank", request.cores_per_rank, "N", 1, kMostCores,
                "Cores per rank, with all their hardware threads");
  parser.number("--threads-per-core", request.threads_per_core, "N", 1, kMostCores,
                "Hardware threads used of each core; 1: the first of each");
  parser.text("--cpu-bind", request.cpu_bind, "LIST",
              "CPUs of each rank of a node: 0-3:8-11, or masks 0xf,0xf00");
  parser.flag("--oversubscribe", request.oversubscribe,
              "Allow more ranks than cores: hardware threads first, then shared ones");
  parser.flag("--free", request.free,
              "Only nodes, cores and devices that no other launch of the job uses");
  parser.path("--hostfile", request.hostfile, "FILE",
              "Hosts, one per line: host, host:4 or host slots=4");
  parser.marked("-H,--hosts", "--hostfile", kHostList, request.hostfile, "LIST",
                "Hosts, as in a,b:4 or node[1-4]:2");
  parser.number("--het-group", request.het_group, "N", 0, kMostGroups,
                "Component of a heterogeneous Slurm job");
  parser.path("--topology", request.topology, "FILE",
              "Node to plan for: hwloc XML, or JSON of hpclaunch topo");
  parser.named("--bind-via", request.bind_via, "WHO",
               {BindVia::launcher, BindVia::shim, BindVia::none}, "Who binds ranks to CPUs");
}

void declare_site(Parser& parser, Request& request) {
  parser.group("Site", true);
  parser.path("--profile", request.profile, "NAME", "Site profile (name, file, or none)",
              job::absolute_profile);
  parser.text("--stack", request.stack, "NAME", "Software stack of the profile");
  parser.text("--node-type", request.node_type, "NAME", "Node type of the profile");
  parser.text("--device-mode", request.device_mode, "NAME",
              "Part of a device per rank, as the profile names it: tile, gpu, ...");
  parser.choice("--gpu-view", request.gpu_view, "VIEW", {"own", "all", "launcher"},
                "Devices visible to a rank: its own, all, or as set by the launcher");
  parser.choice("--local-rank", request.local_rank, "WHAT", {"device", "node"},
                "LOCAL_RANK: index of the visible device, or place on the node");
}

void declare_environment(Parser& parser, Request& request) {
  parser.list("--module", request.modules, "NAME",
              "Load module NAME first; none: no module at all; repeatable");
  parser.paths("--module-use", request.module_folders, "DIR", "Search DIR for modules; repeatable");
  parser.path("--conda", request.conda, "NAME", "Activate a conda environment (name or prefix)",
              job::absolute_unless_name);
  parser.path("--venv", request.venv, "DIR", "Activate a virtual environment");
}

void declare_launch(Parser& parser, Request& request) {
  constexpr int kMostPorts = 65'535;
  constexpr int kMostRestarts = 1000;
  constexpr int kMostSeconds = 86'400;
  parser.group("Launch", true);
  parser.path("--launcher", request.launcher, "NAME|PATH", joined(kLauncherNames, ", "),
              job::absolute_unless_name);
  parser.list("--launcher-arg", request.launcher_args, "ARG",
              "Pass ARG to the launcher, as in --launcher-arg=-v; repeatable");
  parser.named("--verify", request.verify, "HOW", {Verify::warn, Verify::strict, Verify::off},
               "Wrong CPUs on a rank: warn, strict (stop), off");
  parser.named("--on-drift", request.on_drift, "HOW",
               {OnDrift::warn, OnDrift::fail, OnDrift::replan},
               "Node differs from the plan: warn, fail, or replan for it");
  parser.list("--env", request.env, "NAME[=VALUE]",
              "The same; without a value that of this shell; repeatable");
  parser.paths("--env-file", request.env_files, "FILE",
               "Variables from lines NAME=VALUE (dotenv); repeatable");
  parser.assignments("--set", request.set, "NAME=VALUE",
                     "Set a variable on every rank; repeatable");
  parser.list("--unset", request.unset, "NAME", "Remove a variable on every rank; repeatable");
  parser.text("--master-addr", request.master_addr, "HOST", "Rendezvous host (MASTER_ADDR)");
  parser.number("--master-port", request.master_port, "PORT", 1, kMostPorts,
                "Rendezvous port (MASTER_PORT)");
  parser.flag("--label", request.output.label, "Prefix output lines with the rank");
  parser.text("--local-ranks-filter", request.output.shown_ranks, "LIST",
              "Show the output of these ranks of each node only: 0,2-3");
  parser.path("--log-dir", request.output.log_dir, "DIR", "Write one log file per rank to DIR");
  parser.seconds("--grace", request.output.grace_seconds,
                 "Seconds from SIGTERM to SIGKILL when ranks are stopped");
  parser.number("--lost-after", request.output.lost_seconds, "SECONDS", 2, kMostSeconds,
                "A node that is silent for so long is lost (30)");
  parser.number("--end-timeout", request.output.end_seconds, "SECONDS", 1, kMostSeconds,
                "End ranks that stay so long after one has ended with 0");
  parser.number_or("--stall", "auto", kLearned, request.output.stall_seconds, "SECONDS",
                   kMostSeconds, "Say who hangs when no rank moves for so long; auto: learn it");
  parser.choice("--on-stall", request.output.on_stall, "WHAT", {"end", "restart"},
                "And then end the job, or start it again");
  parser.yes_no("--supervise", "--no-supervise", request.supervise,
                "Monitor the job: first failure, exact status, fail fast",
                "Replace hpclaunch with the launcher (exec)");
  parser.number("--max-restarts", request.max_restarts, "N", 0, kMostRestarts,
                "Start all ranks again after a failure, up to N times");
  parser.number("--spares", request.spares, "N", 1, kMostRestarts,
                "Nodes kept back to replace lost ones at a restart");
  parser.path("--report", request.output.report, "FILE", "Write a JSON job report to FILE");
  parser.text("--signal", request.signal, "SIGNAL@SECONDS",
              "Signal every rank before the allocation ends, as in USR1@300");
  parser.choice("--on-time-limit", request.on_time_limit, "WHAT", {"requeue"},
                "Queue the job again when its time limit has ended it");
  parser.text("--ends-in", request.ends_in, "HH:MM:SS",
              "Time left for --signal, where no batch system reports it");
  parser.number("--start-timeout", request.output.start_seconds, "SECONDS", 0, kMostSeconds,
                "Time for every node to start; 0: no limit (600; 0 under srun)");
}

void declare_container(Parser& parser, ContainerRequest& container) {
  parser.path("--container", container.image, "IMAGE",
              "Run the ranks inside an image (file, directory, or name)", job::absolute_image);
  parser.text("--container-engine", container.engine, "NAME",
              "apptainer, podman, pyxis, ...; default: the site's, or the one on PATH");
  parser.paths("--container-bind", container.binds, "SRC[:DST]",
               "Make a file or directory visible inside; repeatable", job::absolute_bind);
}

void declare_stage(Parser& parser, StageRequest& stage) {
  constexpr int kMostSeconds = 86'400;
  parser.choice("--stage", stage.method, "METHOD",
                {"auto", "none", "sbcast", "copy", "venv", "copper"},
                "Put software on nodes first");
  parser.path("--stage-from", stage.from, "PATH",
              "Archive, environment, requirements.txt; default: the active one");
  parser.path("--stage-to", stage.to, "DIR",
              "Directory of each node; default: SLURM_TMPDIR, the site's, /tmp");
  parser.number("--stage-timeout", stage.seconds, "SECONDS", 1, kMostSeconds,
                "Time limit of all steps (600)");
  parser.flag("--stage-keep", stage.keep, "Keep the copies for later launches");
}

}  // namespace

void declare_launch_options(Parser& parser, Request& request) {
  declare_placement(parser, request);
  declare_site(parser, request);
  declare_environment(parser, request);
  declare_launch(parser, request);
  declare_container(parser, request.container);
  declare_stage(parser, request.stage);
  parser.flag("--agent", request.agent, "One process per node that owns it, as ray or torchrun");
  parser.list("--for", request.frameworks, "NAME",
              "Also set what this framework reads, as jax; repeatable");
}

void declare_later_job(Parser& parser, Request& request) {
  parser.text("--job-id", request.job_id, "ID", "Id of a job that does not run yet");
  parser.text("--user", request.user, "NAME", "User of a job that does not run yet");
}

Status without_stage(const Request& request, const char* command) {
  if (request.stage.method.empty()) return Done{};
  return Error{ErrorKind::usage, fmt::format("{} puts nothing on the nodes: --stage", command),
               "omit it; hpclaunch explain with the same options shows the method"};
}

Error stopped(const char* what) {
  return Error{ErrorKind::usage, what, "fix the errors above, or use --force"};
}

job::OtherLines other_lines(const Session& session) {
  return [&session](std::string_view line) {
    std::fprintf(session.err, "%.*s\n", static_cast<int>(line.size()), line.data());
  };
}

nlohmann::ordered_json json_of(const std::vector<Diagnostic>& diagnostics) {
  auto list = nlohmann::ordered_json::array();
  for (const Diagnostic& one : diagnostics)
    list.push_back({{"id", one.id},
                    {"severity", to_string(one.severity)},
                    {"message", one.message},
                    {"fix", one.fix}});
  return list;
}

void declare_picture(Parser& parser, PictureArgs& args) {
  parser.flag("--picture", args.terminal, "Draw the node in the terminal");
  parser.text("--svg", args.svg, "FILE", "Draw the node as SVG to FILE, or to standard output",
              "-");
}

Status check_picture(const PictureArgs& args, int others) {
  if (others + (args.terminal ? 1 : 0) + (args.svg.empty() ? 0 : 1) > 1)
    return Error{ErrorKind::usage, "only one of --json, --xml, --picture and --svg is accepted",
                 "omit all but one, as --picture"};
  if (args.svg.empty() || args.svg == "-") return Done{};
  return job::check_file("--svg", args.svg);
}

int write_svg(const PictureArgs& args, const std::string& document, Session& session) {
  if (args.svg == "-") return print_all(session, document);
  const Status written = job::write_file("--svg", args.svg, document);
  return written ? 0 : report(session, written.error());
}

}  // namespace hpclaunch::cli
