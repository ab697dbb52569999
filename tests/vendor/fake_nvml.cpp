// A libnvidia-ml.so.1 for tests. FAKE_KIND: "" two GPUs with 4 NVLinks between them and a third without;
// "zero"; "mig" (the first GPU with 7 instances, the second with none); "switch" (8 GPUs behind
// NVSwitches); "npu" (POWER9: GPU pairs, and links to the CPU); "liar"; "rude"; "huge"; "many" (32);
// "lost" (the second GPU is gone).
#include <cstdint>
#include <string>

#include "fake.h"
#include "probe/vendor/nvml_abi.h"

namespace {

using namespace hpclaunch::probe::vendor::nvml;

constexpr Status kFailure = kUnknown;

unsigned count() {
  if (fake::kind("zero")) return 0;
  if (fake::kind("huge")) return 0xFFFFFFFFU;
  if (fake::kind("many")) return 32;
  return fake::kind("switch") ? 8 : 3;
}

// A handle is 1 + the GPU's number, an instance's 1000 * that + 1 + its own.
Device handle_of(std::uintptr_t number) { return reinterpret_cast<Device>(number); }
unsigned number_of(Device device) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(device));
}

// Not in PCI order: NVML promises none.
unsigned bus_of(unsigned gpu) { return (count() > 8 ? 1 : 0x10) * (count() - gpu); }

void put_pci(PciInfo& pci, unsigned gpu, bool modern) {
  if (fake::kind("liar")) {
    pci.domain = gpu;
    pci.bus = gpu == 0 ? 0x30 : 0x7FFFFFFF;
    std::memset(pci.bus_id_legacy, 'A', sizeof pci.bus_id_legacy);
    return;
  }
  pci.domain = 0;
  pci.bus = bus_of(gpu);
  pci.device = 0;
  pci.pci_device_id = 0x20B010DE;
  const std::string text = "00000000:" + std::to_string(pci.bus) + ":00.0";
  fake::put(pci.bus_id_legacy, sizeof pci.bus_id_legacy, text.c_str());
  if (modern) fake::put(pci.bus_id, sizeof pci.bus_id, text.c_str());
}

Status pci_info(const char* call, Device device, PciInfo* pci, bool modern) {
  if (fake::enter(call)) return kFailure;
  put_pci(*pci, number_of(device) - 1, modern);
  return kSuccess;
}

Status handle(const char* call, unsigned index, Device* device) {
  if (fake::enter(call)) return kFailure;
  if (fake::kind("lost") && index == 1) return kGpuIsLost;
  *device = handle_of(index + 1);
  return kSuccess;
}

Status remote_pci(const char* call, Device device, unsigned link, PciInfo* pci) {
  if (fake::enter(call)) return kFailure;
  if (fake::kind("npu") && link < 2) {
    pci->domain = 4;
    pci->pci_device_id = 0x04EA1014;
  } else if (fake::kind("switch")) {
    pci->bus = 0xC0 + link;
    pci->pci_device_id = 0x22A310DE;
  } else {
    put_pci(*pci, number_of(device) == 1 ? 1 : 0, true);
  }
  return kSuccess;
}

Status init(const char* call) {
  if (fake::enter(call)) return kDriverNotLoaded;
  if (fake::kind("rude")) fake::misbehave();
  return kSuccess;
}

Status get_count(const char* call, unsigned* into) {
  if (fake::enter(call)) return kFailure;
  *into = count();
  return kSuccess;
}

}  // namespace

FAKE Status nvmlInit_v2() { return init("nvmlInit_v2"); }
FAKE Status nvmlInit() { return init("nvmlInit"); }
FAKE Status nvmlDeviceGetCount_v2(unsigned* into) {
  return get_count("nvmlDeviceGetCount_v2", into);
}
FAKE Status nvmlDeviceGetCount(unsigned* into) { return get_count("nvmlDeviceGetCount", into); }
FAKE Status nvmlDeviceGetHandleByIndex_v2(unsigned index, Device* device) {
  return handle("nvmlDeviceGetHandleByIndex_v2", index, device);
}
FAKE Status nvmlDeviceGetHandleByIndex(unsigned index, Device* device) {
  return handle("nvmlDeviceGetHandleByIndex", index, device);
}
FAKE Status nvmlDeviceGetPciInfo_v3(Device device, PciInfo* pci) {
  return pci_info("nvmlDeviceGetPciInfo_v3", device, pci, true);
}
FAKE Status nvmlDeviceGetPciInfo_v2(Device device, PciInfo* pci) {
  return pci_info("nvmlDeviceGetPciInfo_v2", device, pci, true);
}
FAKE Status nvmlDeviceGetPciInfo(Device device, PciInfo* pci) {
  return pci_info("nvmlDeviceGetPciInfo", device, pci, false);
}

FAKE Status nvmlDeviceGetName(Device, char* text, unsigned length) {
  if (fake::enter("nvmlDeviceGetName")) return kFailure;
  if (fake::kind("liar")) {
    fake::overfill(text, length);
  } else {
    fake::put(text, length, " NVIDIA Fake\t100 ");
  }
  return kSuccess;
}

FAKE Status nvmlDeviceGetUUID(Device device, char* text, unsigned length) {
  if (fake::enter("nvmlDeviceGetUUID")) return kFailure;
  const unsigned number = number_of(device);
  const std::string uuid = number < 1000 ? "GPU-" + std::to_string(number - 1)
                                         : "MIG-" + std::to_string(number % 1000 - 1);
  fake::put(text, length, uuid.c_str());
  return kSuccess;
}

FAKE Status nvmlDeviceGetMemoryInfo(Device, Memory* memory) {
  if (fake::enter("nvmlDeviceGetMemoryInfo")) return kFailure;
  memory->total = fake::kind("liar") ? ~0ULL : 80ULL << 30;
  return kSuccess;
}

FAKE Status nvmlDeviceGetMigMode(Device device, unsigned* current, unsigned* pending) {
  if (fake::enter("nvmlDeviceGetMigMode")) return kFailure;
  if (number_of(device) == 3) return kNotSupported;
  *current = *pending = fake::kind("mig") || fake::kind("liar") ? kMigEnabled : 0;
  return kSuccess;
}

FAKE Status nvmlDeviceGetMaxMigDeviceCount(Device, unsigned* into) {
  if (fake::enter("nvmlDeviceGetMaxMigDeviceCount")) return kFailure;
  *into = fake::kind("liar") ? 0xFFFFFFFFU : 14;
  return kSuccess;
}

// Instances have every second index: gaps are allowed.
FAKE Status nvmlDeviceGetMigDeviceHandleByIndex(Device device, unsigned index, Device* instance) {
  if (fake::enter("nvmlDeviceGetMigDeviceHandleByIndex")) return kFailure;
  if (fake::kind("mig") && (number_of(device) != 1 || index % 2 == 1)) return kNotFound;
  *instance = handle_of(number_of(device) * 1000ULL + 1 + index / 2);
  return kSuccess;
}

FAKE Status nvmlDeviceGetNvLinkState(Device device, unsigned link, int* active) {
  if (fake::enter("nvmlDeviceGetNvLinkState")) return kFailure;
  if (fake::kind("liar")) {
    *active = 7;
    return kSuccess;
  }
  const bool alone = count() == 3 && number_of(device) == 3;
  if (alone) return kNotSupported;
  const unsigned links = fake::kind("switch") ? 18 - (number_of(device) == 8 ? 1 : 0) : 6;
  if (link >= (fake::kind("switch") ? 18U : 12U)) return kInvalidArgument;
  *active = link < links && !(link == 4 || link == 5) ? kEnabled : 0;
  if (fake::kind("switch")) *active = link < links ? kEnabled : 0;
  return kSuccess;
}

FAKE Status nvmlDeviceGetNvLinkRemotePciInfo_v2(Device device, unsigned link, PciInfo* pci) {
  return remote_pci("nvmlDeviceGetNvLinkRemotePciInfo_v2", device, link, pci);
}
FAKE Status nvmlDeviceGetNvLinkRemotePciInfo(Device device, unsigned link, PciInfo* pci) {
  return remote_pci("nvmlDeviceGetNvLinkRemotePciInfo", device, link, pci);
}

FAKE Status nvmlDeviceGetNvLinkRemoteDeviceType(Device, unsigned link, int* type) {
  if (fake::enter("nvmlDeviceGetNvLinkRemoteDeviceType")) return kFailure;
  *type = fake::kind("switch")            ? kRemoteSwitch
          : fake::kind("npu") && link < 2 ? kRemoteNpu
                                          : kRemoteGpu;
  return kSuccess;
}
