// `hpclaunch doctor`: what around a job would make it fail or run slowly, before it starts.
#include "job/doctor/doctor.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "job/programs.h"

namespace hpclaunch::job {

namespace {

void examine_site(Examination& doctor, const Result<Prepared>& prepared) {
  if (!prepared)
    return doctor.fault("plan", Severity::error, "no-plan", prepared.error().message,
                        prepared.error().hint);
  const Plan& plan = prepared->plan;
  const auto choice = [&](const char* name) -> std::string {
    const Setting* const found = plan.find_choice(name);
    const auto* text = found == nullptr ? nullptr : std::get_if<std::string>(&found->value());
    return text == nullptr ? "none" : fmt::format("{} ({})", *text, found->history.back().why);
  };
  doctor.sound("site", choice("profile"));
  doctor.sound("launcher", choice("launcher"));
  doctor.sound("hosts", choice("hosts"));
  const Topology& node = prepared->node;
  doctor.sound("node", counts({{node.packages.size(), "package"},
                               {node.numa_nodes.size(), "NUMA node"},
                               {node.devices.size(), "device"},
                               {node.nics.size(), "network interface"}}));
  if (!plan.first_is_here)
    doctor.sound("this machine",
                 "no node of that plan: limits, libraries and providers below are those of this "
                 "machine, and "
                 "only a compute node can tell its own");
  for (const Diagnostic& one : prepared->diagnostics)
    if (one.severity != Severity::note && one.id != "site-unknown")
      doctor.fault("plan", one.severity, one.id, one.message, one.fix);
}

}  // namespace

std::vector<DoctorRow> examine(const Request& request, const EnvSnapshot& env,
                               const std::string& python, bool network) {
  std::vector<DoctorRow> rows;
  Examination doctor(env, rows);
  const Result<Prepared> prepared = prepare(request, env, Purpose::show);
  examine_site(doctor, prepared);
  const bool fabric = prepared && std::ranges::any_of(prepared->node.nics, &Nic::on_fabric);
  examine_limits(doctor, fabric);
  examine_files(doctor);
  examine_environment(doctor);
  examine_proxies(doctor, network);
  const bool named =
      python.empty() && !request.command.empty() && is_python(request.command.front());
  examine_python(doctor, named ? request.command.front() : python);
  examine_network_libraries(doctor, prepared ? &prepared->plan : nullptr);
  examine_versions(doctor, prepared ? &prepared->launcher : nullptr);
  return rows;
}

std::vector<DoctorRow> examine_node(const EnvSnapshot& env, const std::string& python) {
  std::vector<DoctorRow> rows;
  Examination doctor(env, rows);
  const auto any = [](const char* folder) {
    const auto names = sys::list_directory(folder);
    return names && !names->empty();
  };
  examine_limits(doctor, any("/sys/class/infiniband") || any("/sys/class/cxi"));
  examine_files(doctor);
  examine_environment(doctor);
  examine_python(doctor, python);
  examine_network_libraries(doctor, nullptr);
  examine_versions(doctor, nullptr);
  return rows;
}

}  // namespace hpclaunch::job
