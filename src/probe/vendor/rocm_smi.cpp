#include <fmt/format.h>

#include "probe/vendor/amd.h"
#include "probe/vendor/readers.h"
#include "probe/vendor/rocm_smi_abi.h"

namespace hpclaunch::probe::vendor {

namespace {

using namespace rocm_smi;

constexpr std::size_t kTextSize = 256;

std::string words(Status status) {
  const char* said = nullptr;
  switch (status) {
    case kInvalidArgs:
      said = "invalid argument";
      break;
    case kFileError:
      said = "a file cannot be read";
      break;
    case kPermission:
      said = "no permission";
      break;
    case kInitError:
      said = "the driver is not loaded, or its files are not here";
      break;
    case kBusy:
      said = "busy";
      break;
    default:
      said = "failed";
      break;
  }
  return fmt::format("{} ({})", said, status);
}

bool is_fault(Status status) {
  return status != kSuccess && status != kNotSupported && status != kNotImplemented &&
         status != kNotFound && status != kNoData;
}

struct Calls {
  Init* init;
  GetCount* count;
  GetNumber* pci;
  GetName* name;
  GetNumber* unique_id;
  GetMemory* memory;
  GetPartition* partition;
  GetLinkType* link_type;
  GetLinkWeight* link_weight;
  GetBandwidth* bandwidth;

  explicit Calls(const Library& of)
      : init(of.find<Init>("rsmi_init")),
        count(of.find<GetCount>("rsmi_num_monitor_devices")),
        pci(of.find<GetNumber>("rsmi_dev_pci_id_get")),
        name(of.find<GetName>("rsmi_dev_name_get")),
        unique_id(of.find<GetNumber>("rsmi_dev_unique_id_get")),
        memory(of.find<GetMemory>("rsmi_dev_memory_total_get")),
        partition(of.find<GetPartition>("rsmi_dev_compute_partition_get")),
        link_type(of.find<GetLinkType>("rsmi_topo_get_link_type")),
        link_weight(of.find<GetLinkWeight>("rsmi_topo_get_link_weight")),
        bandwidth(of.find<GetBandwidth>("rsmi_minmax_bandwidth_get")) {}
};

constexpr Asker<kSuccess, is_fault, words> ask;

bool read_device(const Calls& calls, std::uint32_t device, Told& told) {
  std::uint64_t bdf = 0;
  if (!ask(told, "rsmi_dev_pci_id_get", calls.pci, device, &bdf)) return false;
  ToldDevice one;
  one.pci = pci_text(bdf >> 32, bdf >> 8 & 0xFF, bdf >> 3 & 0x1F, bdf & 7);
  char text[kTextSize] = {};
  if (ask(told, "rsmi_dev_compute_partition_get", calls.partition, device, text,
          static_cast<std::uint32_t>(kTextSize - 1))) {
    one.partition = partition_name(clean(text, kTextSize));
  }
  // The function may be a partition's number; the card is function 0.
  if (!one.partition.empty() && one.partition != "SPX") {
    one.pci = pci_text(bdf >> 32, bdf >> 8 & 0xFF, bdf >> 3 & 0x1F, 0);
  }
  char name[kTextSize] = {};
  if (ask(told, "rsmi_dev_name_get", calls.name, device, name, kTextSize - 1)) {
    one.model = model_name(clean(name, kTextSize));
  }
  std::uint64_t number = 0;
  if (ask(told, "rsmi_dev_unique_id_get", calls.unique_id, device, &number) && number != 0) {
    one.uuid = fmt::format("GPU-{:016x}", number);
  }
  ask(told, "rsmi_dev_memory_total_get", calls.memory, device, kVram, &one.memory_bytes);
  told.devices.push_back(std::move(one));
  return true;
}

// The bandwidth is only asked of neighbours: it is refused for the rest.
int read_lanes(const Calls& calls, std::uint32_t from, std::uint32_t to, Told& told) {
  XgmiPath path;
  unsigned type = 0;
  if (!ask(told, "rsmi_topo_get_link_type", calls.link_type, from, to, &path.hops, &type)) return 0;
  if (type != kXgmi) return 0;
  ask(told, "rsmi_topo_get_link_weight", calls.link_weight, from, to, &path.weight);
  if (xgmi_lanes(path) == 0) return 0;
  ask(told, "rsmi_minmax_bandwidth_get", calls.bandwidth, from, to, &path.least_bandwidth,
      &path.most_bandwidth);
  return xgmi_lanes(path);
}

}  // namespace

Result<Told> read_rocm_smi(const Library& library) {
  const Calls calls(library);
  if (calls.init == nullptr || calls.count == nullptr || calls.pci == nullptr) {
    return Error{ErrorKind::system, "it lacks the functions that list devices"};
  }
  if (const Status status = calls.init(0); status != kSuccess) {
    return Error{ErrorKind::system, fmt::format("rsmi_init: {}", words(status))};
  }
  std::uint32_t count = 0;
  if (const Status status = calls.count(&count); status != kSuccess) {
    return Error{ErrorKind::system, fmt::format("rsmi_num_monitor_devices: {}", words(status))};
  }
  if (count > kMostDevices) {
    return Error{ErrorKind::system, fmt::format("it counts {} devices", count)};
  }
  Told told;
  told.vendor = "amd";
  told.link_kind = "xgmi";
  std::vector<std::uint32_t> numbers;
  for (std::uint32_t device = 0; device < count; ++device) {
    if (read_device(calls, device, told)) numbers.push_back(device);
  }
  if (numbers.empty() && !told.remarks.empty()) {
    return Error{ErrorKind::system, told.remarks.front()};
  }
  for (std::size_t from = 0; from < numbers.size(); ++from) {
    for (std::size_t to = from + 1; to < numbers.size(); ++to) {
      const int lanes = read_lanes(calls, numbers[from], numbers[to], told);
      if (lanes > 0) told.links.push_back({from, to, lanes});
    }
  }
  return told;
}

}  // namespace hpclaunch::probe::vendor
