#include <fmt/format.h>

#include "probe/attach.h"
#include "probe/vendor/amd.h"
#include "probe/vendor/amd_smi_abi.h"
#include "probe/vendor/readers.h"

namespace hpclaunch::probe::vendor {

namespace {

using namespace amd_smi;

constexpr std::size_t kTextSize = 256;

std::string words(Status status) {
  const char* said = nullptr;
  switch (status) {
    case kInvalidArgs:
      said = "invalid argument";
      break;
    case kDrmError:
      said = "libdrm failed";
      break;
    case kPermission:
      said = "no permission";
      break;
    case kInitError:
    case kNoDriver:
      said = "the driver is not loaded, or its files are not here";
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
  GetSockets* sockets;
  GetProcessors* processors;
  GetBdf* bdf;
  GetAsicInfo* asic;
  GetEnumerationInfo* enumeration;
  GetMemory* memory;
  GetPartition* partition;
  GetLinkType* link_type;
  GetLinkWeight* link_weight;
  GetBandwidth* bandwidth;

  explicit Calls(const Library& of)
      : init(of.find<Init>("amdsmi_init")),
        sockets(of.find<GetSockets>("amdsmi_get_socket_handles")),
        processors(of.find<GetProcessors>("amdsmi_get_processor_handles")),
        bdf(of.find<GetBdf>("amdsmi_get_gpu_device_bdf")),
        asic(of.find<GetAsicInfo>("amdsmi_get_gpu_asic_info")),
        enumeration(of.find<GetEnumerationInfo>("amdsmi_get_gpu_enumeration_info")),
        memory(of.find<GetMemory>("amdsmi_get_gpu_memory_total")),
        partition(of.find<GetPartition>("amdsmi_get_gpu_compute_partition")),
        link_type(of.find<GetLinkType>("amdsmi_topo_get_link_type")),
        link_weight(of.find<GetLinkWeight>("amdsmi_topo_get_link_weight")),
        bandwidth(of.find<GetBandwidth>("amdsmi_get_minmax_bandwidth_between_processors")) {}
};

constexpr Asker<kSuccess, is_fault, words> ask;

bool read_device(const Calls& calls, Handle processor, Told& told) {
  std::uint64_t bdf = 0;
  if (!ask(told, "amdsmi_get_gpu_device_bdf", calls.bdf, processor, &bdf)) return false;
  ToldDevice one;
  char text[kTextSize] = {};
  if (ask(told, "amdsmi_get_gpu_compute_partition", calls.partition, processor, text,
          static_cast<std::uint32_t>(kTextSize - 1))) {
    one.partition = partition_name(clean(text, kTextSize));
  }
  // The function may be a partition's number; the card is function 0.
  const bool parts = !one.partition.empty() && one.partition != "SPX";
  one.pci = pci_text(bdf >> 16, bdf >> 8 & 0xFF, bdf >> 3 & 0x1F, parts ? 0 : bdf & 7);
  if (one.pci.empty()) {
    remark(told, "amdsmi_get_gpu_device_bdf", "no PCI address");
    return false;
  }
  AsicInfo asic{};
  if (ask(told, "amdsmi_get_gpu_asic_info", calls.asic, processor, &asic)) {
    one.model = model_name(clean(asic.market_name, sizeof asic.market_name));
  }
  EnumerationInfo enumeration{};
  if (ask(told, "amdsmi_get_gpu_enumeration_info", calls.enumeration, processor, &enumeration)) {
    const std::string uuid = clean(enumeration.hip_uuid, sizeof enumeration.hip_uuid);
    // Some releases leave leading zeros out, or print a number where there is none.
    if (uuid.compare(0, 4, "GPU-") == 0) one.uuid = amd_uuid(uuid);
  }
  ask(told, "amdsmi_get_gpu_memory_total", calls.memory, processor, kVram, &one.memory_bytes);
  told.devices.push_back(std::move(one));
  return true;
}

int read_lanes(const Calls& calls, Handle from, Handle to, Told& told) {
  XgmiPath path;
  unsigned type = 0;
  if (!ask(told, "amdsmi_topo_get_link_type", calls.link_type, from, to, &path.hops, &type)) {
    return 0;
  }
  if (type != kXgmi) return 0;
  ask(told, "amdsmi_topo_get_link_weight", calls.link_weight, from, to, &path.weight);
  if (xgmi_lanes(path) == 0) return 0;
  ask(told, "amdsmi_get_minmax_bandwidth_between_processors", calls.bandwidth, from, to,
      &path.least_bandwidth, &path.most_bandwidth);
  return xgmi_lanes(path);
}

}  // namespace

Result<Told> read_amd_smi(const Library& library) {
  const Calls calls(library);
  if (calls.init == nullptr || calls.sockets == nullptr || calls.processors == nullptr ||
      calls.bdf == nullptr) {
    return Error{ErrorKind::system, "it lacks the functions that list devices"};
  }
  if (const Status status = calls.init(kInitGpus); status != kSuccess) {
    return Error{ErrorKind::system, fmt::format("amdsmi_init: {}", words(status))};
  }
  Told told;
  told.vendor = "amd";
  told.link_kind = "xgmi";
  std::vector<Handle> handles;
  for (Handle socket : ask.list<Handle>(told, "amdsmi_get_socket_handles", calls.sockets)) {
    const auto processors = ask.list<Handle>(
        told, "amdsmi_get_processor_handles",
        [&](auto* count, auto* into) { return calls.processors(socket, count, into); });
    for (Handle processor : processors) {
      if (read_device(calls, processor, told)) handles.push_back(processor);
    }
  }
  if (handles.empty() && !told.remarks.empty()) {
    return Error{ErrorKind::system, told.remarks.front()};
  }
  for (std::size_t from = 0; from < handles.size(); ++from) {
    for (std::size_t to = from + 1; to < handles.size(); ++to) {
      const int lanes = read_lanes(calls, handles[from], handles[to], told);
      if (lanes > 0) told.links.push_back({from, to, lanes});
    }
  }
  return told;
}

}  // namespace hpclaunch::probe::vendor
