// What planning knows of the launcher that was chosen, in this job.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "world/launchers.h"

namespace hpclaunch::job {

namespace {

// Names that other launchers and batch systems give their tasks: set for each rank where such a batch system's job is
// the allocation, else removed where this process has inherited them.
void add_identities(const BatchJob& batch, LauncherTraits& traits) {
  constexpr const char* kWhy = "of another launch; programs would take it for this rank's";
  for (const Launcher& one : launchers()) {
    const auto gives = [&](const Scheduler* system) {
      return system != nullptr && system->launcher == one.name;
    };
    std::vector<std::string_view> names = split(one.rank_variables, ' ');
    for (const IdentityVariables& variables : one.identity) {
      if (one.name == traits.name) continue;
      if (gives(batch.scheduler) || gives(batch.outer))
        traits.batch_identity.push_back(variables);
      else
        for (const std::string_view name : split(variables.names, ' ')) names.push_back(name);
    }
    for (std::string_view name : names) {
      const bool prefix = name.ends_with('*');
      if (prefix) name.remove_suffix(1);
      if (!name.empty())
        traits.conflicting.push_back({std::string(name), kWhy, true, false, prefix});
    }
  }
}

// A directory of the job that other nodes have only where the batch system starts tasks.
bool lacks_temporary(const LauncherTraits& traits, const Site& site, const Request& request,
                     const EnvSnapshot& env) {
  const Scheduler* system = site.batch.scheduler;
  if (!traits.by_ssh || site.hosts.names.size() < 2 || request.nodes == 1 || system == nullptr ||
      system->task_folder.empty())
    return false;
  const std::string folder = env.get("TMPDIR");
  return folder.substr(folder.rfind('/') + 1) ==
         fmt::format("{}{}", system->task_folder, site.batch.id);
}

// A launcher that starts its daemons through the batch system's own would wait for the step that this shell is in.
void share_step(const BatchJob& batch, const EnvSnapshot& env, LauncherTraits& traits) {
  const Launcher* own =
      batch.scheduler == nullptr ? nullptr : find_launcher(batch.scheduler->launcher);
  if (own == nullptr || own->name == traits.name || !traits.multi_node || traits.built_in) return;
  const LauncherTraits& step = own->traits;
  if (step.step_shares.empty() || env.has(step.step_shares) || !step.inside_step(env)) return;
  traits.presets.push_back(
      {step.step_shares, "1",
       fmt::format("{} is set: this shell is a job step, and {} may start daemons by {}",
                   step.step_var, traits.name, own->programs.front())});
  std::ranges::sort(traits.presets, {}, &LauncherTraits::Preset::name);
}

// Of a launcher whose ranks run already: what is to be removed or set before them no longer is, and the shim binds.
LauncherTraits traits_beneath(const Launcher& launcher, const Site& site) {
  LauncherTraits traits = launcher.traits;
  add_identities(site.batch, traits);
  traits.rank_var = find_launcher(kLocalLauncher)->traits.rank_var;
  traits.local_rank_var = traits.removes = traits.step_var = "";
  traits.built_in = traits.multi_node = true;
  traits.binds_sets = traits.names_variables = false;
  traits.distribution = Distribution::any;
  traits.termination = {};
  traits.conflicting.clear();
  traits.presets.clear();
  return traits;
}

}  // namespace

LauncherTraits traits_of(const ChosenLauncher& launcher, const Site& site, const Request& request,
                         const EnvSnapshot& env) {
  if (!request.started_by.empty()) return traits_beneath(*find_launcher(request.started_by), site);
  LauncherTraits traits = launcher.launcher->traits;
  if (launcher.launcher->of_version != nullptr)
    launcher.launcher->of_version(traits, launcher.facts.version);
  const auto of_torchrun = [](const auto& one) { return one.first.starts_with("PET_"); };
  if (!request.agent && std::ranges::any_of(env.values(), of_torchrun))
    traits.conflicting.push_back(
        {"PET_", "defaults of torchrun, which one inside the program would take for its own", true,
         false, true});
  add_identities(site.batch, traits);
  for (const Scheduler* other : site.batch.inherited)
    if (!other->inherited_prefix.empty() && traits.name != other->launcher)
      traits.conflicting.push_back({std::string(other->inherited_prefix),
                                    std::string(other->inherited_why), true, false, true});
  share_step(site.batch, env, traits);
  if (lacks_temporary(traits, site, request, env))
    traits.conflicting.push_back(
        {"TMPDIR",
         fmt::format("{} makes it where it starts tasks itself, and ssh reaches the other nodes",
                     site.batch.scheduler->title),
         true});
  return traits;
}

}  // namespace hpclaunch::job
