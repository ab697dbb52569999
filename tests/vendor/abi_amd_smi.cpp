// amd_smi_abi.h against AMD's amdsmi.h, where it is installed (amd-smi-lib of ROCm 6.4 or newer).
#include "vendor/abi.h"

#if __has_include(<amd_smi/amdsmi.h>)
#define HERE
// Warnings of the vendor's header are not ours.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#include <amd_smi/amdsmi.h>
#pragma GCC diagnostic pop
#endif

// Older ones lack the enumeration. Theirs say 24 as the year, and count versions otherwise.
#if defined(HERE) && AMDSMI_LIB_VERSION_MAJOR >= 25
#include "probe/vendor/amd_smi_abi.h"

namespace abi = hpclaunch::probe::vendor::amd_smi;

SAME_CALL(abi::Init, amdsmi_init);
SAME_CALL(abi::GetSockets, amdsmi_get_socket_handles);
SAME_CALL(abi::GetProcessors, amdsmi_get_processor_handles);
SAME_CALL(abi::GetMemory, amdsmi_get_gpu_memory_total);
SAME_CALL(abi::GetPartition, amdsmi_get_gpu_compute_partition);
SAME_CALL(abi::GetLinkType, amdsmi_topo_get_link_type);
SAME_CALL(abi::GetLinkWeight, amdsmi_topo_get_link_weight);
SAME_CALL(abi::GetBandwidth, amdsmi_get_minmax_bandwidth_between_processors);

// The structures of these are theirs in part only.
static_assert(sizeof(amdsmi_bdf_t) == sizeof(std::uint64_t));
static_assert(offsetof(amdsmi_asic_info_t, market_name) == 0);
static_assert(sizeof(amdsmi_asic_info_t) <= sizeof(abi::AsicInfo));
static_assert(offsetof(amdsmi_enumeration_info_t, hip_uuid) ==
              offsetof(abi::EnumerationInfo, hip_uuid));
static_assert(sizeof(amdsmi_enumeration_info_t) <= sizeof(abi::EnumerationInfo));

SAME_VALUE(abi::kSuccess, AMDSMI_STATUS_SUCCESS);
SAME_VALUE(abi::kInvalidArgs, AMDSMI_STATUS_INVAL);
SAME_VALUE(abi::kNotSupported, AMDSMI_STATUS_NOT_SUPPORTED);
SAME_VALUE(abi::kNotImplemented, AMDSMI_STATUS_NOT_YET_IMPLEMENTED);
SAME_VALUE(abi::kDrmError, AMDSMI_STATUS_DRM_ERROR);
SAME_VALUE(abi::kPermission, AMDSMI_STATUS_NO_PERM);
SAME_VALUE(abi::kInitError, AMDSMI_STATUS_INIT_ERROR);
SAME_VALUE(abi::kNotFound, AMDSMI_STATUS_NOT_FOUND);
SAME_VALUE(abi::kNoDriver, AMDSMI_STATUS_DRIVER_NOT_LOADED);
SAME_VALUE(abi::kNoData, AMDSMI_STATUS_NO_DATA);
SAME_VALUE(abi::kUnknown, AMDSMI_STATUS_UNKNOWN_ERROR);
SAME_VALUE(abi::kInitGpus, AMDSMI_INIT_AMD_GPUS);
SAME_VALUE(abi::kVram, AMDSMI_MEM_TYPE_VRAM);
#if AMDSMI_LIB_VERSION_MAJOR >= 26
SAME_VALUE(abi::kXgmi, AMDSMI_LINK_TYPE_XGMI);
#else
SAME_VALUE(abi::kXgmi, AMDSMI_IOLINK_TYPE_XGMI);
#endif

HEADER_COMPARED
#else
HEADER_MISSING("amd_smi/amdsmi.h")
#endif
