#pragma once
// What `hpclaunch doctor` looks at, a function per subject. Each adds rows; none stops at a fault of what it examines.
#include <set>
#include <string>
#include <vector>

#include "hpclaunch/doctor.h"
#include "hpclaunch/knowledge.h"
#include "hpclaunch/prepared.h"

namespace hpclaunch::job {

/// A shared library as the dynamic loader resolves it.
struct Loaded {
  std::string name;  ///< as needed: "libnccl.so.2"
  std::string path;  ///< "" where it is not found
};

struct LoaderAnswer {
  std::vector<Loaded> libraries;
  std::vector<std::string> complaints;  ///< of the loader: missing versions of symbols
  std::string refused;                  ///< why the library beside is not loaded; "" it is

  /// Of the library whose name begins so; "" for none.
  std::string path_of(std::string_view name) const;
};

/// Asks the dynamic loader itself, which maps the file and runs nothing of it, as ldd does. `beside`: a library, by path or
/// by name, that is loaded into the same process. Errors: `not_found` where this machine's loader is not known; as
/// sys::capture; `invalid` for a file that it refuses.
Result<LoaderAnswer> ask_loader(const std::string& path, const EnvSnapshot& env,
                                const std::string& beside = "");

/// The versions N of ncclNetPlugin_vN in a library: those that NCCL or RCCL looks for, or a plug-in has. Empty where the
/// file says none.
std::set<long> network_interfaces(const std::string& library);

/// "2.21.5" where the library's constants have "`name`2.21.5", as "NCCL version 2.21.5+cuda12.4"; "" where they do not.
std::string version_behind(const std::string& library, std::string_view name);

class Examination {
 public:
  Examination(const EnvSnapshot& env, std::vector<DoctorRow>& rows) : env_(env), rows_(rows) {}

  const EnvSnapshot& env() const { return env_; }
  void sound(std::string area, std::string found);
  void fault(std::string area, Severity severity, std::string id, std::string message,
             std::string fix);

  std::string torch = {};             ///< its extension module; "" for none
  std::string built_for = {};         ///< "CUDA 12.8"
  LoaderAnswer loaded = {};           ///< what comes with the extension module
  knowledge::Versions versions = {};  ///< of components found so far; "" is not one

  /// What a library is loaded into: the extension module, or, without one, this program.
  std::string program() const;

 private:
  const EnvSnapshot& env_;
  std::vector<DoctorRow>& rows_;
};

/// What a Python says of itself.
struct PythonFacts {
  std::string path;     ///< of the program
  std::string prefix;   ///< of its environment
  std::string version;  ///< "3.11"
  std::string torch;    ///< folder of the package; "" for none
};
void examine_python_paths(Examination& doctor, const PythonFacts& python);

/// Networks that NCCL and RCCL reach through a plug-in only, as Nic::kind has them.
inline constexpr std::string_view kThroughPlugin[] = {"slingshot", "efa"};

void examine_limits(Examination& doctor, bool has_fabric);
void examine_files(Examination& doctor);        ///< shared memory, home, TMPDIR, caches
void examine_environment(Examination& doctor);  ///< modules, the loader's paths, a second hpclaunch
void examine_proxies(Examination& doctor, bool network);  ///< `network`: try to connect
void examine_huge_pages(Examination& doctor);
/// `python`: "" for the one on PATH.
void examine_python(Examination& doctor, const std::string& python);
/// After the Python, as the next: drivers of devices against what its torch was built for.
void examine_drivers(Examination& doctor);
/// The network plug-in, libfabric and its providers. `kind`: one of kThroughPlugin, or "".
void examine_fabric(Examination& doctor, std::string_view kind);
/// At last: versions that are known not to work together, of what was found, of this machine and of loaded modules.
/// `launcher`: nullptr for none.
void examine_versions(Examination& doctor, const ChosenLauncher* launcher,
                      const std::vector<Device>& devices);

}  // namespace hpclaunch::job
