// level_zero_abi.h against Intel's headers, where they are installed (libze-dev, level-zero-devel).
#include "vendor/abi.h"

#if __has_include(<level_zero/ze_api.h>) && __has_include(<level_zero/zes_api.h>)
// Warnings of the vendor's header are not ours.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#include <level_zero/ze_api.h>
#include <level_zero/zes_api.h>
#pragma GCC diagnostic pop

#include "probe/vendor/level_zero_abi.h"

namespace abi = hpclaunch::probe::vendor::level_zero;

SAME_CALL(abi::Init, zeInit);
SAME_CALL(abi::GetDrivers, zeDriverGet);
SAME_CALL(abi::GetParts, zeDeviceGet);
SAME_CALL(abi::GetParts, zeDeviceGetSubDevices);
SAME_CALL(abi::GetDeviceProperties, zeDeviceGetProperties);
SAME_CALL(abi::GetMemoryProperties, zeDeviceGetMemoryProperties);
SAME_CALL(abi::GetPciProperties, zeDevicePciGetPropertiesExt);
SAME_CALL(abi::GetParts, zesDeviceEnumFabricPorts);
SAME_CALL(abi::GetPortProperties, zesFabricPortGetProperties);
SAME_CALL(abi::GetPortState, zesFabricPortGetState);

SAME_SIZE(abi::DeviceProperties, ze_device_properties_t);
SAME_FIELD(abi::DeviceProperties, stype, ze_device_properties_t, stype);
SAME_FIELD(abi::DeviceProperties, next, ze_device_properties_t, pNext);
SAME_FIELD(abi::DeviceProperties, type, ze_device_properties_t, type);
SAME_FIELD(abi::DeviceProperties, vendor_id, ze_device_properties_t, vendorId);
SAME_FIELD(abi::DeviceProperties, flags, ze_device_properties_t, flags);
SAME_FIELD(abi::DeviceProperties, max_allocation, ze_device_properties_t, maxMemAllocSize);
SAME_FIELD(abi::DeviceProperties, slices, ze_device_properties_t, numSlices);
SAME_FIELD(abi::DeviceProperties, timer_resolution, ze_device_properties_t, timerResolution);
SAME_FIELD(abi::DeviceProperties, uuid, ze_device_properties_t, uuid);
SAME_FIELD(abi::DeviceProperties, name, ze_device_properties_t, name);
SAME_SIZE(abi::MemoryProperties, ze_device_memory_properties_t);
SAME_FIELD(abi::MemoryProperties, stype, ze_device_memory_properties_t, stype);
SAME_FIELD(abi::MemoryProperties, flags, ze_device_memory_properties_t, flags);
SAME_FIELD(abi::MemoryProperties, total, ze_device_memory_properties_t, totalSize);
SAME_FIELD(abi::MemoryProperties, name, ze_device_memory_properties_t, name);
SAME_SIZE(abi::PciProperties, ze_pci_ext_properties_t);
SAME_FIELD(abi::PciProperties, domain, ze_pci_ext_properties_t, address.domain);
SAME_FIELD(abi::PciProperties, bus, ze_pci_ext_properties_t, address.bus);
SAME_FIELD(abi::PciProperties, device, ze_pci_ext_properties_t, address.device);
SAME_FIELD(abi::PciProperties, function, ze_pci_ext_properties_t, address.function);
SAME_FIELD(abi::PciProperties, max_bandwidth, ze_pci_ext_properties_t, maxSpeed.maxBandwidth);
SAME_SIZE(abi::PortId, zes_fabric_port_id_t);
SAME_FIELD(abi::PortId, fabric, zes_fabric_port_id_t, fabricId);
SAME_FIELD(abi::PortId, attach, zes_fabric_port_id_t, attachId);
SAME_FIELD(abi::PortId, number, zes_fabric_port_id_t, portNumber);
SAME_SIZE(abi::PortSpeed, zes_fabric_port_speed_t);
SAME_SIZE(abi::PortProperties, zes_fabric_port_properties_t);
SAME_FIELD(abi::PortProperties, model, zes_fabric_port_properties_t, model);
SAME_FIELD(abi::PortProperties, on_subdevice, zes_fabric_port_properties_t, onSubdevice);
SAME_FIELD(abi::PortProperties, id, zes_fabric_port_properties_t, portId);
SAME_SIZE(abi::PortState, zes_fabric_port_state_t);
SAME_FIELD(abi::PortState, status, zes_fabric_port_state_t, status);
SAME_FIELD(abi::PortState, remote, zes_fabric_port_state_t, remotePortId);

SAME_VALUE(abi::kSuccess, ZE_RESULT_SUCCESS);
SAME_VALUE(abi::kDeviceLost, ZE_RESULT_ERROR_DEVICE_LOST);
SAME_VALUE(abi::kRequiresReset, ZE_RESULT_ERROR_DEVICE_REQUIRES_RESET);
SAME_VALUE(abi::kNoPermission, ZE_RESULT_ERROR_INSUFFICIENT_PERMISSIONS);
SAME_VALUE(abi::kNotAvailable, ZE_RESULT_ERROR_NOT_AVAILABLE);
SAME_VALUE(abi::kDependencyUnavailable, ZE_RESULT_ERROR_DEPENDENCY_UNAVAILABLE);
SAME_VALUE(abi::kUninitialized, ZE_RESULT_ERROR_UNINITIALIZED);
SAME_VALUE(abi::kUnsupportedVersion, ZE_RESULT_ERROR_UNSUPPORTED_VERSION);
SAME_VALUE(abi::kUnsupportedFeature, ZE_RESULT_ERROR_UNSUPPORTED_FEATURE);
SAME_VALUE(abi::kInvalidArgument, ZE_RESULT_ERROR_INVALID_ARGUMENT);
SAME_VALUE(abi::kUnknown, ZE_RESULT_ERROR_UNKNOWN);
SAME_VALUE(abi::kDeviceProperties, ZE_STRUCTURE_TYPE_DEVICE_PROPERTIES);
SAME_VALUE(abi::kMemoryProperties, ZE_STRUCTURE_TYPE_DEVICE_MEMORY_PROPERTIES);
SAME_VALUE(abi::kPciProperties, ZE_STRUCTURE_TYPE_PCI_EXT_PROPERTIES);
SAME_VALUE(abi::kFabricPortProperties, ZES_STRUCTURE_TYPE_FABRIC_PORT_PROPERTIES);
SAME_VALUE(abi::kFabricPortState, ZES_STRUCTURE_TYPE_FABRIC_PORT_STATE);
SAME_VALUE(abi::kGpu, ZE_DEVICE_TYPE_GPU);
SAME_VALUE(abi::kIntegrated, ZE_DEVICE_PROPERTY_FLAG_INTEGRATED);
SAME_VALUE(abi::kPortHealthy, ZES_FABRIC_PORT_STATUS_HEALTHY);
SAME_VALUE(abi::kPortDegraded, ZES_FABRIC_PORT_STATUS_DEGRADED);
SAME_VALUE(abi::kUuidSize, ZE_MAX_DEVICE_UUID_SIZE);

HEADER_COMPARED
#else
HEADER_MISSING("level_zero/ze_api.h")
#endif
