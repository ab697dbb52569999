// NVIDIA's NVML (libnvidia-ml).

#include <algorithm>
#include <map>
#include <utility>

#include "probe/vendor/nvml_abi.h"
#include "probe/vendor/reader.h"

namespace hpclaunch::probe::vendor {

namespace {

using namespace nvml;

constexpr unsigned kVendorId = 0x10DE;  ///< PCI vendor NVIDIA
constexpr unsigned kMaxLinks = 128;     ///< for a library that never returns "no such link"
constexpr std::size_t kTextSize = 128;  ///< NVML_DEVICE_UUID_V2_BUFFER_SIZE is 96

constexpr Status kHarmless[] = {kSuccess, kNotSupported, kFunctionNotFound};
constexpr StatusText<Status> kTexts[] = {
    {kUninitialized, "not initialized"},
    {kInvalidArgument, "invalid argument"},
    {kNotSupported, "not supported"},
    {kNoPermission, "no permission"},
    {kDriverNotLoaded, "the driver is not loaded"},
    {kTimeout, "timeout"},
    {kGpuIsLost, "the GPU has fallen off the bus"},
    {kResetRequired, "the GPU needs a reset"},
    {kOperatingSystem, "blocked by the operating system or a cgroup"},
    {kVersionMismatch, "the library and the loaded driver differ in version"},
};
constexpr Asker<Status> ask{kHarmless, kTexts};

struct Calls {
  const Library& of;
  Call<Init> init{of, "nvmlInit_v2", "nvmlInit"};
  Call<GetCount> count{of, "nvmlDeviceGetCount_v2", "nvmlDeviceGetCount"};
  Call<GetHandleByIndex> handle{of, "nvmlDeviceGetHandleByIndex_v2", "nvmlDeviceGetHandleByIndex"};
  Call<GetPciInfo> pci{of, "nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2",
                       "nvmlDeviceGetPciInfo"};
  Call<GetText> name{of, "nvmlDeviceGetName"};
  Call<GetText> uuid{of, "nvmlDeviceGetUUID"};
  Call<GetMemoryInfo> memory{of, "nvmlDeviceGetMemoryInfo"};
  Call<GetMigMode> mig_mode{of, "nvmlDeviceGetMigMode"};
  Call<GetMaxMigDeviceCount> mig_count{of, "nvmlDeviceGetMaxMigDeviceCount"};
  Call<GetMigDeviceHandle> mig_handle{of, "nvmlDeviceGetMigDeviceHandleByIndex"};
  Call<GetNvLinkState> link_state{of, "nvmlDeviceGetNvLinkState"};
  Call<GetNvLinkRemotePciInfo> link_pci{of, "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                        "nvmlDeviceGetNvLinkRemotePciInfo"};
  Call<GetNvLinkRemoteType> link_type{of, "nvmlDeviceGetNvLinkRemoteDeviceType"};
};

std::string ask_text(VendorReport& report, const Call<GetText>& call, Device device) {
  char text[kTextSize] = {};
  const auto room = static_cast<unsigned>(kTextSize - 1);
  return ask(report, call, device, text, room) ? clean(text, kTextSize) : "";
}

std::string pci_of(const PciInfo& pci) { return pci_text(pci.domain, pci.bus, pci.device, 0); }

// Instances that exist have any index below the most that can: a gap is "not found".
void read_mig(const Calls& calls, Device device, ReportedDevice& into, VendorReport& report) {
  unsigned current = 0;
  unsigned pending = 0;
  if (!ask(report, calls.mig_mode, device, &current, &pending)) return;
  if (current != kMigEnabled) return;
  into.partition = "MIG";
  unsigned most = 0;
  if (!calls.mig_handle || !ask(report, calls.mig_count, device, &most)) {
    return add_fault(report, into.pci, "MIG mode is on, but its instances cannot be listed");
  }
  for (unsigned i = 0; i < std::min(most, kMaxInstances); ++i) {
    Device instance = nullptr;
    const Status status = calls.mig_handle.function(device, i, &instance);
    if (status == kNotFound || status == kInvalidArgument) continue;
    if (status != kSuccess) {
      add_fault(report, calls.mig_handle.name, ask.text(status));
      continue;
    }
    std::string uuid = ask_text(report, calls.uuid, instance);
    if (!uuid.empty()) into.instances.push_back(std::move(uuid));
  }
  if (into.instances.empty()) {
    add_fault(report, into.pci,
              "MIG mode is on, without an instance for this job: no program can use it");
  }
}

/// Where the links of one device lead.
struct Ends {
  std::map<std::string, int> direct;  ///< PCI address of the other end -> links
  int through_switch = 0;
};

// Drivers since 470 report the type of the other end. Before, NVIDIA's PCI vendor id on a device that is
// no listed GPU distinguishes a switch from POWER9's link to the CPU.
void read_link(const Calls& calls, Device device, unsigned link, VendorReport& report, Ends& ends) {
  int type = kRemoteUnknown;
  const bool typed = ask(report, calls.link_type, device, link, &type);
  if (typed && type == kRemoteSwitch) {
    ++ends.through_switch;
    return;
  }
  if (typed && type == kRemoteNpu) return;
  PciInfo remote{};
  if (!ask(report, calls.link_pci, device, link, &remote)) return;
  const std::string pci = pci_of(remote);
  if (std::ranges::count(report.devices, pci, &ReportedDevice::pci) > 0) {
    ++ends.direct[pci];
  } else if (!typed && (remote.pci_device_id & 0xFFFF) == kVendorId) {
    ++ends.through_switch;
  }
}

Ends read_ends(const Calls& calls, Device device, VendorReport& report) {
  Ends ends;
  if (!calls.link_state) return ends;
  for (unsigned link = 0; link < kMaxLinks; ++link) {
    int active = 0;
    const Status status = calls.link_state.function(device, link, &active);
    if (status == kInvalidArgument || status == kNotSupported) break;
    if (status != kSuccess) {
      add_fault(report, calls.link_state.name, ask.text(status));
      break;
    }
    if (active == kEnabled) read_link(calls, device, link, report, ends);
  }
  return ends;
}

// Behind switches every pair is connected, with as many links as the one that has fewer of them.
void join(const std::vector<Ends>& ends, VendorReport& report) {
  const auto lanes_to = [&](std::size_t from, std::size_t to) {
    const auto found = ends[from].direct.find(report.devices[to].pci);
    return found == ends[from].direct.end() ? 0 : found->second;
  };
  for (std::size_t from = 0; from < ends.size(); ++from) {
    for (std::size_t to = from + 1; to < ends.size(); ++to) {
      const int direct = std::max(lanes_to(from, to), lanes_to(to, from));
      const int lanes = direct + std::min(ends[from].through_switch, ends[to].through_switch);
      if (lanes > 0) report.links.push_back({from, to, lanes});
    }
  }
}

/// The devices that this process may use, with their handles; only the PCI address is filled in.
Result<std::vector<Device>> list_devices(const Calls& calls, VendorReport& report) {
  const Result<std::uint32_t> count = ask.count(calls.count);
  if (!count) return count.error();
  std::vector<Device> handles;
  for (unsigned i = 0; i < *count; ++i) {
    Device device = nullptr;
    PciInfo pci{};
    if (!ask(report, calls.handle, i, &device)) continue;
    if (!ask(report, calls.pci, device, &pci)) continue;
    ReportedDevice one;
    one.pci = pci_of(pci);
    if (one.pci.empty()) {
      add_fault(report, calls.pci.name, "no PCI address");
      continue;
    }
    handles.push_back(device);
    report.devices.push_back(std::move(one));
  }
  report.complete = handles.size() == *count;
  if (*count > 0 && handles.empty()) {
    return Error{ErrorKind::system,
                 report.faults.empty() ? "it lists no device" : report.faults.front()};
  }
  return handles;
}

}  // namespace

Result<VendorReport> read_nvml(const Library& library) {
  const Calls calls{library};
  if (!calls.init || !calls.count || !calls.handle || !calls.pci) return no_device_functions();
  if (const hpclaunch::Status ok = ask.must(calls.init); !ok) return ok.error();
  VendorReport report{.vendor = "nvidia", .link_kind = "nvlink"};
  const Result<std::vector<Device>> handles = list_devices(calls, report);
  if (!handles) return handles.error();
  std::vector<Ends> ends;
  for (std::size_t i = 0; i < handles->size(); ++i) {
    const Device device = (*handles)[i];
    ReportedDevice& one = report.devices[i];
    one.model = ask_text(report, calls.name, device);
    one.uuid = ask_text(report, calls.uuid, device);
    Memory memory{};
    if (ask(report, calls.memory, device, &memory)) {
      one.memory_bytes = memory.total;
    }
    read_mig(calls, device, one, report);
    ends.push_back(read_ends(calls, device, report));
  }
  join(ends, report);
  return report;
}

}  // namespace hpclaunch::probe::vendor
