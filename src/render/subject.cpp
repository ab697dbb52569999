#include "render/subject.h"

#include <fmt/format.h>

#include <algorithm>
#include <map>
#include <utility>

#include "hpclaunch/text.h"

namespace hpclaunch::render {

namespace {

/// Whether a package has threads of both sets; true when no package is known.
bool share_package(const Topology& node, const CpuSet& a, const CpuSet& b) {
  if (node.packages.empty()) return true;
  return std::any_of(node.packages.begin(), node.packages.end(), [&](const Package& package) {
    return package.pus.intersects(a) && package.pus.intersects(b);
  });
}

std::string far_text(const Topology& node, const CpuSet& near, const CpuSet& cpus) {
  if (near.empty() || cpus.empty() || near.intersects(cpus)) return "";
  return share_package(node, near, cpus) ? "on another NUMA node" : "on another package";
}

Use use_of(const Subject& subject, int rank, const CpuSet& near) {
  const CpuSet& cpus = subject.ranks->ranks[static_cast<std::size_t>(rank)].cpus;
  return {.rank = rank,
          .far = far_text(*subject.node, near, cpus),
          .known = !near.empty() && !cpus.empty()};
}

void add_device(int rank, const Slot& unit, Subject& subject) {
  if (unit.device < 0) return;
  const Topology& node = *subject.node;
  const Device* device = node.find_device(unit.device);
  Use use = use_of(subject, rank, device == nullptr ? CpuSet{} : node.near(*device));
  use.place = unit.device;
  use.part = unit.part;
  use.name = "device " + unit_name(unit.device, unit.part);
  subject.uses.push_back(std::move(use));
}

void add_nic(int rank, int place, Subject& subject) {
  const Topology& node = *subject.node;
  if (place < 0 || place >= std::ssize(node.nics)) return;
  const Nic& nic = node.nics[static_cast<std::size_t>(place)];
  Use use = use_of(subject, rank, node.near(nic));
  use.place = place;
  use.name = nic_name(nic);
  subject.nics.push_back(std::move(use));
}

void append(std::string& text, std::string_view label, const std::string& value) {
  if (!value.empty()) text += fmt::format(", {}{}", label, printable(value));
}

}  // namespace

int parts_of(const Device& device) {
  return std::max(device.subdevices, static_cast<int>(device.instances.size()));
}

std::string unit_name(int device, int part) {
  return part < 0 ? fmt::format("{}", device) : fmt::format("{}.{}", device, part);
}

std::string with_size(std::string text, std::uint64_t bytes) {
  if (bytes > 0) text += " " + human_bytes(bytes);
  return text;
}

std::string package_text(const Package& package) {
  return fmt::format("package {}", package.os_index);
}

std::string numa_text(const NumaNode& node) {
  return with_size(fmt::format("NUMA node {}", node.os_index), node.memory_bytes);
}

std::string cache_text(const Cache& cache) {
  return with_size(fmt::format("L{}", cache.level), cache.size_bytes);
}

std::string nic_name(const Nic& nic) {
  if (nic.name.empty()) return printable(nic.fabric.empty() ? "unnamed" : nic.fabric);
  return printable(nic.fabric.empty() ? nic.name : fmt::format("{} ({})", nic.name, nic.fabric));
}

std::string device_words(const Device& device) {
  std::string text = with_size(fmt::format("device {}", device.index), device.memory_bytes);
  append(text, "", device.model.empty() ? device.vendor : device.model);
  append(text, "partition ", device.partition);
  if (device.subdevices > 0) text += ", " + counted(device.subdevices, "sub-device");
  if (!device.instances.empty()) text += ", " + counted(device.instances.size(), "instance");
  append(text, "PCI ", device.pci);
  append(text, "UUID ", device.uuid);
  if (device.numa >= 0) text += fmt::format(", NUMA node {}", device.numa);
  append(text, "near CPUs ", device.pus.to_list());
  if (device.numa < 0 && device.pus.empty()) text += ", locality unknown";
  return text;
}

std::string nic_words(const Nic& nic) {
  std::string text = "interface " + nic_name(nic);
  append(text, "", nic.kind);
  append(text, "provider ", nic.provider);
  if (nic.speed_mbps > 0) text += ", " + speed_text(nic.speed_mbps);
  append(text, "", nic.state);
  append(text, "PCI ", nic.pci);
  for (const std::string& address : nic.addresses) append(text, "address ", address);
  if (nic.numa >= 0) text += fmt::format(", NUMA node {}", nic.numa);
  append(text, "near CPUs ", nic.pus.to_list());
  if (nic.numa < 0 && nic.pus.empty()) text += ", locality unknown";
  return text;
}

std::string speed_text(int mbps) {
  constexpr int kThousand = 1000;
  if (mbps % kThousand != 0) return fmt::format("{} Mbit/s", mbps);
  return fmt::format("{} Gbit/s", mbps / kThousand);
}

std::vector<std::string> link_words(const Topology& node) {
  std::map<std::pair<std::string, int>, std::string> pairs;
  for (const Link& link : node.links) {
    std::string& list = pairs[{link.kind, link.lanes}];
    list += fmt::format("{}{}-{}", list.empty() ? "" : ", ", link.from, link.to);
  }
  std::vector<std::string> words;
  for (const auto& [key, list] : pairs) {
    words.push_back(fmt::format("{} between devices {}", printable(key.first), list));
    if (key.second > 1) words.back() += fmt::format(" ({} lanes each)", key.second);
  }
  return words;
}

std::string number_set(const std::set<int>& numbers) {
  std::string text;
  for (auto at = numbers.begin(); at != numbers.end();) {
    const int first = *at;
    int end = first;
    while (at != numbers.end() && *at == end) ++at, ++end;
    text += (text.empty() ? "" : ",") + fmt::format("{}", first);
    if (end - first > 1) text += fmt::format("-{}", end - 1);
  }
  return text;
}

std::string rank_set(const std::set<int>& ranks) {
  return (ranks.size() == 1 ? "rank " : "ranks ") + number_set(ranks);
}

Subject subject_of(const Topology& node) {
  Subject subject;
  subject.node = &node;
  return subject;
}

Subject subject_of(const Topology& node, const NodeClass& ranks, const PictureMarks& marks) {
  Subject subject = subject_of(node);
  subject.ranks = &ranks;
  subject.marks = marks;
  int local = 0;
  for (const RankPlan& rank : ranks.ranks) {
    for (const Slot& unit : rank.slots) add_device(local, unit, subject);
    add_nic(local, rank.nic, subject);
    ++local;
  }
  return subject;
}

std::vector<const Use*> far_uses(const Subject& subject) {
  std::vector<const Use*> far;
  for (const Use& use : subject.uses)
    if (!use.far.empty()) far.push_back(&use);
  return far;
}

std::string locality_text(const Subject& subject) {
  if (subject.ranks == nullptr) return "";
  const std::string all = counted(subject.ranks->ranks.size(), "rank");
  const auto is_far = [](const Use& use) { return !use.far.empty(); };
  const std::set<int> far = ranks_where(subject.uses, is_far);
  const std::set<int> far_nics = ranks_where(subject.nics, is_far);
  const std::set<int> unknown =
      ranks_where(subject.uses, [](const Use& use) { return !use.known; });
  std::string text = all;
  if (subject.uses.empty())
    text += ", no devices";
  else if (!far.empty())
    text = fmt::format("FAR: {} of {}, not near their devices: {}", far.size(), all, rank_set(far));
  else if (unknown.empty())
    text += subject.ranks->ranks.size() == 1 ? ", near its devices" : ", each near its devices";
  if (!unknown.empty()) text += "; device locality unknown for " + rank_set(unknown);
  if (!far_nics.empty()) text += "; FAR from their interface: " + rank_set(far_nics);
  return text;
}

std::string machine_words(const Subject& subject) {
  const Topology& node = *subject.node;
  std::map<std::pair<int, std::uint64_t>, std::size_t> caches;  // the largest level first
  for (const Cache& cache : node.caches) ++caches[{-cache.level, cache.size_bytes}];
  std::string text =
      counts({{node.packages.size(), "package"}, {node.numa_nodes.size(), "NUMA node"}});
  for (const auto& [cache, number] : caches) {
    text +=
        (text.empty() ? "" : ", ") + counts({{number, fmt::format("shared L{}", -cache.first)}});
    if (cache.second > 0) text += " of " + human_bytes(cache.second);
  }
  text +=
      (text.empty() ? "" : ", ") + counts({{node.cores.size(), "core"},
                                           {static_cast<std::size_t>(node.all_pus().count()), "PU"},
                                           {node.devices.size(), "device"},
                                           {node.nics.size(), "network interface"}});
  if (const CpuSet closed = node.all_pus() - node.allowed - subject.marks.reserved; !closed.empty())
    text += fmt::format("; not allowed: CPUs {}", closed.to_list());
  if (!subject.marks.reserved.empty())
    text += fmt::format("; reserved for the system: CPUs {}", subject.marks.reserved.to_list());
  return text;
}

std::vector<std::string> far_words(const Subject& subject) {
  std::map<std::string, std::string> lists;
  for (const std::vector<Use>* uses : {&subject.nics, &subject.uses})
    for (const Use& use : *uses) {
      if (use.far.empty()) continue;
      std::string& list = lists[use.far];
      list += fmt::format("{}rank {} - {}", list.empty() ? "" : ", ", use.rank, use.name);
    }
  std::vector<std::string> words;
  words.reserve(lists.size());
  for (const auto& [why, list] : lists) words.push_back(fmt::format("FAR, {}: {}", why, list));
  return words;
}

std::string rank_words(const Subject& subject, int local) {
  const RankPlan& rank = subject.ranks->ranks[static_cast<std::size_t>(local)];
  std::string text = fmt::format("rank {}: ", local);
  if (!rank.cpus.empty())
    text += (rank.cpus.count() == 1 ? "CPU " : "CPUs ") + rank.cpus.to_list();
  else if (rank.part_first >= 0)
    text += fmt::format("granted {} {} to {} of {}",
                        subject.ranks->granted_cores < subject.ranks->granted ? "cores" : "CPUs",
                        rank.part_first, rank.part_last, subject.ranks->granted_cores);
  else
    text += "not bound";
  const auto add = [&](const std::vector<Use>& uses, std::string_view label) {
    for (const Use& use : uses) {
      if (use.rank != local) continue;
      text += fmt::format(", {}{}", label, use.name);
      if (!use.far.empty()) text += fmt::format(" (FAR: {})", use.far);
    }
  };
  add(subject.uses, "");
  add(subject.nics, "interface ");
  return text;
}

std::vector<std::string> description_of(const Subject& subject) {
  std::vector<std::string> words = {machine_words(subject)};
  if (const std::string text = locality_text(subject); !text.empty()) words.push_back(text);
  const auto kept = [&](const std::string& who, const CpuSet& pus, const std::string& why) {
    words.push_back(fmt::format("{}: CPUs {}", who, pus.to_list()));
    if (!why.empty()) words.back() += fmt::format(" ({})", printable(why));
  };
  if (!subject.marks.reserved.empty())
    kept("reserved for the system", subject.marks.reserved, subject.marks.reserved_why);
  for (const PictureMarks::Service& service : subject.marks.services)
    kept("service " + printable(service.name), service.pus, service.why);
  if (subject.ranks != nullptr)
    for (std::size_t r = 0; r < subject.ranks->ranks.size(); ++r)
      words.push_back(rank_words(subject, static_cast<int>(r)));
  for (const Device& device : subject.node->devices) words.push_back(device_words(device));
  for (const Nic& nic : subject.node->nics) words.push_back(nic_words(nic));
  for (std::string& link : link_words(*subject.node)) words.push_back(std::move(link));
  return words;
}

}  // namespace hpclaunch::render
