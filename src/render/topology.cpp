#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <cstddef>
#include <string>
#include <vector>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"
#include "render/text.h"

namespace hpclaunch {
namespace {

/// A part of the machine: everything that has exactly these PUs, and the smaller parts inside.
struct Part {
  CpuSet pus;
  std::vector<std::string> labels;  ///< "package 0 (model)", "NUMA node 0 512 GiB", "L3 105 MiB"
  bool numbered = false;            ///< has a package or a NUMA node, which must keep its own line
  std::vector<Part> parts;          ///< by position
};

/// A line of the tree and the lines below it.
struct Branch {
  std::string text;
  std::vector<Branch> branches;
};

constexpr int kMinWidth =
    24;  ///< narrower than this nothing can be read; such widths count as this
constexpr std::size_t kMaxListed =
    80;  ///< bytes of the CPU lists of alike parts that are written out

/// Stands for a blank at which a line had better not end; `wrap` makes it one.
constexpr char kGlue = '\x1f';

std::string glued(std::string text) {
  std::replace(text.begin(), text.end(), ' ', kGlue);
  return text;
}

std::string sized(const std::string& label, std::uint64_t bytes) {
  return bytes == 0 ? label : label + kGlue + glued(human_bytes(bytes));
}

// ---- the parts -------------------------------------------------------------------------------------

void insert(Part& into, const CpuSet& pus, const std::string& label, bool numbered) {
  Part* at = &into;
  for (bool deeper = true; deeper && (at == &into || at->pus != pus);) {
    deeper = false;
    for (Part& part : at->parts) {
      if (!part.pus.contains(pus)) continue;
      at = &part;
      deeper = true;
      break;
    }
  }
  if (at == &into || at->pus != pus) {
    at->parts.push_back(Part{pus, {}, false, {}});
    at = &at->parts.back();
  }
  at->labels.push_back(label);
  at->numbered = at->numbered || numbered;
}

struct Labelled {
  CpuSet pus;
  std::string label;
  bool numbered;
};

/// The machine as nested parts: larger ones are laid first, so that each finds its place.
Part parts_of(const Topology& topology) {
  std::vector<Labelled> all;
  for (const Package& package : topology.packages) {
    std::string label = glued(fmt::format("package {}", package.os_index));
    if (!package.model.empty()) label += " (" + render::printable(package.model) + ")";
    all.push_back({package.pus, std::move(label), true});
  }
  for (const NumaNode& node : topology.numa_nodes) {
    const std::string label = glued(fmt::format("NUMA node {}", node.os_index));
    if (!node.pus.empty()) all.push_back({node.pus, sized(label, node.memory_bytes), true});
  }
  for (const Cache& cache : topology.caches) {
    all.push_back({cache.pus, sized(fmt::format("L{}", cache.level), cache.size_bytes), false});
  }
  std::stable_sort(all.begin(), all.end(), [](const Labelled& a, const Labelled& b) {
    return a.pus.count() > b.pus.count();
  });
  Part root;
  root.pus = topology.all_pus();
  for (const Labelled& item : all) insert(root, item.pus, item.label, item.numbered);
  return root;
}

// ---- lines -----------------------------------------------------------------------------------------

std::string forbidden(const CpuSet& pus, const CpuSet& allowed) {
  if (allowed.contains(pus)) return "";
  return allowed.intersects(pus) ? fmt::format("; not allowed: {}", (pus - allowed).to_list())
                                 : "; none allowed";
}

/// "52 cores of 2 PUs: 0-51,104-155 (first core 0,104)" for cores that stand side by side and have
/// the same number of PUs.
std::string cores_text(const std::vector<const Core*>& cores, const CpuSet& allowed) {
  CpuSet pus;
  for (const Core* core : cores) pus |= core->pus;
  const int each = cores.front()->pus.count();
  std::string text = counted(static_cast<long>(cores.size()), "core");
  if (each > 1) text += fmt::format(" of {} PUs", each);
  text += ": " + pus.to_list();
  if (each > 1 && cores.size() > 1) {
    text += " " + glued(fmt::format("(first core {})", cores.front()->pus.to_list()));
  }
  return text + forbidden(pus, allowed);
}

/// The cores that are in this part and in none of its parts, as runs of equal size.
std::vector<std::string> own_cores(const Part& part, const Topology& topology) {
  CpuSet own = part.pus;
  for (const Part& inner : part.parts) own -= inner.pus;
  std::vector<std::string> runs;
  std::vector<const Core*> run;
  const auto flush = [&] {
    if (!run.empty()) runs.push_back(cores_text(run, topology.allowed));
    run.clear();
  };
  for (const Core& core : topology.cores) {
    if (!own.contains(core.pus)) continue;
    if (!run.empty() && run.front()->pus.count() != core.pus.count()) flush();
    run.push_back(&core);
  }
  flush();
  return runs;
}

std::string title(const Part& part) { return fmt::format("{}", fmt::join(part.labels, " + ")); }

/// Two caches without a number, without parts inside, that differ in nothing but which cores they
/// hold.
bool alike(const Part& a, const Part& b, const Topology& topology) {
  if (a.numbered || b.numbered || !a.parts.empty() || !b.parts.empty()) return false;
  if (a.labels != b.labels || a.pus.count() != b.pus.count()) return false;
  std::vector<int> sizes_a;
  std::vector<int> sizes_b;
  for (const Core& core : topology.cores) {
    if (a.pus.contains(core.pus)) sizes_a.push_back(core.pus.count());
    if (b.pus.contains(core.pus)) sizes_b.push_back(core.pus.count());
  }
  const auto uniform = [](const std::vector<int>& sizes) {
    return !sizes.empty() &&
           std::count(sizes.begin(), sizes.end(), sizes.front()) == static_cast<long>(sizes.size());
  };
  return sizes_a == sizes_b && uniform(sizes_a);
}

/// "8 x L3 32 MiB, each 8 cores of 2 PUs: 0-7,64-71 | 8-15,72-79 | ..."
std::string run_text(const std::vector<const Part*>& run, const Topology& topology) {
  CpuSet all;
  std::vector<std::string> lists;
  for (const Part* part : run) {
    all |= part->pus;
    lists.push_back(part->pus.to_list());
  }
  const CpuSet& first = run.front()->pus;
  const auto inside = [&](const Core& core) { return first.contains(core.pus); };
  const long cores = std::count_if(topology.cores.begin(), topology.cores.end(), inside);
  const int each = first.count() / static_cast<int>(cores);
  std::string text =
      fmt::format("{} x {}, each {}", run.size(), title(*run.front()), counted(cores, "core"));
  if (each > 1) text += fmt::format(" of {} PUs", each);
  const std::string listed = fmt::format("{}", fmt::join(lists, " | "));
  text += listed.size() <= kMaxListed
              ? ": " + listed
              : fmt::format(": {} (first {}, second {})", all.to_list(), lists[0], lists[1]);
  return text + forbidden(all, topology.allowed);
}

Branch branch_of(const Part& part, const Topology& topology);

/// The lines below a part: its inner parts by position, alike ones in one line, then its own cores.
std::vector<Branch> branches_below(const Part& part, const Topology& topology) {
  std::vector<const Part*> inner;
  for (const Part& one : part.parts) inner.push_back(&one);
  const auto position = [&](const Part* one) {
    return std::find_if(topology.cores.begin(), topology.cores.end(),
                        [&](const Core& core) { return one->pus.intersects(core.pus); }) -
           topology.cores.begin();
  };
  std::stable_sort(inner.begin(), inner.end(),
                   [&](const Part* a, const Part* b) { return position(a) < position(b); });
  std::vector<Branch> out;
  for (std::size_t i = 0; i < inner.size();) {
    std::size_t end = i + 1;
    while (end < inner.size() && alike(*inner[i], *inner[end], topology)) ++end;
    if (end - i == 1) {
      out.push_back(branch_of(*inner[i], topology));
    } else {
      const auto from = inner.begin() + static_cast<std::ptrdiff_t>(i);
      out.push_back({run_text({from, from + static_cast<std::ptrdiff_t>(end - i)}, topology), {}});
    }
    i = end;
  }
  for (const std::string& run : own_cores(part, topology)) out.push_back({run, {}});
  return out;
}

Branch branch_of(const Part& part, const Topology& topology) {
  Branch branch{title(part), branches_below(part, topology)};
  if (branch.branches.size() == 1 && part.parts.empty()) {
    branch.text += ": " + branch.branches.front().text;
    branch.branches.clear();
  }
  return branch;
}

std::string summary(const Topology& topology) {
  std::uint64_t bytes = 0;
  for (const NumaNode& node : topology.numa_nodes) bytes += node.memory_bytes;
  const int all = topology.all_pus().count();
  const int allowed = topology.allowed.count();
  const std::string name =
      topology.hostname.empty() ? "machine" : render::printable(topology.hostname);
  std::string text = name + ": ";
  const auto add = [&](std::size_t count, const char* noun) {
    if (count > 0) text += counted(static_cast<long>(count), noun) + ", ";
  };
  add(topology.packages.size(), "package");
  add(topology.numa_nodes.size(), "NUMA node");
  add(topology.cores.size(), "core");
  text += counted(all, "PU");
  if (allowed < all) text += fmt::format(" ({} allowed)", allowed);
  if (bytes > 0) text += ", " + glued(human_bytes(bytes));
  return text;
}

// ---- columns ---------------------------------------------------------------------------------------

std::size_t columns_of(std::string_view text) {
  return static_cast<std::size_t>(render::columns(text));
}

/// The length in bytes of the longest beginning that takes at most `columns`, but of one character
/// at least, so that whoever cuts with it comes to an end.
std::size_t bytes_of(std::string_view text, std::size_t columns) {
  std::size_t at = 0;
  for (std::size_t taken = 0; at < text.size();) {
    const std::size_t unit = std::max<std::size_t>(render::utf8_unit(text.substr(at)), 1);
    taken += columns_of(text.substr(at, unit));
    if (taken > columns && at > 0) break;
    at += unit;
  }
  return at;
}

/// Breaks after a blank or a comma where there is one, else anywhere.
std::vector<std::string> wrap(std::string_view text, std::size_t columns) {
  std::vector<std::string> lines;
  while (columns_of(text) > columns) {
    const std::size_t room = bytes_of(text, columns);
    const std::size_t blank = text.substr(0, room + 1).find_last_of(" ");
    const std::size_t comma = text.substr(0, room).find_last_of(",");
    std::size_t end = room;
    if (blank != std::string_view::npos && blank > room / 3) {
      end = blank;
    } else if (comma != std::string_view::npos && comma > 0) {
      end = comma + 1;
    } else if (blank != std::string_view::npos && blank > 0) {
      end = blank;
    }
    lines.emplace_back(trim(text.substr(0, end)));
    text = text.substr(end);
    while (!text.empty() && text.front() == ' ') text.remove_prefix(1);
  }
  if (!text.empty() || lines.empty()) lines.emplace_back(text);
  for (std::string& line : lines) std::replace(line.begin(), line.end(), kGlue, ' ');
  return lines;
}

struct Strokes {
  std::string_view fork, corner, bar, blank;
};

constexpr Strokes kPlain{"|- ", "`- ", "|  ", "   "};
constexpr Strokes kBox{"├─ ", "└─ ", "│  ", "   "};

/// The prefix of a line, its left part left out where it would take more than half of the width.
std::string_view fitting(std::string_view prefix, std::size_t width) {
  const std::size_t columns = columns_of(prefix);
  return columns <= width / 2 ? prefix : prefix.substr(bytes_of(prefix, columns - width / 2));
}

void print(const std::vector<Branch>& branches, const std::string& prefix, const Strokes& strokes,
           std::size_t width, std::string& out) {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const bool last = i + 1 == branches.size();
    const Branch& branch = branches[i];
    const std::string first = prefix + std::string(last ? strokes.corner : strokes.fork);
    const std::string next = prefix + std::string(last ? strokes.blank : strokes.bar);
    const std::string below =
        next + std::string(branch.branches.empty() ? strokes.blank : strokes.bar);
    std::string_view lead = fitting(first, width);
    const std::string_view later = fitting(below, width);
    const std::size_t room = width - std::max(columns_of(lead), columns_of(later));
    for (const std::string& line : wrap(branch.text, room)) {
      out += fmt::format("{}{}\n", lead, line);
      lead = later;
    }
    print(branch.branches, next, strokes, width, out);
  }
}

std::string near_text(int numa, const CpuSet& pus) {
  if (!pus.empty()) return fmt::format(", near CPUs {}", pus.to_list());
  return numa < 0 ? "" : fmt::format(", near NUMA node {}", numa);
}

std::string device_text(const Device& device) {
  std::string text = sized(glued(fmt::format("device {}", device.index)), device.memory_bytes);
  text += " " + render::printable(device.model.empty() ? device.vendor : device.model);
  if (device.subdevices > 0) text += fmt::format(", {}", counted(device.subdevices, "sub-device"));
  if (!device.partition.empty()) text += ", " + render::printable(device.partition);
  if (!device.instances.empty())
    text += fmt::format(", {}", counted(static_cast<long>(device.instances.size()), "instance"));
  if (!device.pci.empty()) text += ", PCI " + render::printable(device.pci);
  return text + near_text(device.numa, device.pus);
}

std::string nic_text(const Nic& nic) {
  std::string text = "interface " + render::printable(nic.name.empty() ? nic.fabric : nic.name);
  if (!nic.name.empty() && !nic.fabric.empty())
    text += fmt::format(" ({})", render::printable(nic.fabric));
  if (nic.state == "down") text += ", DOWN";
  if (!nic.kind.empty() && nic.kind != "ethernet") text += ", " + render::printable(nic.kind);
  if (nic.speed_mbps > 0) text += fmt::format(", {} Gbit/s", nic.speed_mbps / 1000.0);
  if (!nic.provider.empty()) text += ", libfabric " + render::printable(nic.provider);
  if (!nic.pci.empty()) text += ", PCI " + render::printable(nic.pci);
  return text + near_text(nic.numa, nic.pus);
}

}  // namespace

std::string topology_tree(const Topology& topology, const Style& style) {
  const auto width = static_cast<std::size_t>(std::max(style.width, kMinWidth));
  std::string out;
  for (const std::string& line : wrap(summary(topology), width)) out += line + "\n";
  Part root = parts_of(topology);
  std::vector<Branch> branches = branches_below(root, topology);
  for (const NumaNode& node : topology.numa_nodes) {
    if (!node.pus.empty()) continue;
    const std::string label = glued(fmt::format("NUMA node {}", node.os_index));
    branches.push_back({sized(label, node.memory_bytes) + ", near no CPU", {}});
  }
  for (const Device& device : topology.devices) branches.push_back({device_text(device), {}});
  for (const Nic& nic : topology.nics) branches.push_back({nic_text(nic), {}});
  print(branches, "", style.unicode ? kBox : kPlain, width, out);
  return out;
}

}  // namespace hpclaunch
