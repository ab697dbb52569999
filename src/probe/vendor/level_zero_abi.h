#pragma once
#include <cstdint>
// The functions we call of Level Zero (ze, core; zes, Sysman), declared here: building needs no header of Intel's. Source: ze_api.h and zes_api.h, specification 1.4 to 1.9, which the loader keeps compatible;
// tests/vendor/abi_level_zero.cpp compares it with the real ones where installed.

namespace hpclaunch::probe::vendor::level_zero {

using Status = int;  ///< ze_result_t
constexpr Status kSuccess = 0;
constexpr Status kDeviceLost = 0x70000001;
constexpr Status kRequiresReset = 0x70000006;
constexpr Status kNoPermission = 0x70010000;
constexpr Status kNotAvailable = 0x70010001;
constexpr Status kDependencyUnavailable = 0x70020000;
constexpr Status kUninitialized = 0x78000001;
constexpr Status kUnsupportedVersion = 0x78000002;
constexpr Status kUnsupportedFeature = 0x78000003;
constexpr Status kInvalidArgument = 0x78000004;
constexpr Status kUnknown = 0x7FFFFFFE;

using Handle = void*;  ///< of drivers, devices and ports; a ze device handle is a zes device handle

constexpr std::uint32_t kDeviceProperties = 0x3;      ///< ze_structure_type_t
constexpr std::uint32_t kMemoryProperties = 0x7;      ///< ze_structure_type_t
constexpr std::uint32_t kPciProperties = 0x10008;     ///< ze_structure_type_t
constexpr std::uint32_t kFabricPortProperties = 0x6;  ///< zes_structure_type_t
constexpr std::uint32_t kFabricPortState = 0x19;      ///< zes_structure_type_t
constexpr std::uint32_t kGpu = 1;                     ///< ze_device_type_t
constexpr std::uint32_t kIntegrated = 1;              ///< ze_device_property_flag_t
constexpr std::uint32_t kPortHealthy = 1;             ///< zes_fabric_port_status_t
constexpr std::uint32_t kPortDegraded = 2;            ///< zes_fabric_port_status_t
constexpr int kUuidSize = 16;

struct DeviceProperties {
  std::uint32_t stype;
  void* next;
  std::uint32_t type;
  std::uint32_t vendor_id;
  std::uint32_t device_id;
  std::uint32_t flags;
  std::uint32_t subdevice_id;
  std::uint32_t core_clock_rate;
  std::uint64_t max_allocation;
  std::uint32_t max_hardware_contexts;
  std::uint32_t max_queue_priority;
  std::uint32_t threads_per_eu;
  std::uint32_t eu_simd_width;
  std::uint32_t eus_per_subslice;
  std::uint32_t subslices_per_slice;
  std::uint32_t slices;
  std::uint64_t timer_resolution;
  std::uint32_t timestamp_bits;
  std::uint32_t kernel_timestamp_bits;
  std::uint8_t uuid[kUuidSize];
  char name[256];
};

struct MemoryProperties {
  std::uint32_t stype;
  void* next;
  std::uint32_t flags;
  std::uint32_t max_clock_rate;
  std::uint32_t max_bus_width;
  std::uint64_t total;
  char name[256];
};

struct PciProperties {
  std::uint32_t stype;
  void* next;
  std::uint32_t domain;
  std::uint32_t bus;
  std::uint32_t device;
  std::uint32_t function;
  std::int32_t generation;
  std::int32_t width;
  std::int64_t max_bandwidth;
};

struct PortId {
  std::uint32_t fabric;  ///< the end-point: one for each card
  std::uint32_t attach;  ///< the part of it
  std::uint8_t number;
};

struct PortSpeed {
  std::int64_t bit_rate;
  std::int32_t width;
};

struct PortProperties {
  std::uint32_t stype;
  void* next;
  char model[256];
  std::uint8_t on_subdevice;
  std::uint32_t subdevice_id;
  PortId id;
  PortSpeed max_receive;
  PortSpeed max_send;
};

struct PortState {
  std::uint32_t stype;
  const void* next;
  std::uint32_t status;
  std::uint32_t quality_issues;
  std::uint32_t failure_reasons;
  PortId remote;
  PortSpeed receive;
  PortSpeed send;
};

using Init = Status(std::uint32_t flags);
using GetDrivers = Status(std::uint32_t* count, Handle* drivers);
using GetParts = Status(Handle whole, std::uint32_t* count, Handle* parts);
using GetDeviceProperties = Status(Handle device, DeviceProperties* properties);
using GetMemoryProperties = Status(Handle device, std::uint32_t* count, MemoryProperties* memories);
using GetPciProperties = Status(Handle device, PciProperties* properties);
using GetPortProperties = Status(Handle port, PortProperties* properties);
using GetPortState = Status(Handle port, PortState* state);

}  // namespace hpclaunch::probe::vendor::level_zero
