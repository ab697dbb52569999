// nvml_abi.h against NVIDIA's nvml.h, where it is installed (libnvidia-ml-dev, cuda-nvml-dev).
#include "vendor/abi.h"

#if __has_include(<nvml.h>)
#define NVML_NO_UNVERSIONED_FUNC_DEFS
#include <nvml.h>

#include "probe/vendor/nvml_abi.h"

namespace abi = hpclaunch::probe::vendor::nvml;

SAME_CALL(abi::Init, nvmlInit_v2);
SAME_CALL(abi::GetCount, nvmlDeviceGetCount_v2);
SAME_CALL(abi::GetHandleByIndex, nvmlDeviceGetHandleByIndex_v2);
SAME_CALL(abi::GetPciInfo, nvmlDeviceGetPciInfo_v3);
SAME_CALL(abi::GetText, nvmlDeviceGetName);
SAME_CALL(abi::GetText, nvmlDeviceGetUUID);
SAME_CALL(abi::GetMemoryInfo, nvmlDeviceGetMemoryInfo);
SAME_CALL(abi::GetMigMode, nvmlDeviceGetMigMode);
SAME_CALL(abi::GetMaxMigDeviceCount, nvmlDeviceGetMaxMigDeviceCount);
SAME_CALL(abi::GetMigDeviceHandle, nvmlDeviceGetMigDeviceHandleByIndex);
SAME_CALL(abi::GetNvLinkState, nvmlDeviceGetNvLinkState);
SAME_CALL(abi::GetNvLinkRemotePciInfo, nvmlDeviceGetNvLinkRemotePciInfo_v2);
SAME_CALL(abi::GetNvLinkRemoteType, nvmlDeviceGetNvLinkRemoteDeviceType);

SAME_SIZE(abi::PciInfo, nvmlPciInfo_t);
SAME_FIELD(abi::PciInfo, bus_id_legacy, nvmlPciInfo_t, busIdLegacy);
SAME_FIELD(abi::PciInfo, domain, nvmlPciInfo_t, domain);
SAME_FIELD(abi::PciInfo, bus, nvmlPciInfo_t, bus);
SAME_FIELD(abi::PciInfo, device, nvmlPciInfo_t, device);
SAME_FIELD(abi::PciInfo, pci_device_id, nvmlPciInfo_t, pciDeviceId);
SAME_FIELD(abi::PciInfo, pci_subsystem_id, nvmlPciInfo_t, pciSubSystemId);
SAME_FIELD(abi::PciInfo, bus_id, nvmlPciInfo_t, busId);
SAME_SIZE(abi::Memory, nvmlMemory_t);
SAME_FIELD(abi::Memory, total, nvmlMemory_t, total);
SAME_FIELD(abi::Memory, used, nvmlMemory_t, used);

SAME_VALUE(abi::kSuccess, NVML_SUCCESS);
SAME_VALUE(abi::kUninitialized, NVML_ERROR_UNINITIALIZED);
SAME_VALUE(abi::kInvalidArgument, NVML_ERROR_INVALID_ARGUMENT);
SAME_VALUE(abi::kNotSupported, NVML_ERROR_NOT_SUPPORTED);
SAME_VALUE(abi::kNoPermission, NVML_ERROR_NO_PERMISSION);
SAME_VALUE(abi::kNotFound, NVML_ERROR_NOT_FOUND);
SAME_VALUE(abi::kInsufficientSize, NVML_ERROR_INSUFFICIENT_SIZE);
SAME_VALUE(abi::kDriverNotLoaded, NVML_ERROR_DRIVER_NOT_LOADED);
SAME_VALUE(abi::kTimeout, NVML_ERROR_TIMEOUT);
SAME_VALUE(abi::kFunctionNotFound, NVML_ERROR_FUNCTION_NOT_FOUND);
SAME_VALUE(abi::kGpuIsLost, NVML_ERROR_GPU_IS_LOST);
SAME_VALUE(abi::kResetRequired, NVML_ERROR_RESET_REQUIRED);
SAME_VALUE(abi::kOperatingSystem, NVML_ERROR_OPERATING_SYSTEM);
SAME_VALUE(abi::kVersionMismatch, NVML_ERROR_LIB_RM_VERSION_MISMATCH);
SAME_VALUE(abi::kMemory, NVML_ERROR_MEMORY);
SAME_VALUE(abi::kUnknown, NVML_ERROR_UNKNOWN);
SAME_VALUE(abi::kRemoteGpu, NVML_NVLINK_DEVICE_TYPE_GPU);
SAME_VALUE(abi::kRemoteNpu, NVML_NVLINK_DEVICE_TYPE_IBMNPU);
SAME_VALUE(abi::kRemoteSwitch, NVML_NVLINK_DEVICE_TYPE_SWITCH);
SAME_VALUE(abi::kRemoteUnknown, NVML_NVLINK_DEVICE_TYPE_UNKNOWN);
SAME_VALUE(abi::kEnabled, NVML_FEATURE_ENABLED);
SAME_VALUE(abi::kMigEnabled, NVML_DEVICE_MIG_ENABLE);

HEADER_COMPARED
#else
HEADER_MISSING("nvml.h")
#endif
