// A libamd_smi.so for tests. FAKE_KIND: "" two sockets with two devices each, links as in fake_rocm_smi;
// "cpx" one socket of three partitions; "zero"; "huge"; "liar"; "rude".
#include <cstdint>

#include "fake.h"
#include "probe/vendor/amd_smi_abi.h"

namespace {

using namespace hpclaunch::probe::vendor::amd_smi;

Handle handle_of(std::uintptr_t number) { return reinterpret_cast<Handle>(number); }
std::uint64_t number_of(Handle handle) { return reinterpret_cast<std::uintptr_t>(handle); }

Status list(std::uint32_t* count, Handle* into, std::uint32_t have, std::uintptr_t first) {
  if (into != nullptr) {
    for (std::uint32_t i = 0; i < *count && i < have; ++i) into[i] = handle_of(first + i);
  }
  *count = have;
  return kSuccess;
}

std::uint64_t links(Handle from, Handle to) {
  const std::uint64_t a = number_of(from) - 10;
  const std::uint64_t b = number_of(to) - 10;
  if (a / 2 == b / 2) return 4;
  return a + b == 2 ? 1 : 0;
}

}  // namespace

FAKE Status amdsmi_init(std::uint64_t flags) {
  if (fake::enter("amdsmi_init") || flags != kInitGpus) return kInitError;
  if (fake::kind("rude")) fake::misbehave();
  return kSuccess;
}

FAKE Status amdsmi_get_socket_handles(std::uint32_t* count, Handle* sockets) {
  if (fake::enter("amdsmi_get_socket_handles")) return kUnknown;
  if (fake::kind("zero")) return list(count, sockets, 0, 0);
  if (fake::kind("huge")) return list(count, nullptr, 0xFFFFFFFF, 0);
  return list(count, sockets, fake::kind("cpx") ? 1 : 2, 1);
}

// Socket 1 has the processors 10 and 11, socket 2 has 12 and 13.
FAKE Status amdsmi_get_processor_handles(Handle socket, std::uint32_t* count, Handle* processors) {
  if (fake::enter("amdsmi_get_processor_handles")) return kUnknown;
  return list(count, processors, fake::kind("cpx") ? 3 : 2, 8 + 2 * number_of(socket));
}

FAKE Status amdsmi_get_gpu_device_bdf(Handle processor, std::uint64_t* bdf) {
  if (fake::enter("amdsmi_get_gpu_device_bdf")) return kUnknown;
  const std::uint64_t number = number_of(processor) - 10;
  *bdf = fake::kind("cpx") ? 1ULL << 16 | 0x10 << 8 | number : 1ULL << 16 | (number + 1) << 12;
  if (fake::kind("liar") && number == 0) *bdf = ~0ULL;
  return kSuccess;
}

FAKE Status amdsmi_get_gpu_asic_info(Handle, AsicInfo* info) {
  if (fake::enter("amdsmi_get_gpu_asic_info")) return kUnknown;
  if (fake::kind("liar")) {
    fake::overfill(reinterpret_cast<char*>(info), sizeof *info);
  } else {
    fake::put(info->market_name, 64, "AMD Fake MI");
  }
  return kSuccess;
}

FAKE Status amdsmi_get_gpu_enumeration_info(Handle processor, EnumerationInfo* info) {
  if (fake::enter("amdsmi_get_gpu_enumeration_info")) return kUnknown;
  std::snprintf(info->hip_uuid, 64, "GPU-%016llx", 0xABC0ULL + number_of(processor) - 10);
  if (fake::kind("liar")) fake::overfill(reinterpret_cast<char*>(info), sizeof *info);
  return kSuccess;
}

FAKE Status amdsmi_get_gpu_memory_total(Handle, unsigned type, std::uint64_t* bytes) {
  if (fake::enter("amdsmi_get_gpu_memory_total") || type != kVram) return kUnknown;
  *bytes = 64ULL << 30;
  return kSuccess;
}

FAKE Status amdsmi_get_gpu_compute_partition(Handle, char* name, std::uint32_t length) {
  if (fake::enter("amdsmi_get_gpu_compute_partition")) return kUnknown;
  fake::put(name, length, fake::kind("cpx") ? "CPX" : fake::kind("liar") ? "N/A" : "SPX");
  return kSuccess;
}

FAKE Status amdsmi_topo_get_link_type(Handle, Handle, std::uint64_t* hops, unsigned* type) {
  if (fake::enter("amdsmi_topo_get_link_type")) return kUnknown;
  *hops = 1;
  *type = kXgmi;
  return kSuccess;
}

FAKE Status amdsmi_topo_get_link_weight(Handle from, Handle to, std::uint64_t* weight) {
  if (fake::enter("amdsmi_topo_get_link_weight")) return kUnknown;
  *weight = links(from, to) > 0 ? 15 : 30;
  return kSuccess;
}

FAKE Status amdsmi_get_minmax_bandwidth_between_processors(Handle from, Handle to,
                                                           std::uint64_t* least,
                                                           std::uint64_t* most) {
  if (fake::enter("amdsmi_get_minmax_bandwidth_between_processors")) return kUnknown;
  *least = fake::kind("liar") ? 0 : 50000;
  *most = 50000 * links(from, to);
  return kSuccess;
}
