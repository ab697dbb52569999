// By which launcher the nodes are reached.

#include "world/launchers.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <fstream>
#include <optional>
#include <set>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

// The file of a program, as long as it stays the same; "" for a script, whose answer may come from elsewhere.
std::string file_key(const std::string& path) {
  struct stat file {};
  std::array<char, 4> magic{};
  std::ifstream(path).read(magic.data(), magic.size());
  if (std::string_view(magic.data(), magic.size()) !=
          "\x7f"
          "ELF" ||
      stat(path.c_str(), &file) != 0)
    return {};
  return fmt::format("{}-{}-{}.{}-{}", file.st_dev, file.st_ino, file.st_ctim.tv_sec,
                     file.st_ctim.tv_nsec, file.st_size);
}

// What `PROGRAM --version` prints. Asked once for each file: the answer stays in a file of the user's own, with a zero
// byte at its end, without which it is not whole.
std::optional<std::string> version_text(const std::string& path, const World& world) {
  constexpr double kSeconds = 5;
  const std::string key = world.made_up() ? "" : file_key(path);
  const int kept = key.empty() ? -1 : sys::open_private("version-" + key);
  std::string text(64 * 1024, 'x');
  text.resize(
      static_cast<std::size_t>(std::max<ssize_t>(0, pread(kept, text.data(), text.size(), 0))));
  if (!text.ends_with('\0')) {
    const Result<sys::Captured> said = world.capture({path, "--version"}, kSeconds, &world.env);
    text = said ? said->out + said->err + '\0' : "";
    if (said && said->status == 0 && kept >= 0 && ftruncate(kept, 0) == 0)
      sys::write_all(kept, text);
  }
  if (kept >= 0) close(kept);
  return text.empty() ? std::nullopt : std::optional(text);
}

// What a program with a launcher's name says it is; nullopt without an answer.
std::optional<LauncherIdentity> ask(const std::string& path, const World& world) {
  const std::optional<std::string> text = version_text(path, world);
  return text ? identify_launcher(world.real_path(path), *text) : std::nullopt;
}

// By the path alone, without running it, often without an answer; first by its own words where it is asked.
std::optional<LauncherIdentity> look_at(const std::string& path, const World& world, bool and_ask) {
  if (auto said = and_ask ? ask(path, world) : std::nullopt) return said;
  return identify_launcher_by_path(world.real_path(path),
                                   [&](const std::string& file) { return world.is_program(file); });
}

std::string described(const LauncherIdentity& identity) {
  return identity.name + (identity.version.empty() ? "" : " " + identity.version);
}

Error no_launcher(const std::vector<std::string>& instead, std::string_view wanted) {
  const Launcher* launcher = find_launcher(wanted);
  std::string message =
      wanted.empty() ? "no supported launcher found on PATH (looked for mpiexec, srun, flux, ...)"
                     : fmt::format("launcher {} is not on PATH", wanted);
  if (!instead.empty()) message += fmt::format("; found {}", fmt::join(instead, ", "));
  return Error{ErrorKind::program_not_found, message,
               launcher == nullptr || launcher->shared_names
                   ? "load or install an MPI, or name its mpiexec with --launcher PATH"
                   : "load its module, or name its program with --launcher PATH"};
}

std::string own_path(const World& world) {
  return world.installation + (world.installation.empty() ? "" : "/") + "hpclaunch";
}

ChosenLauncher local_launcher(const World& world, std::string why, std::string remark = "") {
  return ChosenLauncher{
      find_launcher(kLocalLauncher), {own_path(world), ""}, std::move(why), std::move(remark)};
}

std::string described(const std::string& path, const std::optional<LauncherIdentity>& identity) {
  return fmt::format("{} ({})", path, identity ? described(*identity) : "unknown");
}

// One that hpclaunch is itself. The program that it runs may be another one than it looks for.
Result<ChosenLauncher> of_hpclaunch(const Launcher& launcher, const World& world,
                                    std::string_view who) {
  const std::string used(launcher.programs.front());
  const std::string named = world.env.get("HPCLAUNCH_SSH", used);
  const std::string program(split(named, ' ').front());
  const Result<std::string> path = world.program(program);
  if (!path && !world.made_up())
    return Error{ErrorKind::program_not_found, fmt::format("{} is not on PATH", program),
                 "install openssh-client, or name the program: HPCLAUNCH_SSH=/PATH/ssh"};
  return ChosenLauncher{&launcher,
                        {own_path(world), ""},
                        fmt::format("{}: {} for each node", who, path ? *path : program),
                        ""};
}

// One launcher, by what its program is called. Where several have such a name, `verify` asks it which one it is; else
// it is taken for this one, unless its path says otherwise.
Result<ChosenLauncher> by_name(const Launcher& launcher, const World& world, bool verify,
                               std::string_view who) {
  if (launcher.is_hpclaunch) return of_hpclaunch(launcher, world, who);
  std::vector<std::string> instead;
  for (const std::string_view program : launcher.programs) {
    const Result<std::string> path = world.program(std::string(program));
    if (!path) continue;
    const bool must_say = launcher.shared_names && verify;
    const auto identity = must_say ? ask(*path, world) : look_at(*path, world, launcher.by_version);
    const bool is_it = identity ? identity->name == launcher.name : !must_say;
    if (is_it || !launcher.shared_names) {
      const std::string version = is_it && identity ? identity->version : "";
      return ChosenLauncher{
          &launcher,
          {*path, version},
          fmt::format("{}: {} is {}", who, *path, described({std::string(launcher.name), version})),
          ""};
    }
    instead.push_back(described(*path, identity));
  }
  return no_launcher(instead, launcher.name);
}

// Programs with a launcher's name, in the order of PATH: modules prepend to it. In one directory
// the order of the launchers decides.
std::vector<std::string> candidates(const World& world) {
  const std::string path = world.env.get("PATH");
  std::vector<std::string> paths;
  std::set<std::string_view> found;
  for (const std::string_view directory : split(path, ':'))
    for (const Launcher& launcher : launchers())
      for (const std::string_view program : launcher.programs) {
        if (!launcher.shared_names || found.contains(program)) continue;
        const Result<std::string> at = world.find_program(std::string(program), directory);
        if (at && found.insert(program).second) paths.push_back(*at);
      }
  return paths;
}

// The first program on PATH that says it is a known launcher, one for the program's MPI library.
Result<ChosenLauncher> search(const World& world, const MpiLibrary& mpi) {
  std::vector<std::string> instead;
  for (const std::string& path : candidates(world)) {
    const auto identity = ask(path, world);
    const Launcher* found = identity ? find_launcher(identity->name) : nullptr;
    if (found != nullptr && fits(*found, mpi))
      return ChosenLauncher{
          found,
          {path, identity->version},
          fmt::format("first supported launcher on PATH: {} is {}", path, described(*identity)),
          ""};
    instead.push_back(described(path, identity));
  }
  return no_launcher(instead, "");
}

Result<ChosenLauncher> at_path(const std::string& program, const World& world) {
  const Result<std::string> path = world.program(program);
  if (!path) return path.error();
  const std::optional<LauncherIdentity> identity = look_at(*path, world, true);
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

// By the name that the user or the profile gives.
Result<ChosenLauncher> named(const std::string& wanted, bool typed, const World& world,
                             bool one_here, bool must_exist) {
  const std::string who = typed ? "--launcher" : "the profile's launcher";
  if (wanted == kLocalLauncher) return local_launcher(world, who);
  const Launcher* launcher = find_launcher(wanted);
  if (launcher == nullptr) return unknown_launcher(wanted, typed ? "" : "profile: ");
  Result<ChosenLauncher> found = by_name(*launcher, world, typed, who);
  if (!found && !typed && one_here)
    return local_launcher(world, "one node, this one; the profile's launcher is not on PATH",
                          found.error().message);
  if (found || must_exist) return found;
  return ChosenLauncher{launcher,
                        {std::string(launcher->programs.front()), ""},
                        who,
                        world.made_up() ? ""
                                        : fmt::format("{}; assuming the target machine has it",
                                                      found.error().message)};
}

// The batch system's own, where it has one and that is on PATH.
std::optional<ChosenLauncher> of_batch_system(const World& world, const BatchJob& batch) {
  for (const Scheduler* system : {batch.scheduler, batch.outer}) {
    if (system == nullptr || system->launcher.empty()) continue;
    Result<ChosenLauncher> found = by_name(*find_launcher(std::string(system->launcher)), world,
                                           false, fmt::format("in a {} job", system->title));
    if (found) return std::move(*found);
  }
  return std::nullopt;
}

// The plugins of srun's --mpi. srun answers only where it finds its configuration, which a container or a VM may not
// have.
std::vector<std::string> srun_types(const ChosenLauncher& srun, const World& world) {
  constexpr double kSeconds = 5;
  const Result<sys::Captured> list =
      world.capture({srun.facts.path, std::string(srun.launcher->list_mpi)}, kSeconds, nullptr);
  if (!list || list->status != 0) return {};
  std::vector<std::string> types;
  const std::string text = list->out + "\n" + list->err;
  for (std::string_view line : split(text, '\n')) {
    // "srun: pmix", "specific pmix plugin versions available: pmix_v3,pmix_v4"
    line.remove_prefix(line.rfind(':') + 1);
    for (const std::string_view word : split(line, ','))
      if (is_identifier(trim(word))) types.emplace_back(trim(word));
  }
  return types;
}

// The batch system's launcher has what the program's MPI library needs; for srun, chooses the first of its plugins
// that fits.
bool serves(ChosenLauncher& own, const MpiLibrary& mpi, const World& world) {
  if (!fits(*own.launcher, mpi)) return false;
  if (mpi.srun_types.empty() || own.launcher->list_mpi.empty()) return true;
  own.srun_types = srun_types(own, world);
  for (const std::string& wanted : mpi.srun_types)
    for (const std::string& type : own.srun_types)
      if (serves_type(wanted, type)) {
        if (!world.env.has("SLURM_MPI_TYPE")) own.facts.mpi_type = type;
        return true;
      }
  return false;
}

// Hosts that the user has named, of no batch system, and no mpiexec that would reach them.
std::optional<ChosenLauncher> without_mpi(const World& world, const Site& site,
                                          const MpiLibrary& mpi) {
  if (site.batch.scheduler != nullptr || world.made_up() || !mpi.family.empty())
    return std::nullopt;
  for (const Launcher& launcher : launchers()) {
    if (!launcher.is_hpclaunch) continue;
    Result<ChosenLauncher> found =
        by_name(launcher, world, false, "several hosts, no batch system, and no mpiexec on PATH");
    if (found) return std::move(*found);
  }
  return std::nullopt;
}

Result<ChosenLauncher> choose(const Request& request, const World& world, const Site& site,
                              const std::string& preferred, const MpiLibrary& mpi,
                              bool must_exist) {
  constexpr const char* kNotNeeded = "one node, this one: no launcher needed";
  if (!request.started_by.empty()) return local_launcher(world, "it has started the ranks already");
  if (site.hosts.own >= 0) {
    if (request.launcher.empty() || request.launcher == kLocalLauncher)
      return local_launcher(world, site.hosts.why);
    return Error{ErrorKind::usage,
                 fmt::format("--launcher {} starts all nodes, and this is {}", request.launcher,
                             site.hosts.why),
                 request.node_rank
                     ? "omit --launcher; or omit --node-rank where hpclaunch is to start all nodes"
                     : "omit --launcher; or --hostfile FILE where hpclaunch is to start all nodes"};
  }
  if (request.launcher.find('/') != std::string::npos) return at_path(request.launcher, world);
  const bool one_here = only_here(site.hosts, world) ||
                        (request.nodes == 1 && is_here(site.hosts.names.front(), world));
  const bool typed = !request.launcher.empty();
  if (typed || !preferred.empty())
    return named(typed ? request.launcher : preferred, typed, world, one_here, must_exist);
  // An instance gives its cores to every launch that it does not know.
  const bool instance = site.batch.scheduler != nullptr && site.batch.scheduler->nested &&
                        (site.hosts.allocation || !site.hosts.places.empty());
  if (one_here && mpi.family.empty() && !instance) return local_launcher(world, kNotNeeded);
  std::optional<ChosenLauncher> own = of_batch_system(world, site.batch);
  if (own && (serves(*own, mpi, world) ||
              (!one_here && fits(*own->launcher, mpi) && own->srun_types.empty())))
    return std::move(*own);
  if (Result<ChosenLauncher> found = search(world, mpi); found) {
    if (!mpi.family.empty()) found->why += "; " + mpi.why;
    return found;
  }
  if (one_here) return local_launcher(world, kNotNeeded);
  if (std::optional<ChosenLauncher> found = without_mpi(world, site, mpi)) return std::move(*found);
  if (world.made_up() && !own) return local_launcher(world, "the profile names none");
  return own ? std::move(*own) : search(world, {});
}

}  // namespace

std::string program_of_installation(const World& world, const std::string& name) {
  const std::string& bin = world.installation;
  return bin.empty() ? name : bin.substr(0, bin.rfind('/')) + "/libexec/hpclaunch/" + name;
}

Error unknown_launcher(const std::string& wanted, std::string_view who) {
  std::vector<std::string> names;
  std::vector<std::string_view> meant;  // those whose program it is, or that are also called so
  for (const Launcher& launcher : launchers()) {
    names.emplace_back(launcher.name);
    if (std::ranges::count(launcher.programs, wanted) +
            std::ranges::count(launcher.recognition.name_parts, wanted) >
        0)
      meant.push_back(launcher.name);
  }
  const auto near = meant.size() == 1 ? std::string(meant.front()) : nearest(wanted, names);
  return Error{ErrorKind::usage, fmt::format("{}unknown launcher \"{}\"", who, wanted),
               meant.size() > 1 ? fmt::format("--launcher \"$(command -v {})\"", wanted)
               : near           ? "--launcher " + *near
                      : fmt::format("--launcher with one of {}, or the path of an mpiexec",
                                    fmt::join(names, ", "))};
}

Result<ChosenLauncher> choose_launcher(const Request& request, const World& world, const Site& site,
                                       const std::string& preferred, const MpiLibrary& mpi,
                                       bool must_exist) {
  Result<ChosenLauncher> launcher = choose(request, world, site, preferred, mpi, must_exist);
  const bool named = !request.launcher.empty() || !preferred.empty();  // else srun has been asked
  if (launcher && named && !launcher->launcher->list_mpi.empty() && !mpi.srun_types.empty() &&
      launcher->facts.path.find('/') != std::string::npos)
    launcher->srun_types = srun_types(*launcher, world);
  if (launcher && launcher->facts.version.empty()) launcher->facts.version = world.launcher_version;
  if (launcher && launcher->launcher->uses_srun != nullptr)
    launcher->facts.uses_srun = launcher->launcher->uses_srun(world.env);
  if (launcher) choose_remote_start(*launcher, request, world, site);
  return launcher;
}

std::optional<ChosenLauncher> launcher_for_many_nodes(const World& world) {
  if (std::optional<ChosenLauncher> own = of_batch_system(world, find_batch(world.env))) return own;
  Result<ChosenLauncher> found = search(world, {});
  if (!found || !found->launcher->traits.multi_node) return std::nullopt;
  return std::move(*found);
}

}  // namespace hpclaunch::job
