// A libze_loader.so.1 for tests. FAKE_KIND: "" three cards of two tiles, linked by Xe Link, one fabric
// port broken, beside an integrated GPU and an NPU; "zero"; "huge"; "liar"; "rude"; "bare" (no fabric,
// no tiles); "flat" checks that the environment asks for COMPOSITE, and else shows tiles as devices.
#include <cstdint>

#include "fake.h"
#include "probe/vendor/level_zero_abi.h"

namespace {

using namespace hpclaunch::probe::vendor::level_zero;

constexpr unsigned kCards = 3;
constexpr unsigned kPortsEach = 4;

Handle handle_of(std::uintptr_t number) { return reinterpret_cast<Handle>(number); }
unsigned number_of(Handle handle) {
  return static_cast<unsigned>(reinterpret_cast<std::uintptr_t>(handle));
}

/// The protocol of every list: count zero asks how many.
Status list(std::uint32_t* count, Handle* into, std::uint32_t have, unsigned first) {
  if (into == nullptr || *count == 0) {
    *count = have;
    return kSuccess;
  }
  for (std::uint32_t i = 0; i < *count && i < have; ++i) into[i] = handle_of(first + i);
  *count = have;
  return kSuccess;
}

}  // namespace

FAKE Status zeInit(std::uint32_t) {
  if (fake::enter("zeInit")) return kUninitialized;
  if (fake::kind("rude")) fake::misbehave();
  if (fake::kind("flat") && !fake::is("ZE_FLAT_DEVICE_HIERARCHY", "COMPOSITE")) return kUnknown;
  return kSuccess;
}

FAKE Status zeDriverGet(std::uint32_t* count, Handle* drivers) {
  if (fake::enter("zeDriverGet")) return kUnknown;
  return list(count, drivers, fake::kind("huge") ? 0xFFFFFFFFU : 2, 1);
}

// Driver 1 has the cards 10, 11, 12 and the integrated GPU 13, driver 2 the NPU 20.
FAKE Status zeDeviceGet(Handle driver, std::uint32_t* count, Handle* devices) {
  if (fake::enter("zeDeviceGet")) return kUnknown;
  if (fake::kind("zero")) return list(count, devices, 0, 0);
  if (number_of(driver) == 2) return list(count, devices, 1, 20);
  return list(count, devices, kCards + 1, 10);
}

FAKE Status zeDeviceGetSubDevices(Handle, std::uint32_t* count, Handle* parts) {
  if (fake::enter("zeDeviceGetSubDevices")) return kUnknown;
  if (fake::kind("liar")) {
    *count = 0xFFFFFFFFU;
    return kSuccess;
  }
  return list(count, parts, fake::kind("bare") ? 0 : 2, 100);
}

FAKE Status zeDeviceGetProperties(Handle device, DeviceProperties* properties) {
  if (fake::enter("zeDeviceGetProperties")) return kDeviceLost;
  if (properties->stype != kDeviceProperties || properties->next != nullptr)
    return kInvalidArgument;
  const unsigned number = number_of(device);
  properties->type = number == 20 ? 5 : kGpu;
  properties->vendor_id = 0x8086;
  properties->flags = number == 13 ? kIntegrated : 0;
  for (unsigned i = 0; i < kUuidSize; ++i) {
    properties->uuid[i] = static_cast<std::uint8_t>(fake::kind("bare") ? 0 : i + 16 * (number - 9));
  }
  if (fake::kind("liar")) {
    fake::overfill(properties->name, sizeof properties->name);
  } else {
    fake::put(properties->name, sizeof properties->name, "Intel Fake Max");
  }
  return kSuccess;
}

FAKE Status zeDeviceGetMemoryProperties(Handle, std::uint32_t* count, MemoryProperties* memories) {
  if (fake::enter("zeDeviceGetMemoryProperties")) return kUnknown;
  if (memories == nullptr) {
    *count = fake::kind("liar") ? 0xFFFFFFFFU : 2;
    return kSuccess;
  }
  for (std::uint32_t i = 0; i < *count; ++i) {
    if (memories[i].stype != kMemoryProperties) return kInvalidArgument;
    memories[i].total = 64ULL << 30;
  }
  return kSuccess;
}

FAKE Status zeDevicePciGetPropertiesExt(Handle device, PciProperties* pci) {
  if (fake::enter("zeDevicePciGetPropertiesExt")) return kUnknown;
  if (pci->stype != kPciProperties) return kInvalidArgument;
  if (fake::kind("liar") && number_of(device) == 12) pci->domain = pci->bus = 0xFFFFFFFFU;
  pci->bus |= 0x10 * (number_of(device) - 9);
  return kSuccess;
}

FAKE Status zesDeviceEnumFabricPorts(Handle device, std::uint32_t* count, Handle* ports) {
  if (fake::enter("zesDeviceEnumFabricPorts")) return kUnknown;
  if (fake::kind("bare")) return kUnsupportedFeature;
  if (!fake::is("ZES_ENABLE_SYSMAN", "1")) return kUninitialized;
  return list(count, ports, kPortsEach, number_of(device) * 100);
}

// Port P of card C is 100 C + P. Ports 0 and 1 lead to the next card, 2 and 3 to the one before.
FAKE Status zesFabricPortGetProperties(Handle port, PortProperties* properties) {
  if (fake::enter("zesFabricPortGetProperties")) return kUnknown;
  properties->id.fabric = 7000 + number_of(port) / 100;
  properties->id.number = static_cast<std::uint8_t>(number_of(port) % 100);
  return kSuccess;
}

FAKE Status zesFabricPortGetState(Handle port, PortState* state) {
  if (fake::enter("zesFabricPortGetState")) return kUnknown;
  const unsigned card = number_of(port) / 100 - 10;
  const unsigned number = number_of(port) % 100;
  // The second cable between cards 0 and 1 is broken, seen from either end.
  const bool broken = (card == 0 && number == 1) || (card == 1 && number == 3);
  state->status = broken ? 3 : number == 0 ? kPortHealthy : kPortDegraded;
  const unsigned other = number < 2 ? (card + 1) % kCards : (card + kCards - 1) % kCards;
  state->remote.fabric = fake::kind("liar") ? 7000 + 10 + card : 7000 + 10 + other;
  return kSuccess;
}
