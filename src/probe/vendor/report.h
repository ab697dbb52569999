#pragma once
// What a vendor's library reports about its devices; independent of libraries and of the topology.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::probe::vendor {

/// The most devices, and the most instances of one device, that a library may report.
constexpr unsigned kMaxDevices = 256;
constexpr unsigned kMaxInstances = 64;

/// A device as one library describes it. Unknown: empty, 0 or, for subdevices, -1.
struct ReportedDevice {
  std::string pci;  ///< "0000:c1:00.0"; several entries may share one: partitions, in order
  std::string model;
  std::string uuid;
  std::string partition;
  std::uint64_t memory_bytes = 0;
  int subdevices = -1;
  std::vector<std::string> instances;
};

struct ReportedLink {
  std::size_t from = 0;  ///< position in VendorReport::devices, below `to`
  std::size_t to = 0;
  int lanes = 1;
};

struct VendorReport {
  std::string vendor = {};     ///< "nvidia", "amd", "intel"
  std::string link_kind = {};  ///< as in Link::kind
  std::vector<ReportedDevice> devices = {};
  std::vector<ReportedLink> links = {};
  bool complete = false;  ///< a device of this vendor that is not in `devices` is not usable here
  std::vector<std::string> faults = {};  ///< calls that failed, "CALL: WHY"
};

/// The form in which a report crosses the pipe from the child that called the library.
std::string report_to_json(const VendorReport& report);
/// Errors: `system` when the text is not what report_to_json writes.
Result<VendorReport> report_from_json(const std::string& text);

/// Adds "CALL: WHY" once for each call, for however many devices it failed.
void add_fault(VendorReport& report, std::string_view call, std::string_view why);

/// Text from a library's buffer: up to the first NUL or the end, printable ASCII, trimmed.
std::string clean(const char* buffer, std::size_t size);

/// "0000:c1:00.0"; "" when no bus has such an address.
std::string pci_text(std::uint64_t domain, std::uint64_t bus, std::uint64_t device,
                     std::uint64_t function);

}  // namespace hpclaunch::probe::vendor
