#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <iterator>
#include <string_view>
#include <tuple>

#include "hpclaunch/rank_report.h"
#include "plan/environment/environment.h"

namespace hpclaunch {

namespace {

constexpr const char* kNccl = "NCCL_SOCKET_IFNAME";
constexpr const char* kGloo = "GLOO_SOCKET_IFNAME";

// Bridges and tunnels of containers and virtual machines: they have addresses and reach no other node.
bool is_virtual(std::string_view name) {
  constexpr std::array<std::string_view, 14> kBeginnings = {
      "lo",   "docker",  "veth",   "br-", "virbr",  "vnet", "cni",
      "cali", "flannel", "cilium", "lxc", "podman", "tun",  "tap"};
  return std::ranges::any_of(kBeginnings,
                             [&](std::string_view lead) { return name.starts_with(lead); });
}

bool is_candidate(const Nic& nic) {
  return !nic.name.empty() && nic.state != "down" && !nic.addresses.empty() &&
         !is_virtual(nic.name);
}

// A fabric that carries IP by itself. To sockets, which do no RDMA, RoCE and EFA are Ethernet.
bool has_own_ip(const Nic& nic) {
  return nic.kind == "slingshot" || nic.kind == "infiniband" || nic.kind == "omni-path";
}

// More is better: a fabric of its own, then the speed of the link.
std::tuple<bool, int> rank_of(const Nic& nic) { return {has_own_ip(nic), nic.speed_mbps}; }

// Each name once, since the slaves of a bond share its name: the best of them counts.
std::vector<Nic> candidates(const Topology& node) {
  std::vector<Nic> all;
  for (const Nic& nic : node.nics) {
    if (!is_candidate(nic)) continue;
    const auto same = std::ranges::find(all, nic.name, &Nic::name);
    if (same == all.end())
      all.push_back(nic);
    else if (rank_of(nic) > rank_of(*same))
      *same = nic;
  }
  return all;
}

bool carries(const Nic& nic, const std::string& address) {
  return !address.empty() && std::ranges::count(nic.addresses, address) > 0;
}

// Gloo where NCCL is: the first interface that NCCL_SOCKET_IFNAME selects, of those known of the node.
void follow_nccl(const PlanInput& input, const std::string& value, EnvSettings& settings) {
  if (value.starts_with('^')) return;  // all but these
  for (const Nic& nic : input.live ? input.live->nics : input.node.nics)
    if (!nic.name.empty() && (!input.live || is_candidate(nic)) &&
        interface_problem(kNccl, value, {Interface{nic.name, true, {"any"}}}).empty())
      return settings.add(
          kGloo, Layer::builtin, nic.name,
          fmt::format("the first interface of {}={}; Gloo takes full names", kNccl, value));
}

// "hsn0, hsn1 (slingshot, 200 Gbit/s)"
std::string described(const std::vector<Nic>& nics) {
  std::vector<std::string> facts;
  for (const Nic& nic : nics) {
    const std::string kind = nic.kind.empty() ? "interface" : nic.kind;
    if (std::ranges::count(facts, kind) == 0) facts.push_back(kind);
  }
  if (const int speed = nics.front().speed_mbps; speed > 0)
    facts.push_back(fmt::format("{} Gbit/s", static_cast<double>(speed) / 1000));
  return fmt::format("{} ({})", fmt::join(names_of(nics), ", "), fmt::join(facts, ", "));
}

// Why these went before `others`; `led`: MASTER_ADDR was typed, and is an address of the first.
std::string reason(const std::vector<Nic>& chosen, const std::vector<Nic>& others, bool led) {
  const bool own = has_own_ip(chosen.front());
  const auto alike = [&](const Nic& nic) { return has_own_ip(nic) == own; };
  std::string why = led ? "MASTER_ADDR is an address of " + chosen.front().name
                    : std::ranges::none_of(others, alike) ? "fabric with an address"
                    : own                                 ? "fastest fabric with an address"
                                                          : "fastest with an address";
  const auto unclear = [&](const Nic& nic) { return alike(nic) && nic.speed_mbps == 0; };
  if (!led && std::ranges::any_of(others, unclear)) why += ", as far as speeds are known";
  if (!others.empty()) why += fmt::format("; not used: {}", fmt::join(names_of(others), ", "));
  return described(chosen) + ": " + why;
}

}  // namespace

// Sources: NCCL documentation, NCCL_SOCKET_IFNAME ("=" takes full names, a comma separates them);
// PyTorch, torch/csrc/distributed/c10d (GLOO_SOCKET_IFNAME is taken as a full name).
void add_interfaces(const PlanInput& input, int nodes, EnvSettings& settings) {
  if (nodes < 2 || settings.has(kGloo)) return;
  if (const std::string* nccl = settings.so_far(kNccl)) return follow_nccl(input, *nccl, settings);
  if (!input.live || settings.has(kNccl)) return;
  const std::vector<Nic> all = candidates(*input.live);
  if (all.empty()) return;
  if (all.size() == 1)  // Gloo would take what the host name leads to, which may be loopback
    return settings.add(
        kGloo, Layer::builtin, all.front().name,
        fmt::format("the node's only interface with an address; Gloo would take the "
                    "one that the host name leads to"));
  const std::string* given = settings.so_far("MASTER_ADDR");
  const std::string typed = given == nullptr ? "" : *given;
  const auto leader =
      std::ranges::find_if(all, [&](const Nic& nic) { return carries(nic, typed); });
  const bool led = leader != all.end();
  const Nic& best = led ? *leader : *std::ranges::max_element(all, {}, rank_of);
  std::vector<Nic> chosen;
  std::vector<Nic> others;
  for (const Nic& nic : all) {
    // Of Ethernet ports that are alike one may lead to the other nodes, and the next to storage.
    const bool alike = led && !has_own_ip(best) ? &nic == &best : rank_of(nic) == rank_of(best);
    (alike ? chosen : others).push_back(nic);
  }
  const std::string& rendezvous = led ? typed : input.rendezvous.address;
  if (others.empty() && !has_own_ip(best)) {
    // Which one reaches other nodes is known only of the one that they meet on.
    const auto meets =
        std::ranges::find_if(chosen, [&](const Nic& nic) { return carries(nic, rendezvous); });
    if (meets != chosen.end())
      settings.add(kGloo, Layer::builtin, meets->name,
                   "MASTER_ADDR is an address of " + meets->name);
    return;
  }
  std::stable_partition(chosen.begin(), chosen.end(),
                        [&](const Nic& nic) { return carries(nic, rendezvous); });
  const std::vector<std::string> names = names_of(chosen);
  const std::string why = reason(chosen, others, led);
  if (input.profile == nullptr)  // a profile's silence about NCCL leaves it the choice
    settings.add(kNccl, Layer::builtin, fmt::format("={}", fmt::join(names, ",")), why);
  settings.add(kGloo, Layer::builtin, names.front(), why);
}

}  // namespace hpclaunch
