// `hpclaunch doctor`: what around a job would make it fail or run slowly, before it starts.
#include <fmt/format.h>

#include <algorithm>

#include "doctor/examination.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

// What a launcher says of its version where its path does not.
std::string version_text(const LauncherFacts& facts, const EnvSnapshot& env) {
  constexpr double kSeconds = 2;
  if (!facts.version.empty() || !facts.path.starts_with('/')) return facts.version;
  const auto answer = sys::capture({facts.path, "--version"}, kSeconds, &env);
  const std::string_view text = answer && answer->status == 0 ? trim(answer->out) : "";
  return std::string(text.substr(0, text.find('\n')));
}

// `env`: of the shell, since a plan removes variables of other jobs.
std::string scheduler_text(const EnvSnapshot& env) {
  const BatchJob batch = find_batch(env);
  if (batch.scheduler != nullptr)
    return fmt::format("{}, job {}", batch.scheduler->title, batch.id);
  const Scheduler* const here = installed(this_world(env));
  return here == nullptr ? "none" : fmt::format("{}, outside a job", here->title);
}

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
  const LauncherFacts& facts = prepared->launcher.facts;
  const bool own = facts.path.starts_with(sys::own_directory());
  const std::string version = own ? "" : version_text(facts, doctor.env());
  doctor.sound("launcher", choice("launcher") + (version.empty() ? "" : ": " + version));
  doctor.sound("hosts", choice("hosts"));
  const Topology& node = prepared->node;
  doctor.sound("node", counts({{node.packages.size(), "package"},
                               {node.numa_nodes.size(), "NUMA node"},
                               {node.devices.size(), "device"},
                               {node.nics.size(), "network interface"}}));
  if (!plan.hosts.first_is_here)
    doctor.sound("this machine",
                 "no node of that plan: limits, libraries and providers below are those of this "
                 "machine, and "
                 "only a compute node can tell its own");
  for (const Diagnostic& one : prepared->diagnostics)
    if (one.severity != Severity::note && one.id != "site-unknown")
      doctor.fault("plan", one.severity, one.id, one.message, one.fix);
}

void examine_machine(Examination& doctor, bool has_fabric) {
  examine_limits(doctor, has_fabric);
  examine_files(doctor);
  examine_huge_pages(doctor);
  examine_environment(doctor);
}

// `only_named`: no Python but one that was named.
void examine_libraries(Examination& doctor, const std::string& python, bool only_named,
                       std::string_view kind) {
  if (!only_named || !python.empty()) examine_python(doctor, python);
  if (!only_named) examine_drivers(doctor);
  examine_fabric(doctor, kind);
}

}  // namespace

std::vector<DoctorRow> examine(const Request& request, const EnvSnapshot& env,
                               const DoctorSubject& subject) {
  std::vector<DoctorRow> rows;
  const Result<Prepared> prepared = prepare(request, this_world(env), Purpose::show);
  const EnvSnapshot job = prepared ? launch_environment(prepared->plan, prepared->env) : env;
  Examination doctor(job, rows);
  const std::vector<Nic> none;
  const std::vector<Nic>& nics = prepared ? prepared->node.nics : none;
  std::string python = subject.python;
  if (python.empty() && !request.command.empty() && is_python(request.command.front()))
    python = request.command.front();
  if (!subject.fabric) {
    doctor.sound("scheduler", scheduler_text(env));
    examine_site(doctor, prepared);
    examine_machine(doctor, std::ranges::any_of(nics, &Nic::on_fabric));
    examine_proxies(doctor, subject.network);
  }
  const auto unserved = std::ranges::find_if(
      nics, [](const Nic& nic) { return std::ranges::count(kThroughPlugin, nic.kind) > 0; });
  examine_libraries(doctor, python, subject.fabric, unserved == nics.end() ? "" : unserved->kind);
  if (!subject.fabric) {
    const std::vector<Device> devices = prepared ? prepared->node.devices : std::vector<Device>{};
    examine_versions(doctor, prepared ? &prepared->launcher : nullptr, devices);
  }
  return rows;
}

std::vector<DoctorRow> examine_node(const EnvSnapshot& env, const DoctorSubject& subject) {
  std::vector<DoctorRow> rows;
  Examination doctor(env, rows);
  const auto names = [](const char* folder) {
    const auto found = sys::list_directory(folder);
    return found ? *found : std::vector<std::string>{};
  };
  const std::vector<std::string> adapters = names("/sys/class/infiniband");
  const bool slingshot = !names("/sys/class/cxi").empty();
  const bool efa = std::ranges::any_of(adapters, [](const std::string& one) {
    return sys::real_path(fmt::format("/sys/class/infiniband/{}/device/driver", one))
        .ends_with("/efa");
  });
  if (!subject.fabric) examine_machine(doctor, slingshot || !adapters.empty());
  examine_libraries(doctor, subject.python, subject.fabric,
                    slingshot ? "slingshot"
                    : efa     ? "efa"
                              : "");
  if (!subject.fabric) examine_versions(doctor, nullptr, {});
  return rows;
}

}  // namespace hpclaunch::job
