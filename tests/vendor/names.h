#pragma once
// The functions that each reader looks up, for tests that break them one by one.
#include <string>
#include <vector>

namespace hpclaunch::test {

inline const std::vector<std::string> kNvmlNames = {"nvmlInit_v2",
                                                    "nvmlInit",
                                                    "nvmlDeviceGetCount_v2",
                                                    "nvmlDeviceGetCount",
                                                    "nvmlDeviceGetHandleByIndex_v2",
                                                    "nvmlDeviceGetHandleByIndex",
                                                    "nvmlDeviceGetPciInfo_v3",
                                                    "nvmlDeviceGetPciInfo_v2",
                                                    "nvmlDeviceGetPciInfo",
                                                    "nvmlDeviceGetName",
                                                    "nvmlDeviceGetUUID",
                                                    "nvmlDeviceGetMemoryInfo",
                                                    "nvmlDeviceGetMigMode",
                                                    "nvmlDeviceGetMaxMigDeviceCount",
                                                    "nvmlDeviceGetMigDeviceHandleByIndex",
                                                    "nvmlDeviceGetNvLinkState",
                                                    "nvmlDeviceGetNvLinkRemotePciInfo_v2",
                                                    "nvmlDeviceGetNvLinkRemotePciInfo",
                                                    "nvmlDeviceGetNvLinkRemoteDeviceType"};
inline const std::vector<std::string> kLevelZeroNames = {"zeInit",
                                                         "zeDriverGet",
                                                         "zeDeviceGet",
                                                         "zeDeviceGetSubDevices",
                                                         "zeDeviceGetProperties",
                                                         "zeDeviceGetMemoryProperties",
                                                         "zeDevicePciGetPropertiesExt",
                                                         "zesDeviceEnumFabricPorts",
                                                         "zesFabricPortGetProperties",
                                                         "zesFabricPortGetState"};
inline const std::vector<std::string> kRocmSmiNames = {"rsmi_init",
                                                       "rsmi_num_monitor_devices",
                                                       "rsmi_dev_pci_id_get",
                                                       "rsmi_dev_name_get",
                                                       "rsmi_dev_unique_id_get",
                                                       "rsmi_dev_memory_total_get",
                                                       "rsmi_dev_compute_partition_get",
                                                       "rsmi_topo_get_link_type",
                                                       "rsmi_topo_get_link_weight",
                                                       "rsmi_minmax_bandwidth_get"};

}  // namespace hpclaunch::test
