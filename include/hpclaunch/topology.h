#pragma once
#include <cstdint>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/cpuset.h"
#include "hpclaunch/result.h"

namespace hpclaunch {

/// One physical processor package (socket).
struct Package {
  int os_index = 0;
  std::string model;  ///< as the firmware names it; "" when unknown
  CpuSet pus;
  friend bool operator==(const Package&, const Package&) = default;
};

/// One NUMA node: memory, and the hardware threads that are nearest to it.
struct NumaNode {
  int os_index = 0;
  std::uint64_t memory_bytes = 0;  ///< 0 when unknown
  CpuSet pus;  ///< may equal another node's (HBM beside DDR); may be empty (memory near no CPU)
  friend bool operator==(const NumaNode&, const NumaNode&) = default;
};

/// A cache that several cores share.
struct Cache {
  int level = 0;                 ///< 2, 3, ...
  std::uint64_t size_bytes = 0;  ///< 0 when unknown
  CpuSet pus;
  friend bool operator==(const Cache&, const Cache&) = default;
};

/// One core and all its hardware threads (siblings).
struct Core {
  int package = -1;  ///< OS index of its package; -1 unknown
  /// OS index of its NUMA node; -1 unknown. Where several nodes contain its threads: the one with the
  /// fewest PUs, and among equals the one with the lowest index.
  int numa = -1;
  CpuSet pus;  ///< never empty
  /// Of a hybrid processor: 0 for the cores that save most energy, higher for faster ones; -1: all are alike.
  int kind = -1;
  friend bool operator==(const Core&, const Core&) = default;
};

/// An accelerator by its driver's numbers: a GPU; a GCD or a partition (MI300 in TPX, CPX) where the
/// driver shows each as a device.
struct Device {
  int index = 0;       ///< from 0: its number in a visibility mask (docs/reference/topology.md)
  std::string vendor;  ///< "nvidia", "amd", "intel"
  std::string model;   ///< "" when unknown
  std::string pci;     ///< "0000:18:00.0"; "" when unknown
  std::uint64_t memory_bytes = 0;  ///< 0 when unknown
  int subdevices = 0;              ///< parts that a rank can use alone (tiles); 0: only the whole
  int numa = -1;                   ///< OS index of the nearest NUMA node; -1 unknown
  CpuSet pus;                      ///< nearest hardware threads; empty when unknown
  std::string uuid = {};           ///< as the vendor's tools print it ("GPU-..."); "" when unknown
  std::string partition = {};      ///< "SPX", "TPX", "CPX", "MIG", ...; "" for none, or unknown
  /// Instances that replace the device in a mask ("MIG-<uuid>"), in the driver's order. A process can use
  /// one of them, and not the whole device.
  std::vector<std::string> instances = {};
  /// Its path on PCI, outermost first: the root's bus ("0000:c0"), then the bridges, root port
  /// first ("0000:c0:01.1"). More common ones are nearer. Empty when unknown.
  std::vector<std::string> bridges = {};

  friend bool operator==(const Device&, const Device&) = default;
};

/// A network interface for the job's traffic.
struct Nic {
  std::string name;       ///< IP interface, "hsn0"; may be empty
  std::string fabric;     ///< libfabric domain or verbs device, "cxi0", "mlx5_0"; may be empty
  std::string pci;        ///< "" when unknown
  int numa = -1;          ///< OS index of the nearest NUMA node; -1 unknown, or several
  std::string kind = {};  ///< "slingshot", "infiniband", "roce", "efa", "omni-path", "ethernet"; ""
  std::string provider = {};  ///< of libfabric ("cxi", "verbs;ofi_rxm"); "" when not asked
  int speed_mbps = 0;         ///< 10^6 bit/s of the link; 0 when unknown
  std::string state = {};     ///< "up", "down"; "" when unknown
  std::vector<std::string> addresses = {};  ///< of `name`, "10.1.2.3" or "fd00::1"; no link-local
  std::vector<std::string> bridges = {};    ///< as Device::bridges
  /// Nearest hardware threads where they are those of several NUMA nodes (a whole package's), or not of
  /// `numa`, which has none; empty where `numa` says it, and when unknown.
  CpuSet pus = {};

  bool on_fabric() const { return !kind.empty() && kind != "ethernet"; }
  friend bool operator==(const Nic&, const Nic&) = default;
};

/// A direct connection of two devices, both ways.
struct Link {
  int from = 0;      ///< Device::index, the lower one
  int to = 0;        ///< Device::index
  std::string kind;  ///< "nvlink", "xgmi", "xe-link"
  int lanes = 1;     ///< links side by side: a device pair with more is nearer

  friend bool operator==(const Link&, const Link&) = default;
};

/// What one node is made of. Plain data: no handle, no lifetime, comparable.
///
/// `pus` of every member are those online; `allowed` are those of the cgroup and the affinity mask. All
/// orders are hwloc's logical order: neighbours in a vector are neighbours in the machine.
struct Topology {
  std::string hostname;
  std::vector<Package> packages;
  std::vector<NumaNode> numa_nodes;
  std::vector<Cache> caches;  ///< largest level first, then by position
  std::vector<Core> cores;
  std::vector<Device> devices;  ///< ascending index
  std::vector<Nic> nics;
  std::vector<Link> links;  ///< ascending (from, to), each pair and kind once; empty: none known
  CpuSet allowed;           ///< a subset of the PUs of all cores; never empty
  bool no_devices = false;  ///< `devices` is empty because PCI was read and has none; in JSON: []

  CpuSet all_pus() const;                         ///< union over cores
  const NumaNode* find_numa(int os_index) const;  ///< nullptr: none has this number
  const Device* find_device(int index) const;     ///< nullptr: none has this number
  CpuSet numa_pus(int os_index) const;            ///< empty where none has this number
  /// Hardware threads near a device or an interface: its own, else its NUMA node's; empty when unknown.
  template <class Part>
  CpuSet near(const Part& part) const {
    return part.pus.empty() ? numa_pus(part.numa) : part.pus;
  }
  friend bool operator==(const Topology&, const Topology&) = default;
};

/// Positions in Topology::cores.
using CoreSet = CpuSet;

/// Cores with hardware threads in `pus`.
CoreSet cores_of(const Topology& node, const CpuSet& pus);

/// "0000:c0" with `root`, else "0000:c0:01.1": lower case, domains of 4 to 8 digits, as the kernel writes them.
bool is_pci_place(std::string_view text, bool root);

/// Writes the format that topology_from_json reads, with "schema": 1. Lossless as long as the
/// strings are UTF-8 (other bytes become U+FFFD); one object per line; ends with a newline.
std::string topology_to_json(const Topology& topology);

/// Reads our own JSON (docs/reference/topology.md). `file` names the text in errors.
/// Errors: `invalid`, with line and column for broken JSON, with a JSON pointer (and the line it
/// leads to) for a wrong key, type or number, and for a topology that contradicts itself (see
/// check_topology).
Result<Topology> topology_from_json(std::string_view text, const std::string& file);

namespace json_reader {
class Item;
}
/// One that stands in another file; problems go to the item's context, and are not those of check_topology. Members that
/// nothing reads are left to Item::finish.
Topology topology_of(const json_reader::Item& at);

/// The same for another process of this program: compact, lossless, not to be stored.
std::string pack_topology(const Topology& topology);

/// Reads it back. Errors: `system` for bytes that are cut off or were not written by pack_topology; `invalid` as
/// check_topology.
Result<Topology> unpack_topology(std::string_view bytes);

/// The invariants of a Topology: at least one core; no PU in two cores; packages, NUMA nodes and
/// caches made of whole cores, no two of them overlapping unless one contains the other; OS indices of
/// packages and of NUMA nodes unique and not negative; a core inside the package and the NUMA node
/// that it names; caches of level 2 or above, larger levels first; `allowed` a non-empty subset; devices
/// by ascending index, of a known vendor, and none where `no_devices`; devices and interfaces near PUs and
/// NUMA nodes that exist, an interface near PUs of its own only where it names no node that has PUs; ways on
/// PCI made of a root's bus and then bridges; links between devices that exist, in order.
/// Errors: `invalid`, naming the first violation; `where` holds a JSON pointer to the member at fault,
/// without a file.
Status check_topology(const Topology& topology);

}  // namespace hpclaunch
