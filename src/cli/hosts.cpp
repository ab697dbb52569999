#include "cli/hosts.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/job.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

Result<Hosts> from_list(const std::string& path, const std::string& what) {
  const Result<std::string> text = sys::read_file(path);
  if (!text) return text.error();
  const Result<std::vector<HostSlots>> read = parse_host_file(*text, path);
  if (!read) return read.error();
  Hosts hosts;
  hosts.why = fmt::format("{} {}", what, path);
  for (const HostSlots& host : *read) {
    hosts.names.push_back(host.name);
    if (host.slots > 0) hosts.slots.push_back(host.slots);
  }
  if (hosts.slots.size() != hosts.names.size()) hosts.slots.clear();
  if (!hosts.slots.empty()) hosts.slots_why = fmt::format("{} has a count for each node", what);
  hosts.only_here = hosts.names.size() == 1 && (same_host(hosts.names.front(), sys::host_name()) ||
                                                hosts.names.front() == "localhost");
  return hosts;
}

}  // namespace

Result<Hosts> find_hosts(const LaunchArgs& args, const EnvSnapshot& env) {
  if (!args.hostfile.empty()) return from_list(args.hostfile, "host file");
  if (env.has("PBS_JOBID") && !env.get("PBS_NODEFILE").empty())
    return from_list(env.get("PBS_NODEFILE"), "PBS node file");
  const long nodes = parse_natural(env.get("SLURM_JOB_NUM_NODES", "1")).value_or(1);
  if (env.has("SLURM_JOB_ID") && nodes > 1 && args.nodes.value_or(2) > 1)
    return Error{
        ErrorKind::unsupported,
        fmt::format(
            "this Slurm job has {} nodes, and hpclaunch does not read Slurm's node list yet",
            nodes),
        "scontrol show hostnames > hosts.txt, then hpclaunch ... --hostfile hosts.txt; or --nodes "
        "1"};
  Hosts hosts;
  hosts.names = {sys::host_name()};
  hosts.why = "this machine";
  hosts.only_here = true;
  return hosts;
}

namespace {

// What a program with a launcher's name turns out to be; nullopt when it does not answer.
std::optional<LauncherIdentity> ask(const std::string& path) {
  constexpr double kSeconds = 5;
  const Result<std::string> text = sys::capture({path, "--version"}, kSeconds);
  if (!text) return std::nullopt;
  return identify_launcher(sys::real_path(path), *text);
}

Error no_launcher(const std::vector<std::string>& instead, const std::string& wanted) {
  std::string message = wanted.empty() ? "no launcher on PATH that hpclaunch speaks"
                                       : fmt::format("launcher {} is not on PATH", wanted);
  if (!instead.empty()) message += fmt::format("; found {}", fmt::join(instead, ", "));
  return Error{ErrorKind::program_not_found, message,
               "load MPICH's module or install it, or name its mpiexec with --launcher PATH"};
}

Result<Launcher> search(const std::string& wanted, const EnvSnapshot& env) {
  std::vector<std::string> instead;
  for (const Dialect& dialect : dialects()) {
    if (!wanted.empty() && dialect.name != wanted) continue;
    for (const std::string_view program : dialect.programs) {
      const Result<std::string> path = sys::find_program(std::string(program), env.get("PATH"));
      if (!path) continue;
      const std::optional<LauncherIdentity> identity = ask(*path);
      if (identity && identity->name == dialect.name) {
        std::string why =
            wanted.empty() ? "the first launcher on PATH that hpclaunch speaks" : "--launcher";
        why += fmt::format(": {} is {} {}", *path, identity->name, identity->version);
        return Launcher{&dialect, {*path, identity->version}, why};
      }
      instead.push_back(identity
                            ? fmt::format("{} ({} {})", *path, identity->name, identity->version)
                            : fmt::format("{} (unknown)", *path));
    }
  }
  return no_launcher(instead, wanted);
}

Result<Launcher> at_path(const std::string& program, const EnvSnapshot& env) {
  const Result<std::string> path = sys::find_program(program, env.get("PATH"));
  if (!path) return path.error();
  const std::optional<LauncherIdentity> identity = ask(*path);
  const Dialect* dialect = identity ? find_dialect(identity->name) : nullptr;
  if (dialect == nullptr)
    return Error{
        ErrorKind::unsupported,
        identity
            ? fmt::format("\"{}\" is {} {}, which hpclaunch does not speak yet", *path,
                          identity->name, identity->version)
            : fmt::format("\"{} --version\" prints nothing that tells which launcher it is", *path),
        "use MPICH's mpiexec, or on one node --launcher local"};
  return Launcher{dialect, {*path, identity->version}, fmt::format("--launcher {}", program)};
}

}  // namespace

Result<Launcher> find_launcher(const LaunchArgs& args, const EnvSnapshot& env, const Hosts& hosts) {
  const Dialect* local = find_dialect("local");
  const LauncherFacts self{sys::own_directory() + "/hpclaunch", ""};
  if (args.launcher == local->name) return Launcher{local, self, "--launcher"};
  if (args.launcher.find('/') != std::string::npos) return at_path(args.launcher, env);
  if (!args.launcher.empty()) {
    if (find_dialect(args.launcher) != nullptr) return search(args.launcher, env);
    std::vector<std::string> names;
    for (const Dialect& dialect : dialects()) names.emplace_back(dialect.name);
    const auto near = nearest(args.launcher, names);
    return Error{ErrorKind::usage, fmt::format("no launcher \"{}\"", args.launcher),
                 near
                     ? "--launcher " + *near
                     : fmt::format("one of {}, or the path of an mpiexec", fmt::join(names, ", "))};
  }
  const bool first_is_here = same_host(hosts.names.front(), sys::host_name());
  if (hosts.only_here || (args.nodes == 1 && first_is_here))
    return Launcher{local, self, "one node, this one: no launcher is needed"};
  return search("", env);
}

}  // namespace hpclaunch::cli
