// AMD SMI (libamd_smi).
#include <fmt/format.h>

#include "probe/vendor/amd.h"
#include "probe/vendor/amd_smi_abi.h"
#include "probe/vendor/reader.h"

namespace hpclaunch::probe::vendor {

namespace {

using namespace amd_smi;

constexpr std::size_t kTextSize = 256;

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
  std::uint64_t bdf = 0;
  if (!ask(report, calls.bdf, processor, &bdf)) return false;
  ReportedDevice one;
  char text[kTextSize] = {};
  if (ask(report, calls.partition, processor, text, static_cast<std::uint32_t>(kTextSize - 1))) {
    one.partition = partition_name(clean(text, kTextSize));
  }
  one.pci = amd_pci(bdf >> 16, bdf, one.partition);
  if (one.pci.empty()) {
    add_fault(report, calls.bdf.name, "no PCI address");
    return false;
  }
  AsicInfo asic{};
  if (ask(report, calls.asic, processor, &asic)) {
    one.model = amd_model_name(clean(asic.market_name, sizeof asic.market_name));
  }
  EnumerationInfo enumeration{};
  if (ask(report, calls.enumeration, processor, &enumeration)) {
    const std::string uuid = clean(enumeration.hip_uuid, sizeof enumeration.hip_uuid);
    // Some releases omit leading zeros, or print a number where there is no UUID.
    if (uuid.compare(0, 4, "GPU-") == 0) one.uuid = amd_uuid(uuid);
  }
  ask(report, calls.memory, processor, kVram, &one.memory_bytes);
  report.devices.push_back(std::move(one));
  return true;
}

}  // namespace

Result<VendorReport> read_amd_smi(const Library& library) {
  const Calls calls{library};
  if (!calls.init || !calls.sockets || !calls.processors || !calls.bdf)
    return no_device_functions();
  if (const hpclaunch::Status ok = ask.must(calls.init, kInitGpus); !ok) return ok.error();
  VendorReport report;
  report.vendor = "amd";
  report.link_kind = "xgmi";
  std::vector<Handle> handles;
  for (Handle socket : ask.list(report, calls.sockets, Handle{}))
    for (Handle processor : ask.list(report, calls.processors, Handle{}, socket))
      if (read_device(calls, processor, report)) handles.push_back(processor);
  read_xgmi_links(ask, calls, handles, kXgmi, report);
  return report;
}

}  // namespace hpclaunch::probe::vendor
