// Versions that are known not to work together: of the machine, its modules, the launcher, and the libraries of torch.
#include <fmt/format.h>
#include <gnu/libc-version.h>
#include <sys/utsname.h>

#include <set>

#include "doctor/examination.h"
#include "hpclaunch/probe.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

using knowledge::Versions;

// The first line of a small file behind `label`; "" without it.
std::string line_of(const std::string& path, std::string_view label = "") {
  const auto text = sys::read_file(path, 4096);
  if (!text) return "";
  for (const std::string_view line : split(*text, '\n'))
    if (line.starts_with(label)) return std::string(trim(line.substr(label.size())));
  return "";
}

void add(Versions& versions, const char* component, std::string version) {
  if (!version.empty()) versions[component] = std::move(version);
}

// "1" where only its presence is known.
void add_machine(const EnvSnapshot& env, Versions& versions) {
  utsname kernel = {};
  uname(&kernel);
  add(versions, "linux", kernel.release);
  add(versions, kernel.machine, "1");  // "aarch64"
  add(versions, "glibc", gnu_get_libc_version());
  add(versions, "hwloc", hwloc_version());
  add(versions, "rocm", line_of(env.get("ROCM_PATH", "/opt/rocm") + "/.info/version"));
  add(versions, "efa", line_of("/opt/amazon/efa_installed_packages", "# EFA installer version:"));
  if (const auto fabric = sys::list_directory("/sys/class/cxi"); fabric && !fabric->empty())
    add(versions, "cxi", "1");
}

void add_launcher(const ChosenLauncher& launcher, Versions& versions) {
  // Launchers whose name is not that of the component.
  static constexpr std::pair<std::string_view, const char*> kComponents[] = {
      {"hydra", "mpich"}, {"intelmpi", "intel-mpi"}};
  if (launcher.launcher == nullptr || launcher.launcher->traits.built_in) return;
  std::string name(launcher.launcher->name);
  for (const auto& [one, component] : kComponents)
    if (name == one) name = component;
  add(versions, name.c_str(), launcher.facts.version);
}

}  // namespace

void examine_versions(Examination& doctor, const ChosenLauncher* launcher,
                      const std::vector<Device>& devices) {
  const EnvSnapshot& env = doctor.env();
  Versions versions = knowledge::versions_of_modules(env.get("LOADEDMODULES"));
  add_machine(env, versions);
  std::set<std::string> models;
  for (const Device& one : devices) models.insert(one.model);
  add(versions, knowledge::kGpu, joined(models, ", "));
  if (launcher != nullptr) add_launcher(*launcher, versions);
  for (const auto& [component, version] : doctor.versions)  // the best evidence
    add(versions, component.c_str(), version);
  const auto exported = [&](std::string_view name) {
    return env.has(name) ? std::optional(env.get(name)) : std::nullopt;
  };
  for (const knowledge::KnownIssue& one : knowledge::known_issues(versions, exported)) {
    const Severity severity = knowledge::severity(one);
    const bool certain =
        severity == Severity::warning && one.effect == knowledge::KnownIssue::Effect::no_start;
    doctor.fault("versions", certain ? Severity::error : severity, knowledge::kKnownIssueId,
                 knowledge::sentence(one, versions), std::string(one.fix));
  }
  std::string last;  // a component may have several files
  for (const auto& [library, version] : knowledge::newer_than_read(versions)) {
    if (library.component == last) continue;
    doctor.fault("versions", Severity::note, "newer-than-known",
                 fmt::format("{} {} is newer than {}, up to which its variables are known",
                             library.component, version, library.release),
                 "a newer hpclaunch, if it is to know those that came since");
    last = library.component;
  }
  std::vector<std::string> all;
  for (const auto& [component, version] : versions)
    if (version != "1" && component != knowledge::kGpu)
      all.push_back(fmt::format("{} {}", component, version));
  doctor.sound("versions", joined(all, ", "));
}

}  // namespace hpclaunch::job
