// AMD's ROCm SMI (librocm_smi64).
#include <fmt/format.h>

#include <algorithm>

#include "probe/sysfs.h"
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

/// False: it has no address.
bool read_device(const Calls& calls, std::uint32_t device, VendorReport& report) {
  std::uint64_t bdf = 0;
  if (!ask(report, calls.bdf, device, &bdf)) return false;
  ReportedDevice one;
  char text[256] = {};
  if (ask(report, calls.partition, device, text, std::uint32_t{sizeof text - 1}))
    one.partition = clean(text, sizeof text);
  constexpr std::string_view kModes[] = {"SPX", "DPX", "TPX", "QPX", "CPX"};
  if (std::ranges::count(kModes, one.partition) == 0) one.partition = "";
  // The function may be the number of a partition; the card is function 0.
  const bool part = !one.partition.empty() && one.partition != "SPX";
  one.pci = pci_text(bdf >> 32, bdf >> 8 & 0xFF, bdf >> 3 & 0x1F, part ? 0 : bdf & 7);
  if (one.pci.empty()) {
    add_fault(report, calls.bdf.name, "no PCI address");
    return false;
  }
  char name[256] = {};
  if (ask(report, calls.name, device, name, sizeof name - 1)) one.model = clean(name, sizeof name);
  if (one.model.starts_with("0x") || one.model == "N/A") one.model = "";  // of unknown models
  std::uint64_t number = 0;
  if (ask(report, calls.unique_id, device, &number) && number != 0)
    one.uuid = fmt::format("GPU-{:016x}", number);
  ask(report, calls.memory, device, kVram, &one.memory_bytes);
  report.devices.push_back(std::move(one));
  return true;
}

/// The XGMI links of a pair. The bandwidth is asked of neighbours only: it is refused for others.
int lanes_between(const Calls& calls, std::uint32_t from, std::uint32_t to, VendorReport& report) {
  XgmiPath path;
  unsigned type = 0;
  if (!ask(report, calls.link_type, from, to, &path.hops, &type) || type != kXgmi) return 0;
  ask(report, calls.link_weight, from, to, &path.weight);
  if (xgmi_lanes(path) > 0)
    ask(report, calls.bandwidth, from, to, &path.min_bandwidth, &path.max_bandwidth);
  return xgmi_lanes(path);
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
  for (std::size_t from = 0; from < numbers.size(); ++from)
    for (std::size_t to = from + 1; to < numbers.size(); ++to)
      if (const int lanes = lanes_between(calls, numbers[from], numbers[to], report); lanes > 0)
        report.links.push_back({from, to, lanes});
  return report;
}

}  // namespace hpclaunch::probe::vendor
