// rocm_smi_abi.h against AMD's rocm_smi.h, where it is installed (librocm-smi-dev, rocm-smi-lib).
#include "vendor/abi.h"

#if __has_include(<rocm_smi/rocm_smi.h>)
// Warnings of the vendor's header are not ours.
#pragma GCC diagnostic push
#pragma GCC diagnostic ignored "-Wpedantic"
#pragma GCC diagnostic ignored "-Wconversion"
#include <rocm_smi/rocm_smi.h>
#pragma GCC diagnostic pop

#include "probe/vendor/rocm_smi_abi.h"

namespace abi = hpclaunch::probe::vendor::rocm_smi;

SAME_CALL(abi::Init, rsmi_init);
SAME_CALL(abi::GetCount, rsmi_num_monitor_devices);
SAME_CALL(abi::GetNumber, rsmi_dev_pci_id_get);
SAME_CALL(abi::GetName, rsmi_dev_name_get);
SAME_CALL(abi::GetNumber, rsmi_dev_unique_id_get);
SAME_CALL(abi::GetMemory, rsmi_dev_memory_total_get);
SAME_CALL(abi::GetLinkType, rsmi_topo_get_link_type);
SAME_CALL(abi::GetLinkWeight, rsmi_topo_get_link_weight);
SAME_CALL(abi::GetBandwidth, rsmi_minmax_bandwidth_get);

SAME_VALUE(abi::kSuccess, RSMI_STATUS_SUCCESS);
SAME_VALUE(abi::kInvalidArgs, RSMI_STATUS_INVALID_ARGS);
SAME_VALUE(abi::kNotSupported, RSMI_STATUS_NOT_SUPPORTED);
SAME_VALUE(abi::kFileError, RSMI_STATUS_FILE_ERROR);
SAME_VALUE(abi::kPermission, RSMI_STATUS_PERMISSION);
SAME_VALUE(abi::kInitError, RSMI_STATUS_INIT_ERROR);
SAME_VALUE(abi::kNotImplemented, RSMI_STATUS_NOT_YET_IMPLEMENTED);
SAME_VALUE(abi::kNotFound, RSMI_STATUS_NOT_FOUND);
SAME_VALUE(abi::kNoData, RSMI_STATUS_NO_DATA);
SAME_VALUE(abi::kBusy, RSMI_STATUS_BUSY);
SAME_VALUE(abi::kUnknown, RSMI_STATUS_UNKNOWN_ERROR);
SAME_VALUE(abi::kVram, RSMI_MEM_TYPE_VRAM);
SAME_VALUE(abi::kXgmi, RSMI_IOLINK_TYPE_XGMI);

HEADER_COMPARED
#else
HEADER_MISSING("rocm_smi/rocm_smi.h")
#endif
