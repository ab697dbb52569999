#pragma once
// The shape of all readers: a library opened at run time, functions found by name, status codes as a table,
// failed calls as faults.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cstdint>
#include <span>
#include <string>
#include <utility>
#include <vector>

#include "probe/vendor/vendor.h"

namespace hpclaunch::probe::vendor {

/// A shared library opened at run time and never closed: vendors' libraries start threads and keep drivers
/// open, and unloading them crashes.
class Library {
 public:
  /// The first of `names` (sonames or paths) that opens. Errors: `not_found` when none of them
  /// exists; `system` when one exists and cannot be loaded (dlopen's message).
  static Result<Library> open(const std::vector<std::string>& names);

  const std::string& name() const { return name_; }

  /// The function of the first of these names that the library has; a null pointer when it has none.
  template <class Function, class... Names>
  Function* find(const char* name, Names... older) const {
    if (auto* found = reinterpret_cast<Function*>(symbol(name)); found != nullptr) return found;
    if constexpr (sizeof...(older) > 0) return find<Function>(older...);
    return nullptr;
  }

 private:
  Library(std::string name, void* handle) : name_(std::move(name)), handle_(handle) {}
  void* symbol(const char* name) const;

  std::string name_;
  void* handle_;
};

/// A function of the library; null where the library lacks it. `names`: newest first.
template <class Function>
struct Call {
  template <class... Names>
  explicit Call(const Library& library, Names... names)
      : name(std::array{names...}.back()), function(library.find<Function>(names...)) {}
  explicit operator bool() const { return function != nullptr; }

  const char* name;  ///< without a version, for messages
  Function* function;
};

template <class Status>
struct StatusText {
  Status status;
  const char* text;
};

/// Calls functions of one library; its status codes are a table.
template <class Status>
struct Asker {
  std::span<const Status> harmless;  ///< success first, then what is no fault: "not supported"
  std::span<const StatusText<Status>> texts;
  bool hexadecimal = false;

  bool worked(Status status) const { return status == harmless.front(); }
  bool is_fault(Status status) const { return std::ranges::count(harmless, status) == 0; }
  /// "no permission (4)"
  std::string text(Status status) const {
    const auto row = std::ranges::find(texts, status, &StatusText<Status>::status);
    const char* meaning = row == texts.end() ? "failed" : row->text;
    return hexadecimal ? fmt::format("{} ({:#x})", meaning, static_cast<unsigned>(status))
                       : fmt::format("{} ({})", meaning, status);
  }

  /// True when the function is there and worked; a fault goes into the report.
  template <class Function, class... Arguments>
  bool operator()(VendorReport& report, const Call<Function>& call, Arguments... arguments) const {
    if (!call) return false;
    const Status status = call.function(arguments...);
    if (is_fault(status)) add_fault(report, call.name, text(status));
    return worked(status);
  }

  /// The items of a call that takes (arguments..., count, array) and reports the count first.
  template <class Item, class Function, class... Arguments>
  std::vector<Item> list(VendorReport& report, const Call<Function>& call, const Item& blank,
                         Arguments... arguments) const {
    std::uint32_t count = 0;
    if (!(*this)(report, call, arguments..., &count, static_cast<Item*>(nullptr))) return {};
    if (count > kMaxDevices) {
      add_fault(report, call.name, fmt::format("implausible count {}", count));
      return {};
    }
    std::vector<Item> all(count, blank);
    if (count > 0 && !(*this)(report, call, arguments..., &count, all.data())) return {};
    all.resize(std::min<std::size_t>(count, all.size()));
    return all;
  }

  /// Calls what must work before any device can be listed. Errors: `system`.
  template <class Function, class... Arguments>
  hpclaunch::Status must(const Call<Function>& call, Arguments... arguments) const {
    const Status status = call.function(arguments...);
    if (worked(status)) return Done{};
    return Error{ErrorKind::system, fmt::format("{}: {}", call.name, text(status))};
  }

  /// The number of devices. Errors: `system`.
  template <class Function>
  Result<std::uint32_t> count(const Call<Function>& call) const {
    std::uint32_t count = 0;
    if (const hpclaunch::Status ok = must(call, &count); !ok) return ok.error();
    if (count <= kMaxDevices) return count;
    return Error{ErrorKind::system, fmt::format("implausible device count {}", count)};
  }
};

inline Error no_device_functions() {
  return Error{ErrorKind::system, "functions that list devices are missing"};
}

// Each reads everything from one library, in a child process: a library may hang, crash, print, or
// change the process. Devices are in the library's own order. Errors: `system` when none can be listed;
// a later call that fails is a fault of the report, and its values stay unknown. Faults and no device
// are an error (enrich.cpp).

/// NVIDIA: PCI address, name, UUID, memory, MIG instances, NVLink (also through NVSwitch).
Result<VendorReport> read_nvml(const Library& library);

/// Intel: PCI address, name, UUID, memory, tiles, Xe Link; discrete GPUs only. Changes the environment.
Result<VendorReport> read_level_zero(const Library& library);

/// AMD: PCI address, name, UUID, memory, compute partition, XGMI links.
Result<VendorReport> read_rocm_smi(const Library& library);

}  // namespace hpclaunch::probe::vendor
