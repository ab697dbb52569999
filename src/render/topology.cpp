// The machine as a text tree, for `hpclaunch topo`.
#include <fmt/format.h>

#include <algorithm>
#include <span>
#include <string>
#include <vector>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"
#include "render/regions.h"
#include "render/subject.h"
#include "render/text.h"

namespace hpclaunch {
namespace {

using namespace render;

/// A line of the tree and the lines below it.
struct Branch {
  std::string text;
  std::vector<Branch> branches;
};

constexpr int kMinWidth = 24;           ///< for narrower styles too
constexpr std::size_t kMaxListed = 80;  ///< bytes; longer CPU lists of alike caches are cut

std::string glued(std::string text) {
  std::replace(text.begin(), text.end(), ' ', kGlue);
  return text;
}

// ---- lines -----------------------------------------------------------------------------------------

std::string forbidden(const CpuSet& pus, const CpuSet& allowed) {
  if (allowed.contains(pus)) return "";
  return allowed.intersects(pus) ? fmt::format("; not allowed: {}", (pus - allowed).to_list())
                                 : "; none allowed";
}

/// Lines of the regions of one machine.
class Lines {
 public:
  explicit Lines(const Topology& topology) : topology_(topology), regions_(regions_of(topology)) {}

  std::vector<Branch> all() const {
    const Region& root = regions_.all.front();
    if (label(root).empty()) return below(root);
    return {branch_of(root)};
  }

 private:
  using Cores = std::span<const int>;
  const CpuSet& pus(int core) const { return topology_.cores[static_cast<std::size_t>(core)].pus; }

  /// "package 0 (model) + NUMA node 0 512 GiB + L3 105 MiB"
  std::string label(const Region& region) const {
    std::string text;
    const auto add = [&](const std::string& name) {
      text += (text.empty() ? "" : " + ") + glued(name);
    };
    for (const int at : region.packages) {
      const Package& package = topology_.packages[static_cast<std::size_t>(at)];
      add(package_text(package));
      if (!package.model.empty()) text += " (" + printable(package.model) + ")";
    }
    for (const int at : region.numa_nodes)
      add(numa_text(topology_.numa_nodes[static_cast<std::size_t>(at)]));
    for (const int at : region.caches)
      add(cache_text(topology_.caches[static_cast<std::size_t>(at)]));
    return text;
  }

  /// How many of the first cores have as many PUs as the first one.
  std::size_t even(Cores cores) const {
    const auto other = std::ranges::find_if(
        cores, [&](int core) { return pus(core).count() != pus(cores.front()).count(); });
    return static_cast<std::size_t>(other - cores.begin());
  }

  /// "52 cores of 2 PUs"; `cores` have as many PUs.
  std::string counted_cores(Cores cores) const {
    const std::string text = counted(cores.size(), "core");
    const int each = pus(cores.front()).count();
    return each > 1 ? fmt::format("{} of {} PUs", text, each) : text;
  }

  /// "52 cores of 2 PUs: 0-51,104-155 (first core 0,104)"
  std::string cores_text(Cores cores) const {
    CpuSet all;
    for (const int core : cores) all |= pus(core);
    const CpuSet& first = pus(cores.front());
    std::string text = counted_cores(cores) + ": " + all.to_list();
    if (first.count() > 1 && cores.size() > 1)
      text += " " + glued(fmt::format("(first core {})", first.to_list()));
    return text + forbidden(all, topology_.allowed);
  }

  /// Whether two caches differ only in which cores share them. A package or a NUMA node has a number and
  /// keeps its own line.
  bool alike(const Region& a, const Region& b) const {
    const auto plain = [&](const Region& one) {
      return one.packages.empty() && one.numa_nodes.empty() && one.inner.empty() &&
             !one.cores.empty() && even(one.cores) == one.cores.size();
    };
    return plain(a) && plain(b) && label(a) == label(b) &&
           counted_cores(a.cores) == counted_cores(b.cores);
  }

  /// "8 x L3 32 MiB, each 8 cores of 2 PUs: 0-7,64-71 | 8-15,72-79 | ..."
  std::string run_text(std::span<const Region* const> run) const {
    CpuSet all;
    std::vector<std::string> lists;
    for (const Region* region : run) {
      all |= region->pus;
      lists.push_back(region->pus.to_list());
    }
    std::string listed = joined(lists, " | ");
    if (listed.size() > kMaxListed)
      listed = fmt::format("{} (first {}, second {})", all.to_list(), lists[0], lists[1]);
    return fmt::format("{} x {}, each {}: {}{}", run.size(), label(*run.front()),
                       counted_cores(run.front()->cores), listed,
                       forbidden(all, topology_.allowed));
  }

  /// The lines below a region: its inner regions by position, alike ones in one line, then its own cores, those with
  /// as many PUs in one line.
  std::vector<Branch> below(const Region& region) const {
    std::vector<const Region*> inner;
    for (const int at : region.inner) inner.push_back(&regions_.all[static_cast<std::size_t>(at)]);
    std::vector<Branch> out;
    for (auto first = inner.begin(); first != inner.end();) {
      const auto end = std::find_if(first + 1, inner.end(),
                                    [&](const Region* one) { return !alike(**first, *one); });
      if (end - first == 1)
        out.push_back(branch_of(**first));
      else
        out.push_back({run_text({first, end}), {}});
      first = end;
    }
    for (Cores cores = region.cores; !cores.empty(); cores = cores.subspan(even(cores)))
      out.push_back({cores_text(cores.first(even(cores))), {}});
    return out;
  }

  Branch branch_of(const Region& region) const {
    Branch branch{label(region), below(region)};
    if (branch.branches.size() == 1 && region.inner.empty()) {
      branch.text += ": " + branch.branches.front().text;
      branch.branches.clear();
    }
    return branch;
  }

  const Topology& topology_;
  Regions regions_;
};

std::string summary(const Topology& topology) {
  std::uint64_t bytes = 0;
  for (const NumaNode& node : topology.numa_nodes) bytes += node.memory_bytes;
  const int all = topology.all_pus().count();
  const int allowed = topology.allowed.count();
  const std::string name = topology.hostname.empty() ? "machine" : printable(topology.hostname);
  std::string text = name + ": " +
                     counts({{topology.packages.size(), "package"},
                             {topology.numa_nodes.size(), "NUMA node"},
                             {topology.cores.size(), "core"},
                             {static_cast<std::size_t>(all), "PU"}});
  if (allowed < all) text += fmt::format(" ({} allowed)", allowed);
  if (bytes > 0) text += ", " + glued(human_bytes(bytes));
  return text;
}

// ---- printing --------------------------------------------------------------------------------------

struct Branches {
  std::string_view fork, corner, bar, blank;
};

constexpr Branches kAsciiBranches{"|- ", "`- ", "|  ", "   "};
constexpr Branches kBranches{"├─ ", "└─ ", "│  ", "   "};

/// The prefix of a line, its left part omitted where it would take more than half of the width.
std::string_view fitting(std::string_view prefix, int width) {
  const int excess = columns(prefix) - width / 2;
  return excess <= 0 ? prefix : prefix.substr(prefix_bytes(prefix, excess));
}

void print(const std::vector<Branch>& branches, const std::string& prefix, const Branches& strokes,
           int width, std::string& out) {
  for (std::size_t i = 0; i < branches.size(); ++i) {
    const bool last = i + 1 == branches.size();
    const Branch& branch = branches[i];
    const std::string first = prefix + std::string(last ? strokes.corner : strokes.fork);
    const std::string next = prefix + std::string(last ? strokes.blank : strokes.bar);
    const std::string below =
        next + std::string(branch.branches.empty() ? strokes.blank : strokes.bar);
    std::string_view lead = fitting(first, width);
    const std::string_view later = fitting(below, width);
    const int room = width - std::max(columns(lead), columns(later));
    for (const std::string& line : flow(branch.text, room)) {
      out += fmt::format("{}{}\n", lead, line);
      lead = later;
    }
    print(branch.branches, next, strokes, width, out);
  }
}

}  // namespace

std::string topology_tree(const Topology& topology, const Style& style) {
  const int width = std::max(style.width, kMinWidth);
  std::string out;
  for (const std::string& line : flow(summary(topology), width)) out += line + "\n";
  std::vector<Branch> branches = Lines(topology).all();
  for (const NumaNode& node : topology.numa_nodes) {
    if (!node.pus.empty()) continue;
    branches.push_back({glued(numa_text(node)) + ", without CPUs", {}});
  }
  for (const Device& device : topology.devices) branches.push_back({device_words(device), {}});
  for (const Nic& nic : topology.nics) branches.push_back({nic_words(nic), {}});
  print(branches, "", style.unicode ? kBranches : kAsciiBranches, width, out);
  return out;
}

}  // namespace hpclaunch
