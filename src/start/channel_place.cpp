// Where hpclaunch listens for the ranks' monitors: by the address that their own rendezvous goes to.
#include <algorithm>

#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

constexpr std::size_t kMostAddresses = 4;  // that a shim reads

bool is_loopback(std::string_view address) {
  return address.starts_with("127.") || address == "::1";
}

// The node's own address in MASTER_ADDR; elsewhere, as on a login node, those of this host.
std::vector<std::string> addresses(const Plan& plan, const EnvSnapshot& env) {
  const std::vector<std::string> own = sys::own_addresses();
  std::vector<std::string> found;
  const bool alone = plan.nodes() == 1 && plan.hosts.first_is_here;
  const auto add = [&](const std::string& address) {
    const bool usable = address.find('%') == std::string::npos && (alone || !is_loopback(address));
    if (usable && std::ranges::count(own, address) > 0 && std::ranges::count(found, address) == 0 &&
        found.size() < kMostAddresses)
      found.push_back(address);
  };
  if (const std::string* master = everywhere(plan, env, "MASTER_ADDR"); master != nullptr)
    if (const auto resolved = sys::resolve(*master))
      for (const std::string& address : *resolved) add(address);
  if (found.empty())
    for (const std::string& address : own) add(address);
  return found;
}

// "SrunPortRange=60001-63000", of the first configuration that can be read.
void choose_ports(const Scheduler& system, const EnvSnapshot& env, sys::ChannelPlace& place) {
  std::vector<std::string> files(system.configurations.begin(), system.configurations.end());
  if (const std::string named = env.get(system.configured_by); !named.empty()) files = {named};
  for (const std::string& file : files) {
    const Result<std::string> text = sys::read_file(file);
    if (!text) continue;
    for (const std::string_view line : split(*text, '\n')) {
      const std::size_t equals = line.find('=');
      if (equals == line.npos ||
          to_lower(trim(line.substr(0, equals))) != to_lower(system.ports_setting))
        continue;
      const std::vector<std::string_view> ends = split(trim(line.substr(equals + 1)), '-');
      const auto first = parse_natural(ends.front(), 65'535);
      const auto last = parse_natural(ends.back(), 65'535);
      if (first && last && *first > 0 && *first <= *last)
        place.first_port = static_cast<int>(*first), place.last_port = static_cast<int>(*last);
    }
    return;
  }
}

}  // namespace

sys::ChannelPlace channel_place(const Plan& plan, const EnvSnapshot& env) {
  sys::ChannelPlace place;
  place.addresses = addresses(plan, env);
  for (const Scheduler& system : rows<Scheduler>()) {
    const bool used =
        plan.launch.launcher == system.launcher || env.find(system.job_variable) != nullptr;
    if (used && !system.ports_setting.empty()) choose_ports(system, env, place);
  }
  return place;
}

}  // namespace hpclaunch::job
