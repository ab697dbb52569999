#pragma once
// The fields of each part of a topology, in the order in which they are written: one list for every format.
#include <type_traits>

#include "hpclaunch/topology.h"

namespace hpclaunch::topology_fields {

enum class How {
  required,  ///< must be given; numbers from 0
  written,   ///< may be left out; is always written; numbers from the default
  known,     ///< may be left out; is written where it differs from the default
};

/// P is T or const T.
template <class P, class T>
concept Same = std::is_same_v<std::remove_const_t<P>, T>;

void fields(Same<Package> auto& package, auto visit) {
  visit("os_index", package.os_index, How::required);
  visit("model", package.model, How::written);
  visit("pus", package.pus, How::required);
}

void fields(Same<NumaNode> auto& node, auto visit) {
  visit("os_index", node.os_index, How::required);
  visit("memory_bytes", node.memory_bytes, How::written);
  visit("pus", node.pus, How::required);
}

void fields(Same<Cache> auto& cache, auto visit) {
  visit("level", cache.level, How::required);
  visit("size_bytes", cache.size_bytes, How::written);
  visit("pus", cache.pus, How::required);
}

void fields(Same<Core> auto& core, auto visit) {
  visit("package", core.package, How::written);
  visit("numa", core.numa, How::written);
  visit("pus", core.pus, How::required);
  visit("kind", core.kind, How::known);
}

void fields(Same<Device> auto& device, auto visit) {
  visit("index", device.index, How::required);
  visit("vendor", device.vendor, How::written);
  visit("model", device.model, How::written);
  visit("pci", device.pci, How::written);
  visit("memory_bytes", device.memory_bytes, How::written);
  visit("subdevices", device.subdevices, How::written);
  visit("numa", device.numa, How::written);
  visit("pus", device.pus, How::written);
  visit("uuid", device.uuid, How::known);
  visit("partition", device.partition, How::known);
  visit("instances", device.instances, How::known);
  visit("bridges", device.bridges, How::known);
}

void fields(Same<Nic> auto& nic, auto visit) {
  visit("name", nic.name, How::written);
  visit("fabric", nic.fabric, How::written);
  visit("pci", nic.pci, How::written);
  visit("numa", nic.numa, How::written);
  visit("kind", nic.kind, How::known);
  visit("provider", nic.provider, How::known);
  visit("speed_mbps", nic.speed_mbps, How::known);
  visit("state", nic.state, How::known);
  visit("addresses", nic.addresses, How::known);
  visit("bridges", nic.bridges, How::known);
  visit("pus", nic.pus, How::known);
}

void fields(Same<Link> auto& link, auto visit) {
  visit("from", link.from, How::required);
  visit("to", link.to, How::required);
  visit("kind", link.kind, How::written);
  visit("lanes", link.lanes, How::written);
}

}  // namespace hpclaunch::topology_fields
