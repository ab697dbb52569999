#include "job/launchers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "hpclaunch/hosts.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

// What a program with a launcher's name turns out to be; nullopt when it does not answer.
std::optional<LauncherIdentity> ask(const std::string& path) {
  constexpr double kSeconds = 5;
  const Result<std::string> text = sys::capture({path, "--version"}, kSeconds);
  if (!text) return std::nullopt;
  return identify_launcher(sys::real_path(path), *text);
}

// The same by the path alone: without starting anything, and often without an answer.
std::optional<LauncherIdentity> look_at(const std::string& path) {
  const std::string real = sys::real_path(path);
  std::string_view name = evident_launcher(real);
  const std::string folder = real.substr(0, real.rfind('/') + 1);
  if ((name.empty() || name == "hydra") &&
      sys::is_executable(folder + std::string(kBesideIntelMpi)))
    name = "intelmpi";
  if (name.empty()) return std::nullopt;
  const auto known = identify_launcher(real, "");
  return LauncherIdentity{std::string(name), known ? known->version : ""};
}

std::string shown(const std::string& path, const std::optional<LauncherIdentity>& identity) {
  if (!identity) return fmt::format("{} (unknown)", path);
  return identity->version.empty()
             ? fmt::format("{} ({})", path, identity->name)
             : fmt::format("{} ({} {})", path, identity->name, identity->version);
}

Error no_launcher(const std::vector<std::string>& instead, std::string_view wanted) {
  std::string message = wanted.empty() ? "no launcher on PATH that hpclaunch speaks"
                                       : fmt::format("launcher {} is not on PATH", wanted);
  if (!instead.empty()) message += fmt::format("; found {}", fmt::join(instead, ", "));
  return Error{
      ErrorKind::program_not_found, message,
      wanted.empty() || wanted == "hydra"
          ? "load the module of an MPI or install one, or name its mpiexec with --launcher PATH"
          : "load the module that brings it, or name its program with --launcher PATH"};
}

ChosenLauncher local_launcher(std::string why, std::string remark = "") {
  return ChosenLauncher{find_launcher("local"),
                        {sys::own_directory() + "/hpclaunch", ""},
                        std::move(why),
                        std::move(remark)};
}

enum class Trust {
  asked,  ///< a shared name has to say what it is
  taken,  ///< a shared name is taken for what is wanted, unless it is evidently another's
};

// One launcher, by what its program is called.
Result<ChosenLauncher> by_name(const Launcher& launcher, const EnvSnapshot& env, Trust trust,
                               std::string_view who) {
  std::vector<std::string> instead;
  for (const std::string_view program : launcher.programs) {
    const Result<std::string> path = sys::find_program(std::string(program), env.get("PATH"));
    if (!path) continue;
    const bool must_say = launcher.shared_names && trust == Trust::asked;
    auto identity = must_say || launcher.by_version ? ask(*path) : look_at(*path);
    if (!identity && !must_say) identity = look_at(*path);
    const bool is_it = identity ? identity->name == launcher.name : !must_say;
    if (is_it || !launcher.shared_names) {
      const std::string version = is_it && identity ? identity->version : "";
      return ChosenLauncher{&launcher,
                            {*path, version},
                            fmt::format("{}: {} is {}{}{}", who, *path, launcher.name,
                                        version.empty() ? "" : " ", version),
                            ""};
    }
    instead.push_back(shown(*path, identity));
  }
  return no_launcher(instead, launcher.name);
}

Result<ChosenLauncher> not_here(const Launcher& launcher, const Error& error,
                                std::string_view who) {
  return ChosenLauncher{&launcher,
                        {std::string(launcher.programs.front()), ""},
                        std::string(who),
                        fmt::format("{}: the plan is for a machine that has it", error.message)};
}

// Programs with a launcher's name, in the order of PATH: what stands first there was put there by a module
// for this job. In one directory the order of the launchers decides.
std::vector<std::string> candidates(const EnvSnapshot& env) {
  const std::string path = env.get("PATH");
  const std::vector<std::string_view> directories = split(path, ':');
  std::vector<std::pair<std::ptrdiff_t, std::string>> found;
  for (const Launcher& launcher : launchers()) {
    if (!launcher.shared_names) continue;
    for (const std::string_view program : launcher.programs) {
      const Result<std::string> at = sys::find_program(std::string(program), path);
      if (!at) continue;
      const std::string_view home = std::string_view(*at).substr(0, at->rfind('/'));
      const auto place = std::find(directories.begin(), directories.end(), home);
      found.emplace_back(place - directories.begin(), *at);
    }
  }
  std::stable_sort(found.begin(), found.end(),
                   [](const auto& x, const auto& y) { return x.first < y.first; });
  std::vector<std::string> paths;
  for (auto& [place, at] : found)
    if (std::find(paths.begin(), paths.end(), at) == paths.end()) paths.push_back(std::move(at));
  return paths;
}

// The first program on PATH that says it is one of those we speak.
Result<ChosenLauncher> search(const EnvSnapshot& env) {
  std::vector<std::string> instead;
  for (const std::string& path : candidates(env)) {
    const auto identity = ask(path);
    const Launcher* found = identity ? find_launcher(identity->name) : nullptr;
    if (found != nullptr)
      return ChosenLauncher{
          found,
          {path, identity->version},
          fmt::format("the first launcher on PATH that hpclaunch speaks: {} is {}{}{}", path,
                      identity->name, identity->version.empty() ? "" : " ", identity->version),
          ""};
    instead.push_back(shown(path, identity));
  }
  return no_launcher(instead, "");
}

Result<ChosenLauncher> at_path(const std::string& program, const EnvSnapshot& env) {
  const Result<std::string> path = sys::find_program(program, env.get("PATH"));
  if (!path) return path.error();
  std::optional<LauncherIdentity> identity = ask(*path);
  if (!identity) identity = look_at(*path);
  const Launcher* launcher = identity ? find_launcher(identity->name) : nullptr;
  if (launcher == nullptr)
    return Error{
        ErrorKind::unsupported,
        identity
            ? fmt::format("\"{}\" is {} {}, which hpclaunch does not speak", *path, identity->name,
                          identity->version)
            : fmt::format("\"{} --version\" prints nothing that tells which launcher it is", *path),
        "--launcher NAME says which one it is; on one node --launcher local needs none"};
  return ChosenLauncher{
      launcher, {*path, identity->version}, fmt::format("--launcher {}", program), ""};
}

Result<ChosenLauncher> typed(const std::string& wanted, const EnvSnapshot& env, bool must_exist) {
  if (wanted.find('/') != std::string::npos) return at_path(wanted, env);
  if (wanted == "local") return local_launcher("--launcher");
  const Launcher* launcher = find_launcher(wanted);
  if (launcher == nullptr) return unknown_launcher(wanted, "");
  Result<ChosenLauncher> found = by_name(*launcher, env, Trust::asked, "--launcher");
  if (found || must_exist) return found;
  return not_here(*launcher, found.error(), "--launcher");
}

Result<ChosenLauncher> of_profile(const std::string& preferred, const EnvSnapshot& env,
                                  bool one_here, bool must_exist) {
  constexpr std::string_view kWho = "the profile's launcher";
  if (preferred == "local") return local_launcher(std::string(kWho));
  const Launcher* launcher = find_launcher(preferred);
  if (launcher == nullptr) return unknown_launcher(preferred, "the profile asks for one unknown: ");
  Result<ChosenLauncher> found = by_name(*launcher, env, Trust::taken, kWho);
  if (found) return found;
  if (one_here)
    return local_launcher("one node, this one, and the profile's launcher is not here",
                          found.error().message);
  if (must_exist) return found;
  return not_here(*launcher, found.error(), kWho);
}

// nullopt: in no batch system that brings a launcher of its own, or without that launcher.
std::optional<ChosenLauncher> of_batch_system(const EnvSnapshot& env) {
  struct System {
    const char* variable;
    const char* launcher;
    const char* who;
  };
  constexpr System kInnermostFirst[] = {{"FLUX_URI", "flux", "inside a Flux instance"},
                                        {"SLURM_JOB_ID", "slurm", "inside a Slurm job"},
                                        {"LSB_JOBID", "jsrun", "inside an LSF job"}};
  const bool pbs = pbs_names_nodes(env);
  for (const System& system : kInnermostFirst) {
    if (env.get(system.variable).empty()) continue;
    if (pbs && std::string_view(system.launcher) != "flux") continue;
    Result<ChosenLauncher> found =
        by_name(*find_launcher(system.launcher), env, Trust::taken, system.who);
    if (found) return std::move(*found);
  }
  return std::nullopt;
}

// Source: runs of 4.0.2 with each variable alone.
bool hydra_uses_srun(const EnvSnapshot& env) {
  for (const char* name : {"HYDRA_LAUNCHER", "HYDRA_BOOTSTRAP", "HYDRA_RMK"})
    if (const std::string typed = env.get(name); !typed.empty()) return typed == "slurm";
  return env.has("SLURM_NODELIST") && env.has("SLURM_NNODES") && env.has("SLURM_TASKS_PER_NODE");
}

Result<ChosenLauncher> choose(const Request& args, const EnvSnapshot& env, const Hosts& hosts,
                              const std::string& preferred, bool must_exist) {
  if (!args.launcher.empty()) return typed(args.launcher, env, must_exist);
  const bool one_here =
      hosts.only_here || (args.nodes == 1 && same_host(hosts.names.front(), sys::host_name()));
  if (!preferred.empty()) return of_profile(preferred, env, one_here, must_exist);
  if (one_here) return local_launcher("one node, this one: no launcher is needed");
  if (std::optional<ChosenLauncher> own = of_batch_system(env)) return std::move(*own);
  return search(env);
}

}  // namespace

Error unknown_launcher(const std::string& wanted, std::string_view who) {
  std::vector<std::string> names;
  for (const Launcher& launcher : launchers()) names.emplace_back(launcher.name);
  const auto near = nearest(wanted, names);
  return Error{ErrorKind::usage, fmt::format("{}no launcher \"{}\"", who, wanted),
               near ? "--launcher " + *near
                    : fmt::format("one of {}, or the path of an mpiexec", fmt::join(names, ", "))};
}

Result<ChosenLauncher> choose_launcher(const Request& args, const EnvSnapshot& env,
                                       const Hosts& hosts, const std::string& preferred,
                                       bool must_exist) {
  Result<ChosenLauncher> launcher = choose(args, env, hosts, preferred, must_exist);
  if (launcher) launcher->facts.uses_srun = hydra_uses_srun(env);
  return launcher;
}

}  // namespace hpclaunch::cli
