#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <vector>

#include "hpclaunch/probe.h"
#include "hpclaunch/text.h"
#include "probe/child.h"
#include "probe/libfabric_abi.h"
#include "probe/live.h"
#include "probe/pci.h"

namespace hpclaunch::probe {
namespace {

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

bool is_rdm(const ofi::Info& info) {
  return info.endpoint != nullptr && info.endpoint->type == ofi::kEndpointRdm;
}

std::string provider_of(const ofi::Info& info) {
  return info.fabric == nullptr ? "" : text_or_empty(info.fabric->provider);
}

std::string pci_of(const ofi::Info& info) {
  if (info.nic == nullptr || info.nic->bus == nullptr || info.nic->bus->type != ofi::kBusPci)
    return "";
  const ofi::BusAttr& bus = *info.nic->bus;
  return to_string(PciAddress{bus.pci_domain, bus.pci_bus, bus.pci_device, bus.pci_function});
}

/// Domains are named after the adapter: "cxi0", "mlx5_0", "mlx5_0-xrc", "rdmap16s27-rdm". Socket providers
/// work on any interface and are not the fabric's.
bool serves(const ofi::Info& info, const Nic& nic) {
  constexpr std::string_view kSockets[] = {"", "tcp", "sockets", "net", "udp", "shm", "sm2", "lnx"};
  const std::string provider = provider_of(info);
  const std::string core = provider.substr(0, provider.find(';'));
  if (std::ranges::count(kSockets, core) > 0) return false;
  const std::string domain = info.domain == nullptr ? "" : text_or_empty(info.domain->name);
  if (!nic.fabric.empty() && (domain == nic.fabric || domain.starts_with(nic.fabric + "-")))
    return true;
  const std::string pci = pci_of(info);
  return !pci.empty() && pci == nic.pci;
}

/// All that is offered, in its order of preference; never empty.
Result<const ofi::Info*> get_info(const std::string& library) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Error{ErrorKind::unsupported,
                 fmt::format("libfabric not found: {}", text_or_empty(dlerror())),
                 "load its module, or add its directory to LD_LIBRARY_PATH"};
  const auto get = reinterpret_cast<ofi::GetInfo*>(dlsym(handle, "fi_getinfo"));
  if (get == nullptr)
    return Error{ErrorKind::unsupported,
                 fmt::format("{} is not libfabric: it has no fi_getinfo", library)};
  ofi::Info* answer = nullptr;
  const int status = get(ofi::kVersion, nullptr, nullptr, 0, nullptr, &answer);
  if (status != 0)
    return Error{ErrorKind::unsupported,
                 fmt::format("libfabric offers no provider: fi_getinfo returned {} ({})", status,
                             std::strerror(status < 0 ? -status : status))};
  return answer;
}

/// The provider of each interface, a line each; an empty one for none.
Result<std::string> list_providers(const std::vector<Nic>& nics, const std::string& library) {
  const Result<const ofi::Info*> answer = get_info(library);
  if (!answer) return answer.error();
  std::string lines;
  for (const Nic& nic : nics) {
    const ofi::Info* best = nullptr;
    for (const ofi::Info* info = *answer; info != nullptr && nic.on_fabric(); info = info->next)
      if (serves(*info, nic) && (best == nullptr || (is_rdm(*info) && !is_rdm(*best)))) best = info;
    lines += (best == nullptr ? "" : provider_of(*best)) + "\n";
  }
  return lines;  // this process exits now: nothing is freed, no destructor of a provider runs
}

Result<std::string> list_all(const std::string& library) {
  const Result<const ofi::Info*> answer = get_info(library);
  if (!answer) return answer.error();
  std::string lines;
  for (const ofi::Info* info = *answer; info != nullptr; info = info->next)
    if (const std::string line = provider_of(*info) + "\n";
        ("\n" + lines).find("\n" + line) == std::string::npos)
      lines += line;
  return lines;
}

}  // namespace

Status ask_libfabric(Topology& topology, const std::string& library, double limit_seconds) {
  if (std::ranges::none_of(topology.nics, &Nic::on_fabric)) return Done{};
  const Result<std::string> answer =
      run_in_child([&] { return list_providers(topology.nics, library); }, limit_seconds);
  if (!answer) return answer.error();
  const std::vector<std::string_view> lines = split(*answer, '\n');
  for (std::size_t i = 0; i < std::min(lines.size(), topology.nics.size()); ++i)
    if (!lines[i].empty()) topology.nics[i].provider = lines[i];
  return Done{};
}

}  // namespace hpclaunch::probe

namespace hpclaunch {

Status ask_libfabric(Topology& topology, double limit_seconds) {
  return probe::ask_libfabric(topology, "libfabric.so.1", limit_seconds);
}

Result<std::vector<std::string>> libfabric_providers(double limit_seconds) {
  const Result<std::string> answer =
      probe::run_in_child([] { return probe::list_all("libfabric.so.1"); }, limit_seconds);
  if (!answer) return answer.error();
  std::vector<std::string> names;
  for (const std::string_view line : split(*answer, '\n'))
    if (!line.empty()) names.emplace_back(line);
  return names;
}

}  // namespace hpclaunch
