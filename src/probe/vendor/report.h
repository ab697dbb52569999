#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::probe::vendor {

/// The most devices and the most instances of one device that a library is believed to count.
constexpr unsigned kMostDevices = 256;
constexpr unsigned kMostInstances = 64;

/// A device as one library describes it. What it did not say is empty, 0 or, for subdevices, -1.
struct ToldDevice {
  std::string pci;  ///< "0000:c1:00.0"; several entries may name one: its partitions, in order
  std::string model;
  std::string uuid;
  std::string partition;
  std::uint64_t memory_bytes = 0;
  int subdevices = -1;
  std::vector<std::string> instances;
};

struct ToldLink {
  std::size_t from = 0;  ///< position in Told::devices, below `to`
  std::size_t to = 0;
  int lanes = 1;
};

/// All that one library told.
struct Told {
  std::string library;    ///< the name that opened: "libnvidia-ml.so.1"
  std::string vendor;     ///< "nvidia", "amd", "intel"
  std::string link_kind;  ///< as in Link::kind
  std::vector<ToldDevice> devices;
  std::vector<ToldLink> links;
  /// A device of this vendor that is not in `devices` cannot be used by this process.
  bool complete = false;
  std::vector<std::string> remarks;  ///< what went wrong without stopping it; the user reads them
};

/// Crosses the pipe between the child that called the library and us.
std::string told_to_json(const Told& told);
/// Errors: `system` when the text is not what told_to_json writes.
Result<Told> told_from_json(const std::string& text);

/// Adds "CALL: WHY" once for each call, however many devices it failed for.
void remark(Told& told, std::string_view call, std::string_view why);

/// What a library wrote into a buffer of ours: up to the first NUL or the end, printable ASCII only,
/// no blanks at either end.
std::string clean(const char* buffer, std::size_t size);

/// "0000:c1:00.0"; "" when no bus has such an address.
std::string pci_text(std::uint64_t domain, std::uint64_t bus, std::uint64_t device,
                     std::uint64_t function);

}  // namespace hpclaunch::probe::vendor
