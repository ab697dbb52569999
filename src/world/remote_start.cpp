// Where ssh reaches no node of a job, the batch system's own remote start may.
#include <fmt/format.h>

#include "hpclaunch/text.h"
#include "world/launchers.h"

namespace hpclaunch::job {

namespace {

// "" where ssh works.
std::string why_not_ssh(const Site& site, const World& world) {
  constexpr double kSeconds = 10;
  constexpr int kOfSsh = 255;  // others are the remote command's
  const Result<std::string> ssh = world.program("ssh");
  if (!ssh) return "ssh is not on PATH";
  for (const std::string& host : site.hosts.names) {
    if (is_here(host, world)) continue;
    const Result<sys::Captured> said =
        world.capture({*ssh, "-x", "-o", "BatchMode=yes", "-o", "ConnectTimeout=5", host, "true"},
                      kSeconds, nullptr);
    if (!said) return fmt::format("ssh to {}: {}", host, said.error().message);
    return said->status == kOfSsh ? fmt::format("ssh to {} fails: {}", host, said->complaint())
                                  : "";
  }
  return {};
}

}  // namespace

void choose_remote_start(ChosenLauncher& launcher, const Request& request, const World& world,
                         const Site& site) {
  const Scheduler* system = site.batch.scheduler;
  const std::string_view variables = launcher.launcher->agent_variables;
  if (variables.empty() || system == nullptr || system->remote_start.empty() ||
      launcher.facts.uses_srun || world.made_up() || site.hosts.names.size() < 2 ||
      request.nodes == 1)
    return;
  for (const std::string_view name : split(variables, ' '))
    if (world.env.has(name)) return;
  const Result<std::string> program = world.program(std::string(system->remote_start.front()));
  if (!program) return;
  const std::string why = why_not_ssh(site, world);
  if (why.empty()) return;
  constexpr std::size_t kKind = 1, kScript = 2;
  launcher.facts.agent = *program;
  launcher.facts.agent_kind = system->remote_start[kKind];
  if (system->remote_start.size() > kScript)
    launcher.facts.agent =
        program_of_installation(world, std::string(system->remote_start[kScript]));
  launcher.why += fmt::format("; other nodes by {}: {}", system->remote_start.front(), why);
}

}  // namespace hpclaunch::job
