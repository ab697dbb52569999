#include "plan/interfaces.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string_view>
#include <tuple>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

constexpr const char* kNccl = "NCCL_SOCKET_IFNAME";
constexpr const char* kGloo = "GLOO_SOCKET_IFNAME";

// Bridges, tunnels and the like that container and virtual machine software makes on each node for
// itself: they have addresses and lead nowhere.
bool is_virtual(std::string_view name) {
  constexpr std::array<std::string_view, 14> kBeginnings = {
      "lo",   "docker",  "veth",   "br-", "virbr",  "vnet", "cni",
      "cali", "flannel", "cilium", "lxc", "podman", "tun",  "tap"};
  return std::any_of(kBeginnings.begin(), kBeginnings.end(),
                     [&](std::string_view lead) { return name.substr(0, lead.size()) == lead; });
}

bool is_candidate(const Nic& nic) {
  return !nic.name.empty() && nic.state != "down" && !nic.addresses.empty() &&
         !is_virtual(nic.name);
}

// More is better: a fabric of its own, then the speed of the link.
std::tuple<bool, int> rank_of(const Nic& nic) {
  return {!nic.kind.empty() && nic.kind != "ethernet", nic.speed_mbps};
}

bool was_given(const PlanInput& input, const std::string& name) {
  const PlacementOptions& typed = input.options;
  return input.env.has(name) ||
         std::any_of(typed.set.begin(), typed.set.end(),
                     [&](const auto& one) { return one.first == name; }) ||
         std::find(typed.unset.begin(), typed.unset.end(), name) != typed.unset.end();
}

}  // namespace

// Sources: NCCL documentation, NCCL_SOCKET_IFNAME ("=" takes full names, a comma separates them);
// PyTorch, torch/csrc/distributed/c10d (GLOO_SOCKET_IFNAME is taken as a full name).
void add_interfaces(const PlanInput& input, const Plan& placed, Fold& fold) {
  if (placed.nodes() < 2 || input.profile != nullptr || !input.live) return;
  if (was_given(input, kNccl) || was_given(input, kGloo)) return;
  std::vector<const Nic*> all;
  for (const Nic& nic : input.live->nics)
    if (is_candidate(nic)) all.push_back(&nic);
  if (all.size() < 2) return;
  std::tuple<bool, int> best;
  for (const Nic* nic : all) best = std::max(best, rank_of(*nic));
  std::vector<const Nic*> chosen;
  std::vector<std::string> others;
  for (const Nic* nic : all) {
    if (rank_of(*nic) == best)
      chosen.push_back(nic);
    else
      others.push_back(nic->name);
  }
  // Ethernet ports that are all alike: which of them leads to the other nodes is not known here.
  if (others.empty() && !std::get<bool>(best)) return;
  const auto leads = [&](const Nic* nic) {
    const auto& addresses = nic->addresses;
    return std::find(addresses.begin(), addresses.end(), input.rendezvous.address) !=
           addresses.end();
  };
  std::stable_sort(chosen.begin(), chosen.end(),
                   [&](const Nic* a, const Nic* b) { return leads(a) && !leads(b); });
  std::vector<std::string> names;
  names.reserve(chosen.size());
  for (const Nic* nic : chosen) names.push_back(nic->name);
  const std::string kind = chosen.front()->kind.empty() ? "interface" : chosen.front()->kind;
  const std::string speed =
      chosen.front()->speed_mbps > 0
          ? fmt::format(", {} Gbit/s", static_cast<double>(chosen.front()->speed_mbps) / 1000)
          : "";
  std::string why =
      fmt::format("{} ({}{}) {} the fastest here with an address", fmt::join(names, ", "), kind,
                  speed, names.size() == 1 ? "is" : "are");
  if (!others.empty()) why += fmt::format(", before {}", fmt::join(others, ", "));
  fold.add(kNccl, Layer::builtin, fmt::format("={}", fmt::join(names, ",")), kRule, why);
  fold.add(kGloo, Layer::builtin, names.front(), kRule, why);
}

}  // namespace hpclaunch
