#include "cli/options.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

#include "cli/suggest.h"

namespace hpclaunch::cli {

namespace {

constexpr int kMost = 1'000'000;
constexpr int kMostPorts = 65'535;

}  // namespace

std::string not_empty(const std::string& value) { return value.empty() ? "the value is empty" : ""; }

void declare_launch_options(CLI::App& app, LaunchArgs& args) {
  const char* placement = "Placement";
  app.add_option("-n,--ranks", args.ranks, "Ranks in all")->check(CLI::Range(1, kMost))->type_name("N")->group(placement);
  app.add_option("-N,--nodes", args.nodes, "Nodes to use, the first ones of the list")
      ->check(CLI::Range(1, kMost))->type_name("N")->group(placement);
  app.add_option("--ppn,--ranks-per-node", args.ranks_per_node, "Ranks on each node")
      ->check(CLI::Range(1, kMost))->type_name("N")->group(placement);
  app.add_option("--cpus-per-rank", args.cores_per_rank, "Cores for each rank, exactly; their hardware threads go with them")
      ->check(CLI::Range(1, 4096))->type_name("N")->group(placement);
  app.add_flag("--oversubscribe", args.oversubscribe, "Let ranks share cores when there are more ranks than cores")
      ->group(placement);
  app.add_option("--hostfile", args.hostfile, "Nodes, one per line: host, host:4 or host slots=4")
      ->check(not_empty)->type_name("FILE")->group(placement);
  app.add_option("--topology", args.topology, "Plan for this node instead of the live one: hwloc XML or JSON of hpclaunch topo")
      ->check(not_empty)->type_name("FILE")->group(placement);
  app.add_option("--bind-via", args.bind_via, "Who binds ranks to CPUs: launcher, shim or none")
      ->check(CLI::IsMember({"launcher", "shim", "none"}))->type_name("WHO")->group(placement);

  const char* launch = "Launch";
  app.add_option("--launcher", args.launcher, "local, hydra, or the path of an mpiexec")->check(not_empty)->type_name("NAME")->group(launch);
  app.add_option("--launcher-arg", args.launcher_args, "Pass one argument on to the launcher; repeatable")
      ->type_name("ARG")->allow_extra_args(false)->group(launch);
  app.add_option("--verify", args.verify, "When a rank did not get its CPUs: warn (and mend), strict (stop) or off")
      ->check(CLI::IsMember({"warn", "strict", "off"}))->type_name("HOW")->capture_default_str()->group(launch);
  app.add_option("--set", args.set, "Set a variable on every rank, over everything else; repeatable")
      ->type_name("NAME=VALUE")->allow_extra_args(false)->group(launch);
  app.add_option("--unset", args.unset, "Remove a variable on every rank; repeatable")
      ->type_name("NAME")->allow_extra_args(false)->group(launch);
  app.add_option("--master-addr", args.master_addr, "Where ranks meet: MASTER_ADDR")->check(not_empty)->type_name("HOST")->group(launch);
  app.add_option("--master-port", args.master_port, "Where ranks meet: MASTER_PORT")
      ->check(CLI::Range(1, kMostPorts))->type_name("PORT")->group(launch);
  app.add_flag("--label", args.label, "Begin each line of output with its rank")->group(launch);
  app.add_option("--log-dir", args.log_dir, "Also write one file per rank there")->check(not_empty)->type_name("DIR")->group(launch);
  app.add_option("--grace", args.grace_seconds, "Seconds between TERM and KILL when ranks are ended")
      ->check(CLI::Range(0.0, 86400.0))->type_name("SECONDS")->capture_default_str()->group(launch);
}

void declare_program(CLI::App& app) { app.prefix_command(); }

Result<std::vector<std::string>> program_of(const CLI::App& app, bool required) {
  std::vector<std::string> words = app.remaining();
  if (!words.empty() && words.front() == "--") {
    words.erase(words.begin());
  } else if (!words.empty() && words.front().starts_with('-') && words.front() != "-") {
    return unknown_option(app, words.front());
  }
  if (words.empty() && required)
    return Error{ErrorKind::usage, fmt::format("{}: no program to start", app.get_name()),
                 fmt::format("hpclaunch {} [OPTIONS] -- PROGRAM [ARG...]", app.get_name())};
  return words;
}

Result<std::vector<std::pair<std::string, std::string>>> assignments(const std::vector<std::string>& set) {
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
