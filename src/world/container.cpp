#include "world/container.h"

#include <fmt/format.h>
#include <fmt/ranges.h>
#include <sys/resource.h>

#include <algorithm>
#include <set>

#include "hpclaunch/json_reader.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/paths.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

constexpr double kSeconds = 60;  // for a question to an engine

bool listed(Words words, std::string_view text,
            bool (*fits)(std::string_view text, std::string_view word)) {
  return std::ranges::any_of(
      words, [&](std::string_view word) { return word == "*" || fits(text, word); });
}
bool ends(std::string_view text, std::string_view end) { return text.ends_with(end); }
bool begins(std::string_view text, std::string_view start) { return text.starts_with(start); }

// The image as its engines tell apart: a path by its look, or because there is such a file.
struct Image {
  std::string name;  // a path is absolute
  bool is_path = false;
  bool is_directory = false;
  bool is_there = false;

  Image(const std::string& typed, FileKind kind, const std::string& directory) : name(typed) {
    is_there = kind != FileKind::nothing;
    is_directory = kind == FileKind::directory;
    is_path = is_there || typed.starts_with('/') || typed.starts_with('.') ||
              std::ranges::any_of(rows<ContainerEngine>(), [&](const ContainerEngine& engine) {
                return listed(engine.files, typed, ends);
              });
    if (is_path) name = absolute_from(directory, typed);
    if (name.size() > 1 && name.ends_with('/')) name.pop_back();
  }

  /// Would the engine be chosen for it?
  bool fits(const ContainerEngine& engine) const {
    if (is_directory) return !engine.directory.empty();
    return listed(is_path ? engine.files : engine.names, name, is_path ? ends : begins);
  }
};

struct Found {
  const ContainerEngine* engine = nullptr;
  std::string program;  // "" where srun enters
  std::string why;
};

Error missing(std::string message, std::string hint) {
  return {ErrorKind::program_not_found, std::move(message), std::move(hint)};
}

std::string names_of_engines() {
  std::vector<std::string_view> names;
  for (const ContainerEngine& engine : rows<ContainerEngine>())
    if (engine.refused.empty()) names.push_back(engine.name);
  return fmt::format("{}", fmt::join(names, ", "));
}

// Where the engine is on this machine.
Result<Found> look_for(const ContainerEngine& engine, const World& world,
                       const ChosenLauncher& launcher) {
  if (!engine.srun_option.empty()) {
    if (!launcher.launcher->enters_containers)
      return Error{ErrorKind::unsupported,
                   fmt::format("{} is entered by srun; the launcher is {}", engine.name,
                               launcher.launcher->name),
                   "--launcher slurm in a Slurm job, or another --container-engine"};
    const Result<sys::Captured> help =
        world.capture({launcher.facts.path, "--help"}, kSeconds, nullptr);
    if (!help) return help.error();
    if (help->out.find(engine.srun_option) == std::string::npos)
      return missing(fmt::format("{} is not installed: srun has no option {}", engine.name,
                                 engine.srun_option),
                     "another --container-engine, or ask the site for the Slurm plugin");
    return Found{&engine, "", fmt::format("srun has {}", engine.srun_option)};
  }
  for (const std::string_view name : engine.programs)
    if (const Result<std::string> path = world.program(std::string(name)); path)
      return Found{&engine, *path, "found at " + *path};
  return missing(fmt::format("container engine {} not found on PATH", engine.name),
                 "load its module, or use another --container-engine");
}

Result<Found> named(const std::string& name, const World& world, const ChosenLauncher& launcher) {
  const ContainerEngine* const engine = find_row<ContainerEngine>(name);
  if (engine == nullptr)
    return Error{
        ErrorKind::usage,
        fmt::format("invalid value \"{}\" for --container-engine ({})", name, names_of_engines()),
        "omit it, or use one of these"};
  if (!engine->refused.empty())
    return Error{ErrorKind::unsupported,
                 fmt::format("{} cannot run ranks: {}", name, engine->refused),
                 "--container-engine podman or apptainer"};
  return look_for(*engine, world, launcher);
}

// The site's engines, then the table's, the first that is here and takes the image.
Result<Found> choose(const Image& image, const World& world, const Profile* profile,
                     const ChosenLauncher& launcher) {
  std::vector<const ContainerEngine*> order;
  if (profile != nullptr)
    for (const SiteContainer& one : profile->containers)
      order.push_back(find_row<ContainerEngine>(one.name));
  const std::size_t of_site = order.size();
  for (const ContainerEngine& engine : rows<ContainerEngine>()) order.push_back(&engine);
  std::vector<std::string_view> tried;
  std::string refused;
  for (std::size_t i = 0; i < order.size(); ++i) {
    const ContainerEngine& engine = *order[i];
    if (!image.fits(engine) && engine.refused.empty()) continue;
    Result<Found> found = look_for(engine, world, launcher);
    if (found && engine.refused.empty()) {
      found->why = (i < of_site ? "the site's; " : "") + found->why;
      return found;
    }
    if (found) refused = fmt::format("; {} cannot run ranks: {}", engine.name, engine.refused);
    if (engine.refused.empty() && std::ranges::count(tried, engine.name) == 0)
      tried.push_back(engine.name);
  }
  return missing(fmt::format("no container engine for \"{}\" found (looked for {}){}", image.name,
                             fmt::join(tried, ", "), refused),
                 "load the module of an engine, or name it with --container-engine");
}

// A shell in a squashed image, as far as unsquashfs can tell.
bool lacks_shell(const Image& image, const ContainerEngine& engine, const World& world) {
  constexpr std::string_view kSquashed[] = {".sqsh", ".squashfs"};
  if (engine.shell.empty() || !image.is_there || !listed(kSquashed, image.name, ends)) return false;
  const Result<std::string> tool = world.program("unsquashfs");
  if (!tool) return false;
  const std::string shell(engine.shell.substr(1));
  const Result<sys::Captured> list =
      world.capture({*tool, "-l", image.name, shell, "usr/" + shell}, kSeconds, nullptr);
  return list && list->status == 0 && list->out.find(shell) == std::string::npos;
}

Status check_image(const Image& image, const Found& found, const World& world) {
  const ContainerEngine& engine = *found.engine;
  if (image.is_path && !image.is_there)
    return missing(fmt::format("image \"{}\" does not exist", image.name),
                   "--container with a file, a directory, or a name that the engine knows");
  if (image.is_directory && engine.directory.empty())
    return Error{ErrorKind::unsupported,
                 fmt::format("{} takes no directory as image: \"{}\"", engine.name, image.name),
                 "another --container-engine, or an image file"};
  if (!image.is_path && !listed(engine.names, image.name, begins))
    return missing(fmt::format("image \"{}\" does not exist", image.name),
                   fmt::format("{} takes {}", engine.name,
                               engine.names.empty() ? "a directory"
                                                    : "a file, or a name that begins "
                                                      "with one of " +
                                                          joined(engine.names, " ")));
  if (lacks_shell(image, engine, world))
    return Error{ErrorKind::unsupported,
                 fmt::format("{} needs {} in the image, and \"{}\" has none", engine.name,
                             engine.shell, image.name),
                 "another --container-engine, or add a shell to the image"};
  if (image.is_path || engine.lookup.empty()) return Done{};
  std::vector<std::string> question = {found.program};
  for (const std::string_view word : engine.lookup)
    question.push_back(word == "{}" ? image.name : std::string(word));
  const Result<sys::Captured> answer = world.capture(question, kSeconds, &world.env);
  if (!answer) return answer.error();
  if (answer->status == 0) return Done{};
  const std::string said = answer->complaint();
  return missing(fmt::format("{} has no image \"{}\"{}", engine.name, image.name,
                             said.empty() ? "" : ": " + said),
                 fmt::format("{} pull {}, before the job", engine.name, image.name));
}

// "SRC[:DST]" as absolute paths.
Result<std::pair<std::string, std::string>> parse_bind(const std::string& text,
                                                       const World& world) {
  const std::size_t colon = text.find(':');
  const std::string from = text.substr(0, colon);
  const std::string to = colon == std::string::npos ? "" : text.substr(colon + 1);
  if (from.empty() || (colon != std::string::npos && !to.starts_with('/')) ||
      to.find(':') != std::string::npos || text.find(',') != std::string::npos)
    return Error{ErrorKind::usage, fmt::format("invalid value \"{}\" for --container-bind", text),
                 "SRC or SRC:/DST, without commas and further colons"};
  const std::string source = world.absolute(from);
  return std::pair(source, to.empty() ? source : to);
}

bool is_below(std::string_view path, std::string_view folder) {
  return path == folder || (path.starts_with(folder) && path[folder.size()] == '/');
}

// Of the user, the site, then those that the shim needs. One of a kind: the first holds.
Result<ContainerUse> with_binds(ContainerUse use, const Request& request, const World& world,
                                const SiteContainer* site, const Plan& plan,
                                const std::string& shim) {
  const ContainerEngine& engine = *use.engine;
  const auto add = [&](std::pair<std::string, std::string> bind) {
    const auto same = [&](const auto& one) { return one.second == bind.second; };
    if (std::ranges::none_of(use.binds, same)) use.binds.push_back(std::move(bind));
  };
  if (engine.bind.empty() && !request.container.binds.empty())
    return Error{ErrorKind::unsupported,
                 fmt::format("--container-bind: {} has no option for it", engine.name),
                 fmt::format("use {}", engine.elsewhere)};
  for (const std::string& text : request.container.binds) {
    Result<std::pair<std::string, std::string>> bind = parse_bind(text, world);
    if (!bind) return bind.error();
    if (plan.hosts.first_is_here && !world.has(bind->first))
      return Error{ErrorKind::not_found,
                   fmt::format("--container-bind: \"{}\" does not exist", bind->first),
                   "a file or directory of this machine"};
    add(*std::move(bind));
  }
  if (site != nullptr)
    for (const std::string& text : site->binds)
      if (Result<std::pair<std::string, std::string>> bind = parse_bind(text, world); bind)
        add(*std::move(bind));
  if (engine.sees_host) return use;
  // Not the shim itself: not every engine makes a file to mount one on.
  for (const std::string& path : {shim.substr(0, shim.rfind('/')), plan.launch.directory})
    if (path.size() > 1 && !listed(engine.shares, path, is_below)) add({path, path});
  use.writes = use.is_directory && std::ranges::any_of(use.binds, [&](const auto& bind) {
                 return !world.has(use.image + bind.second);
               });
  return use;
}

// What an engine that cleans the environment is told to pass: what the launcher gives each rank, what the plan sets,
// and what was exported of variables that the catalogue knows, unless it is a path of this host.
std::vector<std::string> names_to_pass(const ContainerEngine& engine, const Launcher& launcher,
                                       const Plan& plan, const EnvSnapshot& env) {
  std::set<std::string> names = {"HPCLAUNCH_PLAN", launcher.traits.rank_var};
  if (plan.supervision.supervise) names.insert("HPCLAUNCH_CHANNEL");
  if (!launcher.traits.local_rank_var.empty()) names.insert(launcher.traits.local_rank_var);
  names.insert(engine.patterns.begin(), engine.patterns.end());
  for (const Setting& setting : plan.environment.settings)
    if (std::holds_alternative<std::string>(setting.value()) && is_identifier(setting.name) &&
        setting.name != "PATH" && !setting.name.starts_with("LD_"))
      names.insert(setting.name);
  for (const auto& [name, value] : env.values())
    if (is_identifier(name) && knowledge::find(name) && plan.find_env(name) == nullptr &&
        !value.starts_with('/'))
      names.insert(name);
  return {names.begin(), names.end()};
}

std::vector<ResourceLimit> own_limits() {
  constexpr std::pair<const char*, int> kKept[] = {{"core", RLIMIT_CORE},
                                                   {"memlock", RLIMIT_MEMLOCK},
                                                   {"nofile", RLIMIT_NOFILE},
                                                   {"stack", RLIMIT_STACK}};
  std::vector<ResourceLimit> limits;
  const auto number = [](rlim_t value) {
    return value == RLIM_INFINITY ? -1 : static_cast<long long>(value);
  };
  for (const auto& [name, which] : kKept) {
    rlimit limit{};
    if (getrlimit(static_cast<__rlimit_resource_t>(which), &limit) == 0)
      limits.push_back({name, number(limit.rlim_cur), number(limit.rlim_max)});
  }
  return limits;
}

Words device_options(const ContainerEngine& engine, const Plan& plan, const Topology& node) {
  if (plan.placement.gpu_view.empty() || node.devices.empty()) return {};
  return words_of(engine.devices, node.devices.front().vendor);
}

}  // namespace

std::string absolute_image(const std::string& typed) {
  return Image(typed, file_kind(typed), sys::working_directory()).name;
}

Status check_container(const Request& request) {
  if (request.container.image.empty()) {
    if (request.container.engine.empty() && request.container.binds.empty()) return Done{};
    return Error{
        ErrorKind::usage,
        fmt::format("{} without an image",
                    request.container.engine.empty() ? "--container-bind" : "--container-engine"),
        "--container IMAGE"};
  }
  for (const auto& [typed, option] :
       {std::pair(!request.stage.method.empty() && request.stage.method != "none", "--stage"),
        std::pair(!request.conda.empty(), "--conda"), std::pair(!request.venv.empty(), "--venv"),
        std::pair(request.profile_start, "--profile-start"),
        std::pair(request.mps == "on", "--mps on")})
    if (typed)
      return Error{
          ErrorKind::usage,
          fmt::format("{} and --container exclude each other: the image has its own software",
                      option),
          fmt::format("omit {}", option)};
  return Done{};
}

Result<ChosenContainer> find_container(const Request& request, const World& world, const Site& site,
                                       const ChosenLauncher& launcher, Purpose purpose) {
  const ContainerRequest& wanted = request.container;
  if (wanted.image.empty()) return ChosenContainer{};
  const bool elsewhere = purpose == Purpose::show && site.facts.invented_hosts && !world.made_up();
  const Image image(wanted.image, world.look(wanted.image), world.directory);
  if (!elsewhere && image.is_path && !image.is_there)
    return missing(fmt::format("image \"{}\" does not exist", image.name),
                   "--container with a file, a directory, or a name that the engine knows");
  Result<Found> found = !wanted.engine.empty() ? named(wanted.engine, world, launcher)
                                               : choose(image, world, site.profile(), launcher);
  const bool of_site = site.profile() != nullptr && !site.profile()->containers.empty();
  if (elsewhere && (wanted.engine.empty() ? of_site : !found)) {  // the target machine has it
    const ContainerEngine* engine = find_row<ContainerEngine>(
        wanted.engine.empty() ? site.profile()->containers.front().name : wanted.engine);
    if (engine == nullptr || !engine->refused.empty())
      return named(wanted.engine, world, launcher).error();
    found = Found{engine, engine->programs.empty() ? "" : std::string(engine->programs.front()),
                  "assuming the target machine has it"};
  }
  if (!found) return found.error();
  if (!elsewhere)
    if (const Status good = check_image(image, *found, world); !good) return good.error();
  ChosenContainer chosen;
  chosen.use.engine = found->engine;
  chosen.use.program = found->program;
  chosen.use.image = image.name;
  chosen.use.is_directory = image.is_directory;
  chosen.why = found->why;
  return chosen;
}

Result<CompleteContainer> complete_container(const ChosenContainer& chosen, const Request& request,
                                             const World& world, const Site& site,
                                             const Means& means, const Plan& plan) {
  ContainerUse use = chosen.use;
  if (use.engine == nullptr) return CompleteContainer{};
  const SiteContainer* const of_site =
      site.profile() == nullptr ? nullptr
                                : find_named(site.profile()->containers, use.engine->name);
  if (of_site != nullptr) {
    use.options = of_site->options;
  } else {
    const Words devices = device_options(*use.engine, plan, means.input.node);
    use.options.assign(devices.begin(), devices.end());
  }
  Result<ContainerUse> bound =
      with_binds(std::move(use), request, world, of_site, plan, means.shim);
  if (!bound) return bound.error();
  use = *std::move(bound);
  if (!use.engine->env.empty())
    use.env = names_to_pass(*use.engine, *means.launcher.launcher, plan, world.env);
  if (!use.engine->limit.empty() && !plan.hosts.later && !world.made_up())
    use.limits = own_limits();
  Decision decision(Layer::command_line, use.image, {},
                    fmt::format("--container, by {} ({})", use.engine->name, chosen.why));
  if (of_site != nullptr) {
    decision.why += "; options and binds: " + of_site->origin.why;
    decision.where = of_site->origin.where;
    decision.source = of_site->origin.source;
  }
  return CompleteContainer{std::move(use), Setting{"container", {std::move(decision)}}};
}

Entered enter(const ContainerUse& container, const std::string& shim, Plan plan) {
  if (container.engine == nullptr) return {std::move(plan), shim};
  Argv words = container_words(container);
  if (container.program.empty()) {
    plan.launch.profile_args.insert(plan.launch.profile_args.begin(), words.begin(), words.end());
    return {std::move(plan), shim};
  }
  std::string first = std::move(words.front());
  words.erase(words.begin());
  words.push_back(shim);
  plan.launch.command.insert(plan.launch.command.begin(), words.begin(), words.end());
  return {std::move(plan), std::move(first)};
}

Result<Argv> launch_line(const ContainerUse& container, const ChosenLauncher& launcher,
                         const std::string& shim, const Plan& plan) {
  std::vector<std::string> command = quoted_command(*launcher.launcher, plan.launch.command);
  if (container.engine == nullptr && command == plan.launch.command)
    return launcher.launcher->render(plan, launcher.facts, shim);
  Plan changed = plan;
  changed.launch.command = std::move(command);
  const Entered entered = enter(container, shim, std::move(changed));
  return launcher.launcher->render(entered.plan, launcher.facts, entered.first);
}

}  // namespace hpclaunch::job
