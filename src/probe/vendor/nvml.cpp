#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "probe/vendor/nvml_abi.h"
#include "probe/vendor/readers.h"

namespace hpclaunch::probe::vendor {

namespace {

using namespace nvml;

constexpr unsigned kVendorId = 0x10DE;     ///< PCI vendor NVIDIA
constexpr unsigned kMostLinksAsked = 128;  ///< a library that never says "no such link" is lying
constexpr std::size_t kTextSize = 128;     ///< NVML_DEVICE_UUID_V2_BUFFER_SIZE is 96

std::string words(Status status) {
  const char* said = nullptr;
  switch (status) {
    case kUninitialized:
      said = "not initialized";
      break;
    case kInvalidArgument:
      said = "invalid argument";
      break;
    case kNotSupported:
      said = "not supported";
      break;
    case kNoPermission:
      said = "no permission";
      break;
    case kDriverNotLoaded:
      said = "the driver is not loaded";
      break;
    case kTimeout:
      said = "timeout";
      break;
    case kGpuIsLost:
      said = "the GPU has fallen off the bus";
      break;
    case kResetRequired:
      said = "the GPU needs a reset";
      break;
    case kOperatingSystem:
      said = "blocked by the operating system or a cgroup";
      break;
    case kVersionMismatch:
      said = "the library and the loaded driver differ in version";
      break;
    default:
      said = "failed";
      break;
  }
  return fmt::format("{} ({})", said, status);
}

/// What a device does not have is no fault.
bool is_fault(Status status) {
  return status != kSuccess && status != kNotSupported && status != kFunctionNotFound;
}

struct Calls {
  Init* init;
  GetCount* count;
  GetHandleByIndex* handle;
  GetPciInfo* pci;
  GetText* name;
  GetText* uuid;
  GetMemoryInfo* memory;
  GetMigMode* mig_mode;
  GetMaxMigDeviceCount* mig_count;
  GetMigDeviceHandle* mig_handle;
  GetNvLinkState* link_state;
  GetNvLinkRemotePciInfo* link_pci;
  GetNvLinkRemoteType* link_type;

  explicit Calls(const Library& of)
      : init(of.find<Init>("nvmlInit_v2", "nvmlInit")),
        count(of.find<GetCount>("nvmlDeviceGetCount_v2", "nvmlDeviceGetCount")),
        handle(of.find<GetHandleByIndex>("nvmlDeviceGetHandleByIndex_v2",
                                         "nvmlDeviceGetHandleByIndex")),
        pci(of.find<GetPciInfo>("nvmlDeviceGetPciInfo_v3", "nvmlDeviceGetPciInfo_v2",
                                "nvmlDeviceGetPciInfo")),
        name(of.find<GetText>("nvmlDeviceGetName")),
        uuid(of.find<GetText>("nvmlDeviceGetUUID")),
        memory(of.find<GetMemoryInfo>("nvmlDeviceGetMemoryInfo")),
        mig_mode(of.find<GetMigMode>("nvmlDeviceGetMigMode")),
        mig_count(of.find<GetMaxMigDeviceCount>("nvmlDeviceGetMaxMigDeviceCount")),
        mig_handle(of.find<GetMigDeviceHandle>("nvmlDeviceGetMigDeviceHandleByIndex")),
        link_state(of.find<GetNvLinkState>("nvmlDeviceGetNvLinkState")),
        link_pci(of.find<GetNvLinkRemotePciInfo>("nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                                 "nvmlDeviceGetNvLinkRemotePciInfo")),
        link_type(of.find<GetNvLinkRemoteType>("nvmlDeviceGetNvLinkRemoteDeviceType")) {}
};

constexpr Asker<kSuccess, is_fault, words> ask;

std::string ask_text(Told& told, const char* name, GetText* function, Device device) {
  char text[kTextSize] = {};
  return ask(told, name, function, device, text, static_cast<unsigned>(kTextSize - 1))
             ? clean(text, kTextSize)
             : "";
}

std::string pci_of(const PciInfo& pci) { return pci_text(pci.domain, pci.bus, pci.device, 0); }

// Instances that exist have any index below the most that can: a gap is "not found".
void read_mig(const Calls& calls, Device device, ToldDevice& into, Told& told) {
  unsigned current = 0;
  unsigned pending = 0;
  if (!ask(told, "nvmlDeviceGetMigMode", calls.mig_mode, device, &current, &pending)) return;
  if (current != kMigEnabled) return;
  into.partition = "MIG";
  unsigned most = 0;
  if (calls.mig_handle == nullptr ||
      !ask(told, "nvmlDeviceGetMaxMigDeviceCount", calls.mig_count, device, &most)) {
    return remark(told, into.pci, "it is in MIG mode, and its instances cannot be asked for");
  }
  for (unsigned i = 0; i < std::min(most, kMostInstances); ++i) {
    Device instance = nullptr;
    const Status status = calls.mig_handle(device, i, &instance);
    if (status == kNotFound || status == kInvalidArgument) continue;
    if (status != kSuccess) {
      remark(told, "nvmlDeviceGetMigDeviceHandleByIndex", words(status));
      continue;
    }
    std::string uuid = ask_text(told, "nvmlDeviceGetUUID", calls.uuid, instance);
    if (!uuid.empty()) into.instances.push_back(std::move(uuid));
  }
  if (into.instances.empty()) {
    remark(told, into.pci, "it is in MIG mode and has no instance for us: no program can use it");
  }
}

/// Where the links of one device lead.
struct Ends {
  std::map<std::string, int> direct;  ///< PCI address of the other end -> links
  int through_switch = 0;
};

// The type of the other end is told since driver 470; before that NVIDIA's own PCI vendor id, on a
// device that is no GPU of ours, tells a switch from POWER9's link to the CPU.
void read_link(const Calls& calls, Device device, unsigned link, Told& told, Ends& ends) {
  int type = kRemoteUnknown;
  const bool typed =
      ask(told, "nvmlDeviceGetNvLinkRemoteDeviceType", calls.link_type, device, link, &type);
  if (typed && type == kRemoteSwitch) {
    ++ends.through_switch;
    return;
  }
  if (typed && type == kRemoteNpu) return;
  PciInfo remote{};
  if (!ask(told, "nvmlDeviceGetNvLinkRemotePciInfo", calls.link_pci, device, link, &remote)) return;
  const std::string pci = pci_of(remote);
  const bool ours = std::any_of(told.devices.begin(), told.devices.end(),
                                [&](const ToldDevice& one) { return one.pci == pci; });
  if (ours) {
    ++ends.direct[pci];
  } else if (!typed && (remote.pci_device_id & 0xFFFF) == kVendorId) {
    ++ends.through_switch;
  }
}

Ends read_ends(const Calls& calls, Device device, Told& told) {
  Ends ends;
  if (calls.link_state == nullptr) return ends;
  for (unsigned link = 0; link < kMostLinksAsked; ++link) {
    int active = 0;
    const Status status = calls.link_state(device, link, &active);
    if (status == kInvalidArgument || status == kNotSupported) break;
    if (status != kSuccess) {
      remark(told, "nvmlDeviceGetNvLinkState", words(status));
      break;
    }
    if (active == kEnabled) read_link(calls, device, link, told, ends);
  }
  return ends;
}

// Behind switches every pair is connected, with as many links as the one that has fewer of them.
void join(const std::vector<Ends>& ends, Told& told) {
  const auto lanes_to = [&](std::size_t from, std::size_t to) {
    const auto found = ends[from].direct.find(told.devices[to].pci);
    return found == ends[from].direct.end() ? 0 : found->second;
  };
  for (std::size_t from = 0; from < ends.size(); ++from) {
    for (std::size_t to = from + 1; to < ends.size(); ++to) {
      const int direct = std::max(lanes_to(from, to), lanes_to(to, from));
      const int lanes = direct + std::min(ends[from].through_switch, ends[to].through_switch);
      if (lanes > 0) told.links.push_back({from, to, lanes});
    }
  }
}

/// The devices that we may use, with their handles; PCI address filled in.
Result<std::vector<Device>> list_devices(const Calls& calls, Told& told) {
  unsigned count = 0;
  if (const Status status = calls.count(&count); status != kSuccess) {
    return Error{ErrorKind::system, fmt::format("nvmlDeviceGetCount: {}", words(status))};
  }
  if (count > kMostDevices) {
    return Error{ErrorKind::system, fmt::format("it counts {} devices", count)};
  }
  std::vector<Device> handles;
  for (unsigned i = 0; i < count; ++i) {
    Device device = nullptr;
    PciInfo pci{};
    if (!ask(told, "nvmlDeviceGetHandleByIndex", calls.handle, i, &device)) continue;
    if (!ask(told, "nvmlDeviceGetPciInfo", calls.pci, device, &pci)) continue;
    ToldDevice one;
    one.pci = pci_of(pci);
    if (one.pci.empty()) {
      remark(told, "nvmlDeviceGetPciInfo", "no PCI address");
      continue;
    }
    handles.push_back(device);
    told.devices.push_back(std::move(one));
  }
  told.complete = handles.size() == count;
  if (count > 0 && handles.empty()) {
    return Error{ErrorKind::system,
                 told.remarks.empty() ? "it names no device" : told.remarks.front()};
  }
  return handles;
}

}  // namespace

Result<Told> read_nvml(const Library& library) {
  const Calls calls(library);
  if (calls.init == nullptr || calls.count == nullptr || calls.handle == nullptr ||
      calls.pci == nullptr) {
    return Error{ErrorKind::system, "it lacks the functions that list devices"};
  }
  if (const Status status = calls.init(); status != kSuccess) {
    return Error{ErrorKind::system, fmt::format("nvmlInit: {}", words(status))};
  }
  Told told;
  told.vendor = "nvidia";
  told.link_kind = "nvlink";
  const Result<std::vector<Device>> handles = list_devices(calls, told);
  if (!handles) return handles.error();
  std::vector<Ends> ends;
  for (std::size_t i = 0; i < handles->size(); ++i) {
    const Device device = (*handles)[i];
    ToldDevice& one = told.devices[i];
    one.model = ask_text(told, "nvmlDeviceGetName", calls.name, device);
    one.uuid = ask_text(told, "nvmlDeviceGetUUID", calls.uuid, device);
    Memory memory{};
    if (ask(told, "nvmlDeviceGetMemoryInfo", calls.memory, device, &memory)) {
      one.memory_bytes = memory.total;
    }
    read_mig(calls, device, one, told);
    ends.push_back(read_ends(calls, device, told));
  }
  join(ends, told);
  return told;
}

}  // namespace hpclaunch::probe::vendor
