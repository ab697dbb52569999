// A librocm_smi64.so for tests. FAKE_KIND: "" two cards of two parts each (0 and 1, 2 and 3): four XGMI
// links inside a card, one between 0 and 2, two hops for the rest; "tpx" two cards in three partitions;
// "narrow" (a kernel without bandwidths); "zero"; "huge"; "liar"; "rude".
#include <cstdint>

#include "fake.h"
#include "probe/vendor/rocm_smi_abi.h"

namespace {

using namespace hpclaunch::probe::vendor::rocm_smi;

std::uint32_t count() {
  if (fake::kind("zero")) return 0;
  if (fake::kind("huge")) return 0xFFFFFFFF;
  return fake::kind("tpx") ? 6 : 4;
}

/// Links side by side between two devices; 0: through others.
std::uint64_t links(std::uint32_t from, std::uint32_t to) {
  if (from / 2 == to / 2) return 4;
  return from + to == 2 ? 1 : 0;
}

}  // namespace

FAKE Status rsmi_init(std::uint64_t) {
  if (fake::enter("rsmi_init")) return kInitError;
  if (fake::kind("rude")) fake::misbehave();
  return kSuccess;
}

FAKE Status rsmi_num_monitor_devices(std::uint32_t* into) {
  if (fake::enter("rsmi_num_monitor_devices")) return kUnknown;
  *into = count();
  return kSuccess;
}

FAKE Status rsmi_dev_pci_id_get(std::uint32_t device, std::uint64_t* bdf) {
  if (fake::enter("rsmi_dev_pci_id_get")) return kUnknown;
  if (fake::kind("tpx")) {
    // The second card's partitions are reported as functions.
    const std::uint64_t part = device % 3;
    *bdf = (device / 3 + 1) << 12 | (device < 3 ? part << 28 : part);
  } else {
    *bdf = 1ULL << 32 | (device + 1) << 12;
  }
  return kSuccess;
}

FAKE Status rsmi_dev_name_get(std::uint32_t device, char* name, std::size_t length) {
  if (fake::enter("rsmi_dev_name_get")) return kUnknown;
  if (fake::kind("liar")) {
    fake::overfill(name, length);
  } else {
    fake::put(name, length, device == 3 ? "0x740c" : "AMD Fake MI");
  }
  return kSuccess;
}

FAKE Status rsmi_dev_unique_id_get(std::uint32_t device, std::uint64_t* number) {
  if (fake::enter("rsmi_dev_unique_id_get")) return kUnknown;
  *number = device == 3 ? 0 : 0xABC0 + device;
  return kSuccess;
}

FAKE Status rsmi_dev_memory_total_get(std::uint32_t, unsigned type, std::uint64_t* bytes) {
  if (fake::enter("rsmi_dev_memory_total_get") || type != kVram) return kUnknown;
  *bytes = 64ULL << 30;
  return kSuccess;
}

FAKE Status rsmi_dev_compute_partition_get(std::uint32_t, char* name, std::uint32_t length) {
  if (fake::enter("rsmi_dev_compute_partition_get")) return kUnknown;
  if (fake::kind("liar")) {
    fake::overfill(name, length);
    return kSuccess;
  }
  fake::put(name, length, fake::kind("tpx") ? "TPX" : "SPX");
  return kSuccess;
}

FAKE Status rsmi_topo_get_link_type(std::uint32_t from, std::uint32_t to, std::uint64_t* hops,
                                    unsigned* type) {
  if (fake::enter("rsmi_topo_get_link_type") || from == to) return kUnknown;
  *hops = 1;  // as the real one, for every pair
  *type = fake::kind("tpx") && from / 3 != to / 3 ? 1 : kXgmi;
  return kSuccess;
}

FAKE Status rsmi_topo_get_link_weight(std::uint32_t from, std::uint32_t to, std::uint64_t* weight) {
  if (fake::enter("rsmi_topo_get_link_weight")) return kUnknown;
  *weight = links(from, to) > 0 ? 15 : 30;
  if (fake::kind("tpx")) *weight = 13;
  if (fake::kind("liar")) *weight = 0;
  return kSuccess;
}

FAKE Status rsmi_minmax_bandwidth_get(std::uint32_t from, std::uint32_t to, std::uint64_t* least,
                                      std::uint64_t* most) {
  if (fake::enter("rsmi_minmax_bandwidth_get")) return kUnknown;
  if (fake::kind("narrow") || fake::kind("tpx")) return kNotSupported;
  *least = 50000;
  *most = 50000 * links(from, to);
  if (fake::kind("liar")) {
    *least = 1;
    *most = ~0ULL;
  }
  return kSuccess;
}
