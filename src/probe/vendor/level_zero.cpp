// Intel's Level Zero (libze_loader).
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdlib>
#include <map>
#include <utility>

#include "probe/vendor/level_zero_abi.h"
#include "probe/vendor/reader.h"

namespace hpclaunch::probe::vendor {

namespace {

using namespace level_zero;

constexpr std::uint32_t kVendorId = 0x8086;

constexpr Status kHarmless[] = {kSuccess, kUnsupportedFeature, kUnsupportedVersion};
constexpr StatusText<Status> kTexts[] = {
    {kDeviceLost, "the device is lost"},
    {kRequiresReset, "the device needs a reset"},
    {kNoPermission, "no permission"},
    {kNotAvailable, "in use"},
    {kDependencyUnavailable, "a library that it needs is missing"},
    {kUninitialized, "no usable driver"},
    {kInvalidArgument, "invalid argument"},
};
constexpr Asker<Status> ask{kHarmless, kTexts, true};

struct Calls {
  const Library& of;
  Call<Init> init{of, "zeInit"};
  Call<GetDrivers> drivers{of, "zeDriverGet"};
  Call<GetParts> devices{of, "zeDeviceGet"};
  Call<GetParts> subdevices{of, "zeDeviceGetSubDevices"};
  Call<GetDeviceProperties> properties{of, "zeDeviceGetProperties"};
  Call<GetMemoryProperties> memory{of, "zeDeviceGetMemoryProperties"};
  Call<GetPciProperties> pci{of, "zeDevicePciGetPropertiesExt"};
  Call<GetParts> ports{of, "zesDeviceEnumFabricPorts"};
  Call<GetPortProperties> port{of, "zesFabricPortGetProperties"};
  Call<GetPortState> port_state{of, "zesFabricPortGetState"};
};

/// The bytes last to first, as Intel's xpu-smi prints them.
std::string uuid_text(const std::uint8_t (&id)[kUuidSize]) {
  if (std::ranges::count(id, 0) == kUuidSize) return "";
  std::string text;
  for (int i = kUuidSize; i-- > 0;) {
    text += fmt::format("{:02x}", id[i]);
    if (i == 12 || i == 10 || i == 8 || i == 6) text += '-';
  }
  return text;
}

/// Adds the device if it is a discrete GPU of Intel's with a PCI address.
bool read_device(const Calls& calls, Handle device, VendorReport& report) {
  DeviceProperties properties{};
  properties.stype = kDeviceProperties;
  if (!ask(report, calls.properties, device, &properties)) return false;
  if (properties.type != kGpu || properties.vendor_id != kVendorId) return false;
  if ((properties.flags & kIntegrated) != 0) return false;
  PciProperties pci{};
  pci.stype = kPciProperties;
  if (!ask(report, calls.pci, device, &pci)) return false;
  ReportedDevice one;
  one.pci = pci_text(pci.domain, pci.bus, pci.device, pci.function);
  if (one.pci.empty()) {
    add_fault(report, calls.pci.name, "no PCI address");
    return false;
  }
  one.model = clean(properties.name, sizeof properties.name);
  one.uuid = uuid_text(properties.uuid);
  MemoryProperties blank{};
  blank.stype = kMemoryProperties;
  for (const MemoryProperties& memory : ask.list(report, calls.memory, blank, device))
    one.memory_bytes += memory.total;
  std::uint32_t count = 0;
  if (ask(report, calls.subdevices, device, &count, nullptr) && count <= kMaxInstances)
    one.subdevices = static_cast<int>(count);
  report.devices.push_back(std::move(one));
  return true;
}

/// One end of a cable: which device's, and the fabric id of the other end.
struct Port {
  std::size_t device;
  std::uint32_t remote;
};

void read_ports(const Calls& calls, const std::vector<Handle>& handles, VendorReport& report) {
  if (!calls.ports || !calls.port || !calls.port_state) return;
  std::map<std::uint32_t, std::size_t> owner;
  std::vector<Port> up;
  for (std::size_t i = 0; i < handles.size(); ++i) {
    for (Handle port : ask.list(report, calls.ports, Handle{}, handles[i])) {
      PortProperties properties{};
      properties.stype = kFabricPortProperties;
      PortState state{};
      state.stype = kFabricPortState;
      if (!ask(report, calls.port, port, &properties)) continue;
      owner.emplace(properties.id.fabric, i);
      if (!ask(report, calls.port_state, port, &state)) continue;
      if (state.status == kPortHealthy || state.status == kPortDegraded) {
        up.push_back({i, state.remote.fabric});
      }
    }
  }
  // Both ends of a cable are listed: count those of the lower device.
  std::map<std::pair<std::size_t, std::size_t>, std::array<int, 2>> ends;
  for (const Port& port : up) {
    const auto found = owner.find(port.remote);
    if (found == owner.end() || found->second == port.device) continue;
    const auto pair = std::minmax(port.device, found->second);
    ++ends[pair][port.device < found->second ? 0 : 1];
  }
  for (const auto& [pair, count] : ends) {
    report.links.push_back({pair.first, pair.second, std::max(count[0], count[1])});
  }
}

}  // namespace

Result<VendorReport> read_level_zero(const Library& library) {
  const Calls calls{library};
  if (!calls.init || !calls.drivers || !calls.devices || !calls.properties || !calls.pci)
    return no_device_functions();
  setenv("ZES_ENABLE_SYSMAN", "1", 1);                 // or there are no fabric ports
  setenv("ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE", 1);  // overrides the default: a device is a card
  if (const hpclaunch::Status ok = ask.must(calls.init, 0U); !ok) return ok.error();
  VendorReport report{.vendor = "intel", .link_kind = "xe-link"};
  std::vector<Handle> handles;
  for (Handle driver : ask.list(report, calls.drivers, Handle{}))
    for (Handle device : ask.list(report, calls.devices, Handle{}, driver))
      if (read_device(calls, device, report)) handles.push_back(device);
  read_ports(calls, handles, report);
  return report;
}

}  // namespace hpclaunch::probe::vendor
