// AMD SMI (libamd_smi).
#include "probe/sysfs.h"
#include "probe/vendor/amd.h"
#include "probe/vendor/amd_smi_abi.h"
#include "probe/vendor/reader.h"

namespace hpclaunch::probe::vendor {

namespace {

using namespace amd_smi;

constexpr Status kHarmless[] = {kSuccess, kNotSupported, kNotImplemented, kNotFound, kNoData};
constexpr StatusText<Status> kTexts[] = {
    {kInvalidArgs, "invalid argument"},
    {kDrmError, "libdrm failed"},
    {kPermission, "no permission"},
    {kInitError, "the driver is not loaded, or its files are missing"},
    {kNoDriver, "the driver is not loaded, or its files are missing"},
};
constexpr Asker<Status> ask{kHarmless, kTexts};

struct Calls {
  const Library& of;
  Call<Init> init{of, "amdsmi_init"};
  Call<GetSockets> sockets{of, "amdsmi_get_socket_handles"};
  Call<GetProcessors> processors{of, "amdsmi_get_processor_handles"};
  Call<GetBdf> bdf{of, "amdsmi_get_gpu_device_bdf"};
  Call<GetAsicInfo> asic{of, "amdsmi_get_gpu_asic_info"};
  Call<GetEnumerationInfo> enumeration{of, "amdsmi_get_gpu_enumeration_info"};
  Call<GetMemory> memory{of, "amdsmi_get_gpu_memory_total"};
  Call<GetPartition> partition{of, "amdsmi_get_gpu_compute_partition"};
  Call<GetLinkType> link_type{of, "amdsmi_topo_get_link_type"};
  Call<GetLinkWeight> link_weight{of, "amdsmi_topo_get_link_weight"};
  Call<GetBandwidth> bandwidth{of, "amdsmi_get_minmax_bandwidth_between_processors"};
};

bool read_device(const Calls& calls, Handle processor, VendorReport& report) {
  return read_amd_device(ask, calls, processor, 16, report, [&](ReportedDevice& one) {
    AsicInfo asic{};
    if (ask(report, calls.asic, processor, &asic))
      one.model = amd_model_name(clean(asic.market_name, sizeof asic.market_name));
    EnumerationInfo enumeration{};
    if (!ask(report, calls.enumeration, processor, &enumeration)) return;
    const std::string uuid = clean(enumeration.hip_uuid, sizeof enumeration.hip_uuid);
    // Some releases omit leading zeros, or print a number where there is no UUID.
    if (uuid.starts_with("GPU-")) one.uuid = amd_uuid(uuid);
  });
}

}  // namespace

Result<VendorReport> read_amd_smi(const Library& library) {
  const Calls calls{library};
  if (!calls.init || !calls.sockets || !calls.processors || !calls.bdf)
    return no_device_functions();
  if (const hpclaunch::Status ok = ask.must(calls.init, kInitGpus); !ok) return ok.error();
  VendorReport report{.vendor = "amd", .link_kind = "xgmi"};
  std::vector<Handle> handles;
  for (Handle socket : ask.list(report, calls.sockets, Handle{}))
    for (Handle processor : ask.list(report, calls.processors, Handle{}, socket))
      if (read_device(calls, processor, report)) handles.push_back(processor);
  read_xgmi_links(ask, calls, handles, report);
  return report;
}

}  // namespace hpclaunch::probe::vendor
