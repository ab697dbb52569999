// ROCm SMI (librocm_smi64), the predecessor of AMD SMI.
#include <fmt/format.h>

#include "probe/vendor/amd.h"
#include "probe/vendor/reader.h"
#include "probe/vendor/rocm_smi_abi.h"

namespace hpclaunch::probe::vendor {

namespace {

using namespace rocm_smi;

constexpr Status kHarmless[] = {kSuccess, kNotSupported, kNotImplemented, kNotFound, kNoData};
constexpr StatusText<Status> kTexts[] = {
    {kInvalidArgs, "invalid argument"},
    {kFileError, "a file cannot be read"},
    {kPermission, "no permission"},
    {kInitError, "the driver is not loaded, or its files are missing"},
    {kBusy, "busy"},
};
constexpr Asker<Status> ask{kHarmless, kTexts};

struct Calls {
  const Library& of;
  Call<Init> init{of, "rsmi_init"};
  Call<GetCount> count{of, "rsmi_num_monitor_devices"};
  Call<GetNumber> bdf{of, "rsmi_dev_pci_id_get"};
  Call<GetName> name{of, "rsmi_dev_name_get"};
  Call<GetNumber> unique_id{of, "rsmi_dev_unique_id_get"};
  Call<GetMemory> memory{of, "rsmi_dev_memory_total_get"};
  Call<GetPartition> partition{of, "rsmi_dev_compute_partition_get"};
  Call<GetLinkType> link_type{of, "rsmi_topo_get_link_type"};
  Call<GetLinkWeight> link_weight{of, "rsmi_topo_get_link_weight"};
  Call<GetBandwidth> bandwidth{of, "rsmi_minmax_bandwidth_get"};
};

bool read_device(const Calls& calls, std::uint32_t device, VendorReport& report) {
  return read_amd_device(ask, calls, device, 32, report, [&](ReportedDevice& one) {
    char name[256] = {};
    if (ask(report, calls.name, device, name, sizeof name - 1))
      one.model = amd_model_name(clean(name, sizeof name));
    std::uint64_t number = 0;
    if (ask(report, calls.unique_id, device, &number) && number != 0)
      one.uuid = fmt::format("GPU-{:016x}", number);
  });
}

}  // namespace

Result<VendorReport> read_rocm_smi(const Library& library) {
  const Calls calls{library};
  if (!calls.init || !calls.count || !calls.bdf) return no_device_functions();
  if (const hpclaunch::Status ok = ask.must(calls.init, std::uint64_t{0}); !ok) return ok.error();
  const Result<std::uint32_t> count = ask.count(calls.count);
  if (!count) return count.error();
  VendorReport report{.vendor = "amd", .link_kind = "xgmi"};
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t device = 0; device < *count; ++device)
    if (read_device(calls, device, report)) numbers.push_back(device);
  read_xgmi_links(ask, calls, numbers, report);
  return report;
}

}  // namespace hpclaunch::probe::vendor
