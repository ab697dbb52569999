#pragma once
// `hpclaunch doctor`: this machine, and the environment that a job would have.
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/env.h"
#include "hpclaunch/request.h"

namespace hpclaunch::job {

/// One line of `hpclaunch doctor`: what is there, or what is wrong with it.
struct DoctorRow {
  std::string area;  ///< "limits", "torch", ...
  std::string found;
  std::optional<Diagnostic> fault;
};

/// What `hpclaunch doctor` is asked beside the request.
struct DoctorSubject {
  std::string python;    ///< "" for the program's, else the one on PATH
  bool network = false;  ///< connect to proxies; else the network is not touched
  bool fabric = false;   ///< only libraries and providers of the network; no Python but a named one
};

/// Examines this machine and the environment that a job would have: nothing is imported, nothing but small files in HOME
/// and TMPDIR is written.
std::vector<DoctorRow> examine(const Request& request, const EnvSnapshot& env,
                               const DoctorSubject& subject);
/// Of this node alone, as a rank finds it: no site and no plan.
std::vector<DoctorRow> examine_node(const EnvSnapshot& env, const DoctorSubject& subject);

/// The environment names a provider or a network plug-in.
bool asks_for_fabric(const EnvSnapshot& env);

}  // namespace hpclaunch::job
