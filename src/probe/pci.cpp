#include "probe/pci.h"

#include <fmt/format.h>

#include <algorithm>
#include <cstdio>
#include <initializer_list>

#include "hpclaunch/programs.h"

namespace hpclaunch::probe {
namespace {

constexpr unsigned kNvidia = 0x10de;
constexpr unsigned kAmd = 0x1002;
constexpr unsigned kIntel = 0x8086;

constexpr unsigned kDisplay = 0x03;  // base class
constexpr unsigned kProcessingAccelerator = 0x1200;

bool listed(std::initializer_list<unsigned> ids, unsigned id) {
  return std::ranges::count(ids, id) > 0;
}

/// AMD's chips that server boards carry for the picture of their service processor: Rage XL and ES1000.
bool pictures_only(unsigned device) { return listed({0x4752, 0x515e, 0x5969}, device); }

}  // namespace

std::optional<PciAddress> parse_pci(std::string_view text) {
  const std::string whole(text);
  if (whole.find_first_not_of("0123456789abcdefABCDEF:.") != std::string::npos) return {};
  PciAddress at;
  int end = 0;
  const int read = std::sscanf(whole.c_str(), "%8x:%2x:%2x.%1x%n", &at.domain, &at.bus, &at.device,
                               &at.function, &end);
  if (read != 4 || end != std::ssize(whole) || at.device > 31 || at.function > 7) return {};
  return at;
}

std::string to_string(const PciAddress& address) {
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", address.domain, address.bus, address.device,
                     address.function);
}

std::string accelerator_vendor(const PciFunction& function) {
  const bool display = function.class_id >> 8 == kDisplay;
  // Bus 0 has the processor's own graphics, and in virtual machines cards that are passed through.
  const bool on_board =
      function.address.domain == 0 && function.address.bus == 0 && model_name(function).empty();
  if (function.vendor == kNvidia && display) return "nvidia";
  if (function.vendor == kAmd && (display || function.class_id == kProcessingAccelerator) &&
      !pictures_only(function.device) && !(display && on_board))
    return "amd";
  if (function.vendor == kIntel && display && !on_board) return "intel";
  return "";
}

std::string model_name(const PciFunction& function) {
  const std::string id = fmt::format("{:04x}:{:04x}", function.vendor, function.device);
  for (const PciModel& model : rows<PciModel>())
    if (model.id == id) return std::string(model.name);
  return "";
}

bool is_share(const PciFunction& function) {
  constexpr unsigned kMellanox = 0x15b3;
  if (function.vendor == kMellanox)
    return listed({0x1002, 0x1004, 0x1012, 0x1014, 0x1016, 0x1018, 0x101a, 0x101c, 0x101e, 0xa2d3},
                  function.device);
  return function.vendor == kIntel &&
         listed({0x10ca, 0x10ed, 0x1515, 0x1520, 0x154c, 0x1565, 0x1571, 0x1889, 0x37cd},
                function.device);
}

// Data Center GPU Max with two tiles (1350, 1450, 1550), the only GPUs whose parts a rank can have; the 1100 has
// one. Sources: pci.ids (tiles_of); intel/compute-runtime, shared/source/dll/devices/devices_base.inl (all).

int tiles_of(const PciFunction& function) {
  const bool two = listed({0x0bd0, 0x0bd5, 0x0bd6, 0x0bd7, 0x0bd8}, function.device);
  return function.vendor == kIntel && two ? 2 : 0;
}

bool may_have_tiles(unsigned intel_device) {
  return listed({0x0b69, 0x0bd0, 0x0bd4, 0x0bd5, 0x0bd6, 0x0bd7, 0x0bd8}, intel_device);
}

}  // namespace hpclaunch::probe
