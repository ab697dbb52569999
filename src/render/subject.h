#pragma once
// The contents of a picture: one node, and the ranks on nodes like it. Needs no plan.
#include <cstdint>
#include <set>
#include <string>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/render.h"
#include "hpclaunch/topology.h"

namespace hpclaunch::render {

/// A device, a part of one, or the nearest interface, that a rank uses.
struct Use {
  int rank = 0;           ///< local
  int place = 0;          ///< Device::index, or the position in Topology::nics
  int part = -1;          ///< of a device; -1: the whole
  std::string name = {};  ///< "device 2.1", "hsn0 (cxi0)"
  std::string far = {};   ///< "", or why it is far from the rank: "on another package"
  bool known = true;      ///< false: the locality of one of the two is unknown, so `far` is ""
};

struct Subject {
  const Topology* node = nullptr;
  std::string title;                 ///< printable; "" for the node's own name
  const NodeClass* ranks = nullptr;  ///< nullptr: the bare machine
  PictureMarks marks;
  std::vector<Use> uses;  ///< of devices: ascending rank, then as the rank counts them
  std::vector<Use> nics;  ///< ascending rank
};

/// The machine and nothing on it.
Subject subject_of(const Topology& node);

/// `ranks` over the machine.
Subject subject_of(const Topology& node, const NodeClass& ranks, const PictureMarks& marks);

/// Ranks with a use that satisfies `is`.
template <class Is>
std::set<int> ranks_where(const std::vector<Use>& uses, Is is) {
  std::set<int> ranks;
  for (const Use& use : uses)
    if (is(use)) ranks.insert(use.rank);
  return ranks;
}

/// Uses whose device is far from the CPUs of its rank. A device of unknown locality is not far.
std::vector<const Use*> far_uses(const Subject& subject);

/// "0", "0-3,7": numbers in the kernel's list format; "rank 0", "ranks 0-3,7".
std::string number_set(const std::set<int>& numbers);
std::string rank_set(const std::set<int>& ranks);

/// "rank 3: CPUs 8-15, device 2.1 (FAR: on another package)".
std::string rank_words(const Subject& subject, int local);

/// The picture as text: the machine, then each rank with its CPUs and devices, what is far, what is reserved.
/// One sentence per line, without a full stop.
std::vector<std::string> description_of(const Subject& subject);

/// "2 packages, 104 cores, 208 PUs": what there is, and what of it is not allowed.
std::string machine_words(const Subject& subject);

/// "FAR, on another package: rank 3 - device 5": one per reason.
std::vector<std::string> far_words(const Subject& subject);

/// One sentence: how well ranks and devices lie together; "" without ranks.
std::string locality_text(const Subject& subject);

/// Parts of a device that a rank can get by itself: sub-devices or instances; 0: only the whole.
int parts_of(const Device& device);

/// "2", "2.1": a device, or a part of it (from 0).
std::string unit_name(int device, int part);

/// "text 32 MiB"; "text" for 0 bytes, which mean unknown.
std::string with_size(std::string text, std::uint64_t bytes);
std::string package_text(const Package& package);  ///< "package 0"
std::string numa_text(const NumaNode& node);       ///< "NUMA node 0 503.5 GiB"
std::string cache_text(const Cache& cache);        ///< "L3 105 MiB"
std::string nic_name(const Nic& nic);              ///< "hsn0 (cxi0)"
std::string speed_text(int mbps);                  ///< "200 Gbit/s"

/// One sentence with all facts about each, printable.
std::string device_words(const Device& device);
std::string nic_words(const Nic& nic);
/// "nvlink between devices 0-1, 0-2 (12 lanes each)"; one per kind and number of lanes.
std::vector<std::string> link_words(const Topology& node);

}  // namespace hpclaunch::render
