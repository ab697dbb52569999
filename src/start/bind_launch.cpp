// Which launch a rank is of, and which of its plans it needs.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"
#include "start/bind.h"

namespace hpclaunch::job {

namespace {

constexpr std::string_view kOfLaunch =
    "SLURM_STEP_ID PMIX_NAMESPACE FLUX_JOB_ID PALS_APID TORCHELASTIC_RUN_ID "
    "TORCHELASTIC_RESTART_COUNT MASTER_ADDR MASTER_PORT";

struct Origin {
  pid_t parent = 0;
  std::string started;  // in the kernel's ticks: "123456"
};

// /proc/PID/stat: "pid (name) state parent ... start"; the name may hold anything.
std::optional<Origin> origin_of(pid_t pid) {
  const Result<std::string> text = sys::read_file(fmt::format("/proc/{}/stat", pid));
  const std::size_t name = text ? text->rfind(") ") : std::string::npos;
  if (name == std::string::npos) return std::nullopt;
  constexpr std::size_t kParent = 1, kStart = 19;  // behind the name
  const std::vector<std::string_view> fields = split(std::string_view(*text).substr(name + 2), ' ');
  if (fields.size() <= kStart) return std::nullopt;
  return Origin{static_cast<pid_t>(parse_natural(fields[kParent]).value_or(0)),
                std::string(fields[kStart])};
}

std::string of_process(pid_t pid, const char* file) {
  const Result<std::string> text = sys::read_file(fmt::format("/proc/{}/{}", pid, file), 16u << 20);
  return text ? *text : std::string();
}

// A copy of its parent that has not become another program: "( ... ) &" of a shell, a worker of multiprocessing.
bool is_copy(pid_t pid, pid_t parent) {
  const std::string words = of_process(pid, "cmdline");
  return !words.empty() && words == of_process(parent, "cmdline") &&
         of_process(pid, "environ") == of_process(parent, "environ");
}

bool has_place(const EnvSnapshot& env, int local, int size) {
  return env.get("HPCLAUNCH_LOCAL_RANK") == std::to_string(local) &&
         env.get("HPCLAUNCH_LOCAL_SIZE") == std::to_string(size);
}

bool is_among(std::string_view name, std::string_view names) {
  return std::ranges::count(split(names, ' '), name) > 0;
}

// The same on all nodes.
std::string whole_launch(const BindPlace& place, const EnvSnapshot& env) {
  std::string key = fmt::format("{}/{}/{}", geteuid(), find_batch(env).key, place.launcher);
  for (const std::string_view name : split(kOfLaunch, ' '))
    if (env.has(name)) key += fmt::format("/{}={}", name, env.get(name));
  return key;
}

}  // namespace

EnvSnapshot environment_of(pid_t pid) {
  const std::string text = of_process(pid, "environ");
  std::vector<std::string> entries;
  for (const std::string_view entry : split(text, '\0')) entries.emplace_back(entry);
  return EnvSnapshot(std::move(entries));
}

// Of two places the one that a process above does not have yet is the nearer one.
Placed placed_by_hpclaunch(const BindRequest& request, const EnvSnapshot& env) {
  const auto number = [&](const char* name) { return parse_natural(env.get(name), 1'000'000); };
  const auto outer = number("HPCLAUNCH_LOCAL_RANK"), outer_size = number("HPCLAUNCH_LOCAL_SIZE");
  if (!outer || !outer_size) return Placed::no;
  const int local = static_cast<int>(*outer), size = static_cast<int>(*outer_size);
  if (env.get("LOCAL_WORLD_SIZE", std::to_string(size)) != std::to_string(size)) return Placed::no;
  if (request.local_rank)
    return *request.local_rank == local && request.local_size == size ? Placed::no : Placed::above;
  std::map<std::string, std::optional<std::string>> pytorch;
  for (const auto& entry : env.values())
    if (is_bind_identity(entry.first)) pytorch[entry.first] = {};
  const auto told = [&](const EnvSnapshot& of) { return bind_place({}, of.with(pytorch)); };
  const Result<BindPlace> own = told(env);
  if (!own || (own->local == local && own->size == size)) return Placed::here;
  for (pid_t at = getppid(); at > 0;) {
    const EnvSnapshot above = environment_of(at);
    const std::optional<Origin> origin = origin_of(at);
    if (!origin || above.values().empty()) break;
    const Result<BindPlace> there = told(above);
    const bool has = there && there->local == own->local && there->size == own->size;
    if (!has_place(above, local, size)) return Placed::here;
    if (!has) return Placed::above;
    at = origin->parent;
  }
  return own->size == 1 && size > 1 ? Placed::here : Placed::above;
}

EnvSnapshot without_place(const EnvSnapshot& env) {
  std::map<std::string, std::optional<std::string>> changes = {{"HPCLAUNCH_LOCAL_RANK", {}},
                                                               {"HPCLAUNCH_LOCAL_SIZE", {}}};
  for (const auto& entry : env.values())
    if (is_bind_identity(entry.first)) changes[entry.first] = {};
  return env.with(changes);
}

pid_t common_ancestor(const BindPlace& place) {
  const std::string own = of_process(getpid(), "cmdline");
  for (pid_t at = getppid(); at > 0;) {
    const std::optional<Origin> origin = origin_of(at);
    if (!origin) return 0;
    const auto told = bind_place({}, environment_of(at));
    const bool of_rank = (told && told->local == place.local && told->size == place.size) ||
                         (!own.empty() && of_process(at, "cmdline").ends_with('\0' + own));
    if (!of_rank && (origin->parent < 1 || !is_copy(at, origin->parent))) return at;
    at = origin->parent;
  }
  return 0;
}

// A loop in a shell starts as many launches as it likes: there the program tells them apart.
LaunchKeys launch_keys(const BindPlace& place, pid_t ancestor, const BindRequest& request,
                       const EnvSnapshot& env) {
  const std::string all = whole_launch(place, env);
  LaunchKeys keys;
  const std::optional<Origin> origin = origin_of(ancestor);
  keys.node = fmt::format("{}/{}/{}/{}:{}", all, sys::host_name(), place.size, ancestor,
                          origin ? origin->started : "");
  if (place.launcher == kLocalLauncher) keys.node += "/" + request.launch.command.front();
  keys.port = place.nodes > 1 ? fmt::format("{}/{}", all, place.ranks.value_or(0)) : keys.node;
  return keys;
}

std::string plan_key(const BindBasis& basis, const Session& session, std::size_t options) {
  constexpr std::string_view kOwn = "_ SLURM_TASK_PID SLURM_TASK_LAUNCH_TIME SHLVL";
  constexpr std::string_view kOwnPrefixes =
      "PMI_ PMIX_ OMPI_ PRTE_ HYDI_ FLUX_TASK_ MPIR_ MPI_LOCAL";
  const BindPlace& place = basis.place;
  std::string key = fmt::format("{} {} {} {} {} {}\n", HPCLAUNCH_VERSION, place.size, place.nodes,
                                place.launcher, basis.cpus.to_list(), sys::working_directory());
  for (std::size_t i = 1; i <= options && i < session.words.size(); ++i) {
    const std::string& word = session.words[i];
    const bool own = i < options && word.starts_with("--local-rank");
    if (own && word == "--local-rank") ++i;
    if (!own && word != "-v" && word != "--verbose") key += word + "\n";
  }
  for (const auto& entry : session.env.values()) {
    const std::string& name = entry.first;
    const bool own = is_bind_identity(name) || is_rank_variable(name) || is_among(name, kOwn) ||
                     std::ranges::any_of(split(kOwnPrefixes, ' '), [&](std::string_view prefix) {
                       return name.starts_with(prefix);
                     });
    if (own && !is_among(name, kOfLaunch)) continue;
    const bool mask = basis.own_device && is_device_variable(name);
    key += fmt::format("{}={}\n", name, mask ? "*" : entry.second);
  }
  return key;
}

}  // namespace hpclaunch::job
