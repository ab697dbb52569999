#include <dlfcn.h>
#include <fmt/format.h>

#include <algorithm>
#include <array>
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

/// A function of the library.
template <class Function>
Result<Function*> function_of(const std::string& library, const char* name) {
  void* const handle = dlopen(library.c_str(), RTLD_NOW | RTLD_LOCAL);
  if (handle == nullptr)
    return Error{ErrorKind::unsupported,
                 fmt::format("libfabric not found: {}", text_or_empty(dlerror())),
                 "load its module, or add its directory to LD_LIBRARY_PATH"};
  const auto found = reinterpret_cast<Function*>(dlsym(handle, name));
  if (found == nullptr)
    return Error{ErrorKind::unsupported,
                 fmt::format("{} is not libfabric: it has no {}", library, name)};
  return found;
}

/// All that is offered, in its order of preference; never empty.
Result<const ofi::Info*> get_info(const std::string& library) {
  const auto get = function_of<ofi::GetInfo>(library, "fi_getinfo");
  if (!get) return get.error();
  ofi::Info* answer = nullptr;
  const int status = (*get)(ofi::kVersion, nullptr, nullptr, 0, nullptr, &answer);
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

/// The version, then a line for each provider.
Result<std::string> list_all(const std::string& library) {
  const auto version = function_of<ofi::GetVersion>(library, "fi_version");
  if (!version) return version.error();
  const std::uint32_t number = (*version)();
  const Result<const ofi::Info*> answer = get_info(library);
  if (!answer) return answer.error();
  std::string lines = fmt::format("{}.{}\n", number >> 16U, number & 0xffffU);
  for (const ofi::Info* info = *answer; info != nullptr; info = info->next)
    if (const std::string line = provider_of(*info) + "\n";
        ("\n" + lines).find("\n" + line) == std::string::npos)
      lines += line;
  return lines;
}

constexpr char kField = '\x1f';

/// A line for each parameter: name, type, help, value.
Result<std::string> list_parameters(const std::string& library) {
  const auto get = function_of<ofi::GetParameters>(library, "fi_getparams");
  if (!get) return get.error();
  ofi::Parameter* all = nullptr;
  int count = 0;
  if (const int status = (*get)(&all, &count); status != 0)
    return Error{ErrorKind::unsupported, fmt::format("fi_getparams returned {}", status)};
  std::string lines;
  for (int i = 0; i < count; ++i) {
    const auto one_line = [](const char* text) {
      return replaced(text_or_empty(text), {{'\n', " "}, {kField, " "}});
    };
    lines += one_line(all[i].name) + kField + std::to_string(all[i].type) + kField +
             one_line(all[i].help) + kField + one_line(all[i].value) + "\n";
  }
  return lines;
}

}  // namespace

Result<std::vector<FabricParameter>> libfabric_parameters(const std::string& library,
                                                          double limit_seconds) {
  // In the order of libfabric's enum fi_param_type.
  constexpr std::array kTypes = {"text", "integer", "yes or no", "size"};
  const Result<std::string> answer =
      run_in_child([&] { return list_parameters(library); }, limit_seconds);
  if (!answer) return answer.error();
  std::vector<FabricParameter> all;
  for (const std::string_view line : split(*answer, '\n')) {
    const std::vector<std::string_view> fields = split(line, kField);
    if (fields.size() != 4) continue;
    const auto type = static_cast<std::size_t>(parse_natural(fields[1]).value_or(0));
    all.push_back({std::string(fields[0]), kTypes[std::min(type, kTypes.size() - 1)],
                   std::string(fields[2]), std::string(fields[3])});
  }
  return all;
}

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

Result<std::vector<FabricParameter>> libfabric_parameters(double limit_seconds) {
  return probe::libfabric_parameters("libfabric.so.1", limit_seconds);
}

Result<FabricLibrary> libfabric_offer(const std::string& library, double limit_seconds) {
  const Result<std::string> answer =
      probe::run_in_child([&] { return probe::list_all(library); }, limit_seconds);
  if (!answer) return answer.error();
  FabricLibrary found;
  for (const std::string_view line : split(*answer, '\n'))
    if (found.version.empty())
      found.version = line;
    else if (!line.empty())
      found.providers.emplace_back(line);
  return found;
}

}  // namespace hpclaunch
