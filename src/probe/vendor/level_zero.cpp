#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <utility>

#include "probe/vendor/level_zero_abi.h"
#include "probe/vendor/readers.h"

namespace hpclaunch::probe::vendor {

namespace {

using namespace level_zero;

constexpr std::uint32_t kVendorId = 0x8086;

std::string words(Status status) {
  const char* said = nullptr;
  switch (status) {
    case kDeviceLost:
      said = "the device is lost";
      break;
    case kRequiresReset:
      said = "the device needs a reset";
      break;
    case kNoPermission:
      said = "no permission";
      break;
    case kNotAvailable:
      said = "in use";
      break;
    case kDependencyUnavailable:
      said = "something that it needs is missing";
      break;
    case kUninitialized:
      said = "no driver that can be used";
      break;
    case kInvalidArgument:
      said = "invalid argument";
      break;
    default:
      said = "failed";
      break;
  }
  return fmt::format("{} ({:#x})", said, static_cast<unsigned>(status));
}

bool is_fault(Status status) {
  return status != kSuccess && status != kUnsupportedFeature && status != kUnsupportedVersion;
}

struct Calls {
  Init* init;
  GetDrivers* drivers;
  GetParts* devices;
  GetParts* subdevices;
  GetDeviceProperties* properties;
  GetMemoryProperties* memory;
  GetPciProperties* pci;
  GetParts* ports;
  GetPortProperties* port;
  GetPortState* port_state;

  explicit Calls(const Library& of)
      : init(of.find<Init>("zeInit")),
        drivers(of.find<GetDrivers>("zeDriverGet")),
        devices(of.find<GetParts>("zeDeviceGet")),
        subdevices(of.find<GetParts>("zeDeviceGetSubDevices")),
        properties(of.find<GetDeviceProperties>("zeDeviceGetProperties")),
        memory(of.find<GetMemoryProperties>("zeDeviceGetMemoryProperties")),
        pci(of.find<GetPciProperties>("zeDevicePciGetPropertiesExt")),
        ports(of.find<GetParts>("zesDeviceEnumFabricPorts")),
        port(of.find<GetPortProperties>("zesFabricPortGetProperties")),
        port_state(of.find<GetPortState>("zesFabricPortGetState")) {}
};

constexpr Asker<kSuccess, is_fault, words> ask;

/// The bytes last to first, as Intel's xpu-smi prints them.
std::string uuid_text(const std::uint8_t (&id)[kUuidSize]) {
  if (std::all_of(std::begin(id), std::end(id), [](std::uint8_t byte) { return byte == 0; })) {
    return "";
  }
  std::string text;
  for (int i = kUuidSize; i-- > 0;) {
    text += fmt::format("{:02x}", id[i]);
    if (i == 12 || i == 10 || i == 8 || i == 6) text += '-';
  }
  return text;
}

/// Adds the device if it is a discrete GPU of Intel's that can be told from others.
bool read_device(const Calls& calls, Handle device, Told& told) {
  DeviceProperties properties{};
  properties.stype = kDeviceProperties;
  if (!ask(told, "zeDeviceGetProperties", calls.properties, device, &properties)) return false;
  if (properties.type != kGpu || properties.vendor_id != kVendorId) return false;
  if ((properties.flags & kIntegrated) != 0) return false;
  PciProperties pci{};
  pci.stype = kPciProperties;
  if (!ask(told, "zeDevicePciGetPropertiesExt", calls.pci, device, &pci)) return false;
  ToldDevice one;
  one.pci = pci_text(pci.domain, pci.bus, pci.device, pci.function);
  if (one.pci.empty()) {
    remark(told, "zeDevicePciGetPropertiesExt", "no PCI address");
    return false;
  }
  one.model = clean(properties.name, sizeof properties.name);
  one.uuid = uuid_text(properties.uuid);
  MemoryProperties blank{};
  blank.stype = kMemoryProperties;
  if (calls.memory != nullptr) {
    const auto memories = ask.list(
        told, "zeDeviceGetMemoryProperties",
        [&](auto* count, auto* into) { return calls.memory(device, count, into); }, blank);
    for (const MemoryProperties& memory : memories) one.memory_bytes += memory.total;
  }
  if (calls.subdevices != nullptr) {
    std::uint32_t count = 0;
    if (ask(told, "zeDeviceGetSubDevices", calls.subdevices, device, &count, nullptr) &&
        count <= kMostInstances) {
      one.subdevices = static_cast<int>(count);
    }
  }
  told.devices.push_back(std::move(one));
  return true;
}

/// One end of a cable: which device's, and the fabric id it leads to.
struct Port {
  std::size_t device;
  std::uint32_t remote;
};

void read_ports(const Calls& calls, const std::vector<Handle>& handles, Told& told) {
  if (calls.ports == nullptr || calls.port == nullptr || calls.port_state == nullptr) return;
  std::map<std::uint32_t, std::size_t> owner;
  std::vector<Port> up;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    const auto ports = ask.list<Handle>(
        told, "zesDeviceEnumFabricPorts",
        [&](auto* count, auto* into) { return calls.ports(handles[i], count, into); });
    for (Handle port : ports) {
      PortProperties properties{};
      properties.stype = kFabricPortProperties;
      PortState state{};
      state.stype = kFabricPortState;
      if (!ask(told, "zesFabricPortGetProperties", calls.port, port, &properties)) continue;
      owner.emplace(properties.id.fabric, i);
      if (!ask(told, "zesFabricPortGetState", calls.port_state, port, &state)) continue;
      if (state.status == kPortHealthy || state.status == kPortDegraded) {
        up.push_back({i, state.remote.fabric});
      }
    }
  }
  // Each cable has two ends that both tell of it: count those of the lower device.
  std::map<std::pair<std::size_t, std::size_t>, std::array<int, 2>> ends;
  for (const Port& port : up) {
    const auto found = owner.find(port.remote);
    if (found == owner.end() || found->second == port.device) continue;
    const auto pair = std::minmax(port.device, found->second);
    ++ends[pair][port.device < found->second ? 0 : 1];
  }
  for (const auto& [pair, count] : ends) {
    told.links.push_back({pair.first, pair.second, std::max(count[0], count[1])});
  }
}

}  // namespace

Result<Told> read_level_zero(const Library& library) {
  const Calls calls(library);
  if (calls.init == nullptr || calls.drivers == nullptr || calls.devices == nullptr ||
      calls.properties == nullptr || calls.pci == nullptr) {
    return Error{ErrorKind::system, "it lacks the functions that list devices"};
  }
  setenv("ZES_ENABLE_SYSMAN", "1", 1);                 // or there are no fabric ports
  setenv("ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE", 1);  // a device is a card, whatever the default
  if (const Status status = calls.init(0); status != kSuccess) {
    return Error{ErrorKind::system, fmt::format("zeInit: {}", words(status))};
  }
  Told told;
  told.vendor = "intel";
  told.link_kind = "xe-link";
  const auto drivers = ask.list<Handle>(told, "zeDriverGet", calls.drivers);
  std::vector<Handle> handles;
  for (Handle driver : drivers) {
    const auto devices = ask.list<Handle>(told, "zeDeviceGet", [&](auto* count, auto* into) {
      return calls.devices(driver, count, into);
    });
    for (Handle device : devices) {
      if (read_device(calls, device, told)) handles.push_back(device);
    }
  }
  if (handles.empty() && !told.remarks.empty()) {
    return Error{ErrorKind::system, told.remarks.front()};
  }
  read_ports(calls, handles, told);
  return told;
}

}  // namespace hpclaunch::probe::vendor
