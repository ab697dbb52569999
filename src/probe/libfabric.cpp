#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <cstring>
#include <iterator>
#include <vector>

#include "hpclaunch/probe.h"
#include "hpclaunch/text.h"
#include "probe/child.h"
#include "probe/libfabric_abi.h"
#include "probe/live.h"
#include "probe/pci.h"

namespace hpclaunch::probe {
namespace {

/// One entry of its answer.
struct Service {
  std::string provider;
  std::string domain;
  std::string pci;  ///< "" when unknown
  bool rdm = false;
};

std::string text_or_empty(const char* text) { return text == nullptr ? "" : text; }

Service service_of(const ofi::Info& info) {
  Service service;
  if (info.fabric != nullptr) service.provider = text_or_empty(info.fabric->provider);
  if (info.domain != nullptr) service.domain = text_or_empty(info.domain->name);
  service.rdm = info.endpoint != nullptr && info.endpoint->type == ofi::kEndpointRdm;
  if (info.nic != nullptr && info.nic->bus != nullptr && info.nic->bus->type == ofi::kBusPci) {
    const ofi::BusAttr& bus = *info.nic->bus;
    service.pci =
        to_string(PciAddress{bus.pci_domain, bus.pci_bus, bus.pci_device, bus.pci_function});
  }
  return service;
}

// One line for each entry: provider, domain, PCI, R or nothing, separated by tabs.
Result<std::string> list_services(const std::string& library) {
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
  std::string lines;
  for (const ofi::Info* info = answer; info != nullptr; info = info->next) {
    const Service service = service_of(*info);
    lines += fmt::format("{}\t{}\t{}\t{}\n", service.provider, service.domain, service.pci,
                         service.rdm ? "R" : "");
  }
  return lines;  // this process exits now: nothing is freed, no destructor of a provider runs
}

std::vector<Service> services_in(const std::string& lines) {
  std::vector<Service> services;
  for (const std::string_view line : split(lines, '\n')) {
    const std::vector<std::string_view> fields = split(line, '\t');
    if (fields.size() != 4) continue;
    services.push_back(
        {std::string(fields[0]), std::string(fields[1]), std::string(fields[2]), fields[3] == "R"});
  }
  return services;
}

bool on_a_fabric(const Nic& nic) { return !nic.kind.empty() && nic.kind != "ethernet"; }

/// Socket providers work on any interface and are not the fabric's.
bool by_sockets(const std::string& provider) {
  constexpr std::string_view kNames[] = {"tcp", "sockets", "net", "udp", "shm", "sm2", "lnx"};
  const std::string_view core = std::string_view(provider).substr(0, provider.find(';'));
  return std::find(std::begin(kNames), std::end(kNames), core) != std::end(kNames);
}

/// Domains are named after the adapter: "cxi0", "mlx5_0", "mlx5_0-xrc", "rdmap16s27-rdm".
bool serves(const Service& service, const Nic& nic) {
  if (service.provider.empty() || by_sockets(service.provider)) return false;
  if (!nic.fabric.empty() &&
      (service.domain == nic.fabric || service.domain.rfind(nic.fabric + "-", 0) == 0))
    return true;
  return !service.pci.empty() && service.pci == nic.pci;
}

}  // namespace

Status ask_libfabric(Topology& topology, const std::string& library, double limit_seconds) {
  if (std::none_of(topology.nics.begin(), topology.nics.end(), on_a_fabric)) return Done{};
  const Result<std::string> lines =
      run_in_child([&] { return list_services(library); }, limit_seconds);
  if (!lines) return lines.error();
  const std::vector<Service> services = services_in(*lines);
  for (Nic& nic : topology.nics) {
    if (!on_a_fabric(nic)) continue;
    const Service* best = nullptr;  // libfabric's order is its preference
    for (const Service& service : services)
      if (serves(service, nic) && (best == nullptr || (service.rdm && !best->rdm))) best = &service;
    if (best != nullptr) nic.provider = best->provider;
  }
  return Done{};
}

}  // namespace hpclaunch::probe

namespace hpclaunch {

Status ask_libfabric(Topology& topology, double limit_seconds) {
  return probe::ask_libfabric(topology, "libfabric.so.1", limit_seconds);
}

}  // namespace hpclaunch
