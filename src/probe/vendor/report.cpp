#include "probe/vendor/report.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hpclaunch/text.h"

namespace hpclaunch::probe::vendor {

using Json = nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReportedDevice, pci, model, uuid, partition, memory_bytes,
                                   subdevices, instances)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReportedLink, from, to, lanes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VendorReport, vendor, link_kind, devices, links, complete,
                                   faults)

std::string report_to_json(const VendorReport& report) {
  return Json(report).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<VendorReport> report_from_json(const std::string& text) {
  try {
    return Json::parse(text).get<VendorReport>();
  } catch (const Json::exception& error) {
    return Error{ErrorKind::system, fmt::format("invalid vendor report: {}", error.what())};
  }
}

void add_fault(VendorReport& report, std::string_view call, std::string_view why) {
  const std::string begin = fmt::format("{}: ", call);
  const bool known =
      std::any_of(report.faults.begin(), report.faults.end(),
                  [&](const std::string& line) { return line.rfind(begin, 0) == 0; });
  if (!known) report.faults.push_back(begin + std::string(why));
}

std::string clean(const char* buffer, std::size_t size) {
  std::string text(buffer, std::find(buffer, buffer + size, '\0'));
  std::replace_if(
      text.begin(), text.end(), [](unsigned char c) { return c < ' ' || c > '~'; }, '?');
  return std::string(trim(text));
}

std::string pci_text(std::uint64_t domain, std::uint64_t bus, std::uint64_t device,
                     std::uint64_t function) {
  if (domain > 0xFFFFFFFFU || bus > 0xFF || device > 0x1F || function > 7) return "";
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

}  // namespace hpclaunch::probe::vendor
