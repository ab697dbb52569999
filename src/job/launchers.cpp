// By which launcher the nodes are reached.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <optional>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "job/steps.h"

namespace hpclaunch::job {

namespace {

// What a program with a launcher's name says it is; nullopt without an answer.
std::optional<LauncherIdentity> ask(const std::string& path) {
  constexpr double kSeconds = 5;
  const Result<sys::Captured> text = sys::capture({path, "--version"}, kSeconds);
  if (!text) return std::nullopt;
  return identify_launcher(sys::real_path(path), text->out + text->err);
}

// The same by the path alone, without running it; often without an answer.
std::optional<LauncherIdentity> look_at(const std::string& path) {
  return identify_launcher_by_path(sys::real_path(path), sys::is_executable);
}

std::string shown(const LauncherIdentity& identity) {
  return identity.name + (identity.version.empty() ? "" : " " + identity.version);
}

Error no_launcher(const std::vector<std::string>& instead, std::string_view wanted) {
  std::string message =
      wanted.empty() ? "no supported launcher found on PATH (looked for mpiexec, srun, flux, ...)"
                     : fmt::format("launcher {} is not on PATH", wanted);
  if (!instead.empty()) message += fmt::format("; found {}", fmt::join(instead, ", "));
  return Error{ErrorKind::program_not_found, message,
               wanted.empty() || wanted == "hydra"
                   ? "load or install an MPI, or name its mpiexec with --launcher PATH"
                   : "load its module, or name its program with --launcher PATH"};
}

ChosenLauncher local_launcher(std::string why, std::string remark = "") {
  return ChosenLauncher{find_launcher("local"),
                        {sys::own_directory() + "/hpclaunch", ""},
                        std::move(why),
                        std::move(remark)};
}

enum class Trust {
  verify,  ///< a program with a shared name is asked which launcher it is
  assume,  ///< it is taken for the wanted one, unless its path says otherwise
};

// One launcher, by what its program is called.
Result<ChosenLauncher> by_name(const Launcher& launcher, const EnvSnapshot& env, Trust trust,
                               std::string_view who) {
  std::vector<std::string> instead;
  for (const std::string_view program : launcher.programs) {
    const Result<std::string> path = sys::find_program(std::string(program), env.get("PATH"));
    if (!path) continue;
    const bool must_say = launcher.shared_names && trust == Trust::verify;
    auto identity = must_say || launcher.by_version ? ask(*path) : look_at(*path);
    if (!identity && !must_say) identity = look_at(*path);
    const bool is_it = identity ? identity->name == launcher.name : !must_say;
    if (is_it || !launcher.shared_names) {
      const std::string version = is_it && identity ? identity->version : "";
      return ChosenLauncher{
          &launcher,
          {*path, version},
          fmt::format("{}: {} is {}", who, *path, shown({std::string(launcher.name), version})),
          ""};
    }
    instead.push_back(fmt::format("{} ({})", *path, identity ? shown(*identity) : "unknown"));
  }
  return no_launcher(instead, launcher.name);
}

Result<ChosenLauncher> not_here(const Launcher& launcher, const Error& error,
                                std::string_view who) {
  return ChosenLauncher{&launcher,
                        {std::string(launcher.programs.front()), ""},
                        std::string(who),
                        fmt::format("{}; assuming the target machine has it", error.message)};
}

// Programs with a launcher's name, in the order of PATH: modules prepend to it. In one directory
// the order of the launchers decides.
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

// The first program on PATH that says it is a known launcher, one for the program's MPI library.
Result<ChosenLauncher> search(const EnvSnapshot& env, const MpiLibrary& mpi) {
  std::vector<std::string> instead;
  for (const std::string& path : candidates(env)) {
    const auto identity = ask(path);
    const Launcher* found = identity ? find_launcher(identity->name) : nullptr;
    if (found != nullptr && fits(*found, mpi))
      return ChosenLauncher{
          found,
          {path, identity->version},
          fmt::format("first supported launcher on PATH: {} is {}", path, shown(*identity)),
          ""};
    instead.push_back(fmt::format("{} ({})", path, identity ? shown(*identity) : "unknown"));
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
    return Error{ErrorKind::unsupported,
                 identity
                     ? fmt::format("\"{}\" is {} {}, which is not supported", *path, identity->name,
                                   identity->version)
                     : fmt::format("unknown launcher: \"{} --version\" does not name one", *path),
                 "--launcher NAME; on one node --launcher local"};
  return ChosenLauncher{
      launcher, {*path, identity->version}, fmt::format("--launcher {}", program), ""};
}

Result<ChosenLauncher> typed(const std::string& wanted, const EnvSnapshot& env, bool must_exist) {
  if (wanted.find('/') != std::string::npos) return at_path(wanted, env);
  if (wanted == "local") return local_launcher("--launcher");
  const Launcher* launcher = find_launcher(wanted);
  if (launcher == nullptr) return unknown_launcher(wanted, "");
  Result<ChosenLauncher> found = by_name(*launcher, env, Trust::verify, "--launcher");
  if (found || must_exist) return found;
  return not_here(*launcher, found.error(), "--launcher");
}

Result<ChosenLauncher> of_profile(const std::string& preferred, const EnvSnapshot& env,
                                  bool one_here, bool must_exist) {
  constexpr std::string_view kWho = "the profile's launcher";
  if (preferred == "local") return local_launcher(std::string(kWho));
  const Launcher* launcher = find_launcher(preferred);
  if (launcher == nullptr) return unknown_launcher(preferred, "profile: ");
  Result<ChosenLauncher> found = by_name(*launcher, env, Trust::assume, kWho);
  if (found) return found;
  if (one_here)
    return local_launcher("one node, this one; the profile's launcher is not on PATH",
                          found.error().message);
  if (must_exist) return found;
  return not_here(*launcher, found.error(), kWho);
}

// The batch system's own, where it has one and that is on PATH.
std::optional<ChosenLauncher> of_batch_system(const EnvSnapshot& env, const BatchJob& batch) {
  for (const Scheduler* system : {batch.scheduler, batch.outer}) {
    if (system == nullptr || system->launcher.empty()) continue;
    Result<ChosenLauncher> found =
        by_name(*find_launcher(std::string(system->launcher)), env, Trust::assume,
                fmt::format("in a {} job", system->title));
    if (found) return std::move(*found);
  }
  return std::nullopt;
}

// The first plugin that srun has for the program's MPI library; "" for srun's default.
std::string mpi_type(const ChosenLauncher& srun, const MpiLibrary& mpi, const EnvSnapshot& env) {
  constexpr double kSeconds = 5;
  if (mpi.srun_types.empty() || srun.launcher->name != "slurm" || env.has("SLURM_MPI_TYPE"))
    return {};
  const Result<sys::Captured> list = sys::capture({srun.facts.path, "--mpi=list"}, kSeconds);
  if (!list) return {};
  std::string text = list->out + list->err;
  std::replace_if(
      text.begin(), text.end(), [](char c) { return c == '\n' || c == '\t' || c == ','; }, ' ');
  for (const std::string& type : mpi.srun_types)
    for (const std::string_view word : split(text, ' '))
      if (word == type) return type;
  return {};
}

Result<ChosenLauncher> choose(const Request& request, const EnvSnapshot& env, const Site& site,
                              const std::string& preferred, const MpiLibrary& mpi,
                              bool must_exist) {
  if (!request.launcher.empty()) return typed(request.launcher, env, must_exist);
  const bool one_here =
      only_here(site.hosts) || (request.nodes == 1 && is_here(site.hosts.names.front()));
  if (!preferred.empty()) return of_profile(preferred, env, one_here, must_exist);
  if (one_here && mpi.family.empty())
    return local_launcher("one node, this one: no launcher needed");
  if (std::optional<ChosenLauncher> own = of_batch_system(env, site.batch)) {
    own->facts.mpi_type = mpi_type(*own, mpi, env);
    return std::move(*own);
  }
  if (Result<ChosenLauncher> found = search(env, mpi); found) {
    if (!mpi.family.empty()) found->why += "; " + mpi.why;
    return found;
  }
  return one_here ? local_launcher("one node, this one: no launcher needed") : search(env, {});
}

}  // namespace

Error unknown_launcher(const std::string& wanted, std::string_view who) {
  std::vector<std::string> names;
  for (const Launcher& launcher : launchers()) names.emplace_back(launcher.name);
  const auto near = nearest(wanted, names);
  return Error{ErrorKind::usage, fmt::format("{}unknown launcher \"{}\"", who, wanted),
               near ? "--launcher " + *near
                    : fmt::format("one of {}, or the path of an mpiexec", fmt::join(names, ", "))};
}

Result<ChosenLauncher> choose_launcher(const Request& request, const EnvSnapshot& env,
                                       const Site& site, const std::string& preferred,
                                       const MpiLibrary& mpi, bool must_exist) {
  Result<ChosenLauncher> launcher = choose(request, env, site, preferred, mpi, must_exist);
  if (launcher && launcher->launcher->uses_srun != nullptr)
    launcher->facts.uses_srun = launcher->launcher->uses_srun(env);
  return launcher;
}

std::optional<ChosenLauncher> launcher_for_many_nodes(const EnvSnapshot& env) {
  if (std::optional<ChosenLauncher> own = of_batch_system(env, find_batch(env))) return own;
  Result<ChosenLauncher> found = search(env, {});
  if (!found || !found->launcher->traits.multi_node) return std::nullopt;
  return std::move(*found);
}

}  // namespace hpclaunch::job
