#include "probe/vendor/told.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hpclaunch/text.h"

namespace hpclaunch::probe::vendor {

namespace {

using Json = nlohmann::json;

ToldDevice device_from(const Json& json) {
  ToldDevice device;
  json.at("pci").get_to(device.pci);
  json.at("model").get_to(device.model);
  json.at("uuid").get_to(device.uuid);
  json.at("partition").get_to(device.partition);
  json.at("memory_bytes").get_to(device.memory_bytes);
  json.at("subdevices").get_to(device.subdevices);
  json.at("instances").get_to(device.instances);
  return device;
}

}  // namespace

std::string told_to_json(const Told& told) {
  Json devices = Json::array();
  for (const ToldDevice& one : told.devices) {
    devices.push_back({{"pci", one.pci},
                       {"model", one.model},
                       {"uuid", one.uuid},
                       {"partition", one.partition},
                       {"memory_bytes", one.memory_bytes},
                       {"subdevices", one.subdevices},
                       {"instances", one.instances}});
  }
  Json links = Json::array();
  for (const ToldLink& link : told.links) {
    links.push_back({{"from", link.from}, {"to", link.to}, {"lanes", link.lanes}});
  }
  const Json all = {
      {"library", told.library}, {"vendor", told.vendor}, {"link_kind", told.link_kind},
      {"devices", devices},      {"links", links},        {"complete", told.complete},
      {"remarks", told.remarks}};
  return all.dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<Told> told_from_json(const std::string& text) {
  try {
    const Json all = Json::parse(text);
    Told told;
    all.at("library").get_to(told.library);
    all.at("vendor").get_to(told.vendor);
    all.at("link_kind").get_to(told.link_kind);
    for (const Json& one : all.at("devices")) told.devices.push_back(device_from(one));
    for (const Json& one : all.at("links")) {
      told.links.push_back({one.at("from").get<std::size_t>(), one.at("to").get<std::size_t>(),
                            one.at("lanes").get<int>()});
    }
    all.at("complete").get_to(told.complete);
    all.at("remarks").get_to(told.remarks);
    return told;
  } catch (const Json::exception& error) {
    return Error{ErrorKind::system, fmt::format("its answer cannot be read: {}", error.what())};
  }
}

void remark(Told& told, std::string_view call, std::string_view why) {
  const std::string begin = fmt::format("{}: ", call);
  const bool said = std::any_of(told.remarks.begin(), told.remarks.end(), [&](const auto& line) {
    return line.compare(0, begin.size(), begin) == 0;
  });
  if (!said) told.remarks.push_back(begin + std::string(why));
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
