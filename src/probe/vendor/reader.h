#pragma once
#include <algorithm>
#include <cstdint>
#include <string>
#include <vector>

#include "probe/vendor/library.h"
#include "probe/vendor/told.h"

namespace hpclaunch::probe::vendor {

/// `ask(told, "nvmlDeviceGetName", function, arguments...)` is true when the call is there and worked; what is
/// a fault in the library's eyes becomes a remark.
template <auto success, auto is_fault, auto words>
struct Asker {
  template <class Function, class... Arguments>
  bool operator()(Told& told, const char* name, Function* function, Arguments... arguments) const {
    if (function == nullptr) return false;
    const auto status = function(arguments...);
    if (is_fault(status)) remark(told, name, words(status));
    return status == success;
  }

  /// What a call lists that first says how many there are: `call(count, array)`, the array of copies of
  /// `blank`.
  template <class Item, class Call>
  std::vector<Item> list(Told& told, const char* name, const Call& call,
                         const Item& blank = {}) const {
    std::uint32_t count = 0;
    auto status = call(&count, static_cast<Item*>(nullptr));
    if (status == success && count > kMostDevices) {
      remark(told, name, "it counts " + std::to_string(count));
      return {};
    }
    std::vector<Item> all(count, blank);
    if (status == success && count > 0) status = call(&count, all.data());
    if (is_fault(status)) remark(told, name, words(status));
    if (status != success) return {};
    all.resize(std::min<std::size_t>(count, all.size()));
    return all;
  }
};

// Each asks one library for all that it knows. To be called in a child that may be thrown away: a
// library may hang, crash, print, or change anything of the process. The devices are in the
// library's own order. Errors: `system` when it could not name its devices; any call that fails after
// that is a remark, and what it would have told stays unknown.

/// NVIDIA: PCI address, name, UUID, memory, MIG instances, NVLink (also through NVSwitch).
Result<Told> read_nvml(const Library& library);

/// Intel: PCI address, name, UUID, memory, tiles, Xe Link; discrete GPUs only. Changes the environment.
Result<Told> read_level_zero(const Library& library);

/// AMD: PCI address, name, UUID, memory, compute partition, XGMI links.
Result<Told> read_amd_smi(const Library& library);

/// The same, from the library before AMD SMI.
Result<Told> read_rocm_smi(const Library& library);

}  // namespace hpclaunch::probe::vendor
