#pragma once
// Vendors' libraries: what each reports about its devices, and what of that goes into a topology.
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/probe.h"
#include "hpclaunch/result.h"
#include "hpclaunch/topology.h"

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

/// The libraries to open, and the root of the kernel's files. Each list (sonames or paths) is tried in order;
/// an empty one: the library is not asked.
struct Libraries {
  std::vector<std::string> nvml = {};
  std::vector<std::string> level_zero = {};
  std::vector<std::string> rocm_smi = {};
  std::string sysfs = "/sys";
  /// For each library. A driver without its persistence daemon wakes GPUs one after the other.
  double limit_seconds = 8;

  bool none() const { return nvml.empty() && level_zero.empty() && rocm_smi.empty(); }
};

/// The libraries to open on this machine, by the names they have there: only of vendors of which the topology
/// has a device, or whose driver has a file under `root`/dev. With `if_needed`, only where a plan may depend
/// on it: MIG instances exist; the job's mask names devices by UUID (`named_by_uuid`); some NVIDIA devices
/// cannot be opened; a GPU with tiles shows none.
Libraries libraries_to_open(const Topology& topology, VendorLibraries want, bool named_by_uuid,
                            const std::string& root = "");

/// Merges a vendor report into a valid topology, which stays valid.
///
/// A device is matched by vendor and PCI address; partitions that share an address are matched in order.
/// Reported values replace known ones; unknown ones change nothing. A device that only the library reports is
/// added, near the CPUs and below the bridges that `sysfs` ("/sys") names for its address. If the report is
/// complete, an unreported device of that vendor is removed, and a sentence with the counts is returned
/// ("" otherwise). Indices are renumbered when a device was added or removed: those of the vendor in PCI address
/// order, or, where they were not in that order, as they were with new ones behind; others as they were. Links of
/// the report's kind are replaced if it has any.
std::string merge(Topology& topology, const VendorReport& report, const std::string& sysfs);

/// Adds what the libraries report to the topology's devices and links (merge). Every library runs in a child
/// process, the vendors at the same time; one that hangs, crashes or fails loses only its own values. One that hung
/// is remembered (sys::runtime_folder) and skipped until its files change or the machine restarts. The topology must pass check_topology, and passes afterwards. Returns notes ("vendor-library") for the user;
/// a library that is not installed gives none.
std::vector<Diagnostic> enrich(Topology& topology, const Libraries& which);

}  // namespace hpclaunch::probe::vendor
