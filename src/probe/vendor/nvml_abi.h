#pragma once
// The functions we call of NVML, declared here: building needs no header of NVIDIA's. Source: nvml.h of
// CUDA 11.8 and 12.x; tests/vendor/abi_nvml.cpp compares it with the real one where that is installed.
//
// Versions: nvml.h defines the plain names as the newest (`#define nvmlInit nvmlInit_v2`), the library
// keeps all. The three nvmlPciInfo_t differ behind `pci_device_id` only.

namespace hpclaunch::probe::vendor::nvml {

using Status = int;  ///< nvmlReturn_t
constexpr Status kSuccess = 0;
constexpr Status kUninitialized = 1;
constexpr Status kInvalidArgument = 2;
constexpr Status kNotSupported = 3;
constexpr Status kNoPermission = 4;
constexpr Status kNotFound = 6;
constexpr Status kInsufficientSize = 7;
constexpr Status kDriverNotLoaded = 9;
constexpr Status kTimeout = 10;
constexpr Status kFunctionNotFound = 13;
constexpr Status kGpuIsLost = 15;
constexpr Status kResetRequired = 16;
constexpr Status kOperatingSystem = 17;
constexpr Status kVersionMismatch = 18;
constexpr Status kMemory = 20;
constexpr Status kUnknown = 999;

using Device = void*;  ///< nvmlDevice_t, opaque

struct PciInfo {
  char bus_id_legacy[16];
  unsigned domain;
  unsigned bus;
  unsigned device;
  unsigned pci_device_id;     ///< device id << 16 | vendor id
  unsigned pci_subsystem_id;  ///< the first version has this and four words of nothing
  char bus_id[32];            ///< since version 2
};

struct Memory {
  unsigned long long total;
  unsigned long long free;
  unsigned long long used;
};

constexpr int kRemoteGpu = 0;  ///< nvmlIntNvLinkDeviceType_t
constexpr int kRemoteNpu = 1;
constexpr int kRemoteSwitch = 2;
constexpr int kRemoteUnknown = 255;
constexpr int kEnabled = 1;          ///< nvmlEnableState_t
constexpr unsigned kMigEnabled = 1;  ///< NVML_DEVICE_MIG_ENABLE

using Init = Status();
using GetCount = Status(unsigned* count);
using GetHandleByIndex = Status(unsigned index, Device* device);
using GetPciInfo = Status(Device device, PciInfo* pci);
using GetText = Status(Device device, char* text, unsigned length);
using GetMemoryInfo = Status(Device device, Memory* memory);
using GetMigMode = Status(Device device, unsigned* current, unsigned* pending);
using GetMaxMigDeviceCount = Status(Device device, unsigned* count);
using GetMigDeviceHandle = Status(Device device, unsigned index, Device* instance);
using GetNvLinkState = Status(Device device, unsigned link, int* active);
using GetNvLinkRemotePciInfo = Status(Device device, unsigned link, PciInfo* pci);
using GetNvLinkRemoteType = Status(Device device, unsigned link, int* type);

}  // namespace hpclaunch::probe::vendor::nvml
