// Where a Python looks for packages, against the environment that is active.
#include <fmt/format.h>
#include <sys/vfs.h>

#include "doctor/examination.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

// VIRTUAL_ENV or CONDA_PREFIX is active, and another Python comes first on PATH.
void examine_prefix(Examination& doctor, const PythonFacts& python) {
  for (const char* name : {"VIRTUAL_ENV", "CONDA_PREFIX"}) {
    const std::string active = doctor.env().get(name);
    if (active.empty()) continue;
    if (sys::real_path(active) == sys::real_path(python.prefix)) return;
    return doctor.fault(
        "python", Severity::warning, "environment-shadowed",
        fmt::format("{}={} is active, and {} is of {}", name, active, python.path, python.prefix),
        "load modules before the environment is activated, or --python PATH");
  }
}

// ".../lib/python3.9/site-packages" is "3.9".
std::string version_in(std::string_view folder) {
  constexpr std::string_view kMark = "/python";
  const std::size_t at = folder.rfind(kMark);
  if (at == folder.npos) return "";
  const std::string_view rest = folder.substr(at + kMark.size());
  const std::string_view version = rest.substr(0, rest.find('/'));
  const bool two = split(version, '.').size() == 2 && version.starts_with('3');
  return two ? std::string(version) : "";
}

void examine_paths(Examination& doctor, const PythonFacts& python) {
  const std::string paths = doctor.env().get("PYTHONPATH");
  for (const std::string_view folder : split(paths, ':')) {
    const std::string version = version_in(folder);
    if (version.empty() || version == python.version) continue;
    return doctor.fault("python", Severity::warning, "pythonpath-version",
                        fmt::format("PYTHONPATH has {}, of Python {}; this one is {}", folder,
                                    version, python.version),
                        "unset PYTHONPATH, or unload the module that sets it");
  }
}

// ~/.local comes before the packages of an environment of conda or a module.
void examine_user_packages(Examination& doctor, const PythonFacts& python) {
  const std::string home = doctor.env().get("HOME");
  if (home.empty() || !python.torch.starts_with(home + "/.local/") ||
      python.prefix.starts_with(home + "/.local"))
    return;
  doctor.fault(
      "torch", Severity::warning, "user-packages",
      fmt::format("torch is that of {}, in front of what {} has", python.torch, python.prefix),
      "export PYTHONNOUSERSITE=1, or pip uninstall torch there");
}

void examine_file_system(Examination& doctor, const PythonFacts& python) {
  constexpr long kNfs = 0x6969;  // NFS_SUPER_MAGIC of linux/magic.h
  const std::string& place = python.torch.empty() ? python.prefix : python.torch;
  struct statfs found {};
  if (statfs(place.c_str(), &found) != 0 || found.f_type != kNfs) return;
  doctor.fault("python", Severity::note, "python-on-nfs",
               fmt::format("{} is on NFS: each rank of many nodes reads it from one server", place),
               "hpclaunch run --stage");
}

}  // namespace

void examine_python_paths(Examination& doctor, const PythonFacts& python) {
  examine_prefix(doctor, python);
  examine_paths(doctor, python);
  examine_user_packages(doctor, python);
  examine_file_system(doctor, python);
}

}  // namespace hpclaunch::job
