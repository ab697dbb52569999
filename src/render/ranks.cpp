#include "ranks.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"
#include "text.h"

namespace hpclaunch::render {

namespace {

/// One kind of node: the ranks on one of them, and all the nodes of that kind.
struct Kind {
  const NodeClass* node = nullptr;
  HostNames hosts;
  std::vector<int> first_ranks;  ///< global rank of local rank 0, one per host
};

/// The kinds in the order in which the plan has them; classes that are laid out alike are one.
std::vector<Kind> kinds(const Plan& plan) {
  std::vector<Kind> out;
  int rank = 0;
  std::size_t host = 0;
  for (const NodeRun& run : plan.placement.layout) {
    const NodeClass& node = plan.placement.classes[run.node_class];
    auto kind =
        std::find_if(out.begin(), out.end(), [&](const Kind& k) { return *k.node == node; });
    if (kind == out.end()) kind = out.insert(out.end(), Kind{&node, {}, {}});
    for (int i = 0; i < run.nodes; ++i, ++host) {
      if (host < plan.hosts.names.size()) kind->hosts.push_back(plan.hosts.names[host]);
      kind->first_ranks.push_back(rank);
      rank += static_cast<int>(node.ranks.size());
    }
  }
  return out;
}

/// The NUMA nodes or packages that the rank's CPUs lie on; "-" when unknown.
template <class Part>
std::string part_text(const RankPlan& rank, int planned, const std::vector<Part>& parts) {
  if (planned >= 0) return fmt::format("{}", planned);
  CpuSet touched;
  for (const Part& part : parts)
    if (part.os_index >= 0 && part.os_index < CpuSet::kCapacity && part.pus.intersects(rank.cpus))
      touched.add(part.os_index);
  return touched.empty() ? "-" : touched.to_list();
}

std::string device_text(const RankPlan& rank) {
  if (rank.device() < 0) return "-";
  std::string text;
  for (const Slot& unit : rank.slots)
    text += (text.empty() ? "" : ",") + (unit.device < 0 ? "-" : unit_name(unit.device, unit.part));
  return text;
}

std::string nic_text(const RankPlan& rank, const Topology& node) {
  if (rank.nic < 0 || rank.nic >= static_cast<int>(node.nics.size())) return "-";
  const Nic& nic = node.nics[rank.nic];
  return printable(!nic.fabric.empty() ? nic.fabric : !nic.name.empty() ? nic.name : nic.pci);
}

std::string cpu_lines(const RankPlan& rank, const NodeClass& node, int indent, const Style& style) {
  const CpuSet& cpus = rank.cpus;
  if (cpus.empty() && rank.part_first >= 0) {
    const std::string last =
        rank.part_first == rank.part_last ? "" : fmt::format("-{}", rank.part_last);
    const bool cores = node.granted_cores < node.granted;
    return fmt::format("{}{} of the {} granted{}\n", rank.part_first, last, node.granted_cores,
                       cores ? " cores" : "");
  }
  if (cpus.empty()) return "not bound\n";
  return hanging("", wrap(cpus.to_list(), std::max(style.width - indent, 12), ','), indent);
}

/// Without the columns that have an entry for no rank.
std::string table(const Kind& kind, const Topology& node, const Style& style) {
  const std::vector<RankPlan>& all = kind.node->ranks;
  std::vector<std::string> lines(all.size() + 1, "  ");
  const auto column = [&](std::string_view head, auto cell_of) {
    std::vector<std::string> cells = {std::string(head)};
    for (std::size_t r = 0; r < all.size(); ++r)
      cells.push_back(cell_of(static_cast<int>(r), all[r]));
    int width = 0;
    for (const std::string& cell : cells) width = std::max(width, columns(cell));
    for (std::size_t r = 0; r < cells.size(); ++r) lines[r] += pad_left(cells[r], width) + "  ";
  };
  const auto uses = [&](auto member) {
    return std::ranges::any_of(
        all, [](int number) { return number >= 0; }, member);
  };
  column("local", [](int r, const RankPlan&) { return fmt::format("{}", r); });
  column("ranks", [&](int r, const RankPlan&) {
    std::vector<int> ranks = kind.first_ranks;
    for (int& number : ranks) number += r;
    return number_list(ranks, style);
  });
  if (uses(&RankPlan::device))
    column("device", [](int, const RankPlan& rank) { return device_text(rank); });
  if (!node.nics.empty() && uses(&RankPlan::nic))
    column("NIC", [&](int, const RankPlan& rank) { return nic_text(rank, node); });
  column("package",
         [&](int, const RankPlan& rank) { return part_text(rank, rank.package, node.packages); });
  column("NUMA",
         [&](int, const RankPlan& rank) { return part_text(rank, rank.numa, node.numa_nodes); });
  column("cores", [](int, const RankPlan& rank) { return fmt::format("{}", rank.cores); });
  std::string text = tinted(lines[0] + "CPUs", Tone::strong, style) + "\n";
  for (std::size_t r = 0; r < all.size(); ++r)
    text += lines[r + 1] + cpu_lines(all[r], *kind.node, columns(lines[0]), style);
  return text;
}

/// "2 nodes: a, b; ... local rank 0 = global ranks 0, 12" for the head of a picture.
std::string kind_title(const Kind& kind, const Plan& plan) {
  constexpr int kHostColumns = 90;
  const Style style{true, false, kHostColumns};
  const std::string hosts = host_list(kind.hosts, kHostColumns);
  std::string text = counted(kind.hosts.size(), "node") + ": " + hosts;
  if (plan.nodes() > 1)
    text += fmt::format("; numbers are local ranks; local rank 0 = global {} {}",
                        kind.first_ranks.size() == 1 ? "rank" : "ranks",
                        number_list(kind.first_ranks, style, ", "));
  return text;
}

}  // namespace

std::string plan_title(const Plan& plan) {
  if (plan.hosts.own >= 0)
    return fmt::format("{} of {} on node {} of {}", plan.own_ranks().second,
                       counted(plan.world_size(), "rank"), plan.hosts.own, plan.nodes());
  return fmt::format("{} on {}", counted(plan.world_size(), "rank"), counted(plan.nodes(), "node"));
}

std::vector<Subject> subjects_of(const Plan& plan, const Topology& node,
                                 const PictureMarks& marks) {
  std::vector<Subject> subjects;
  for (const Kind& kind : kinds(plan)) {
    subjects.push_back(subject_of(node, *kind.node, marks));
    subjects.back().title = kind_title(kind, plan);
  }
  return subjects;
}

std::string host_list(const HostNames& hosts, int width) {
  return printable(host_ranges(hosts, static_cast<std::size_t>(std::max(width, 0))));
}

std::string number_list(const std::vector<int>& numbers, const Style& style,
                        std::string_view separator) {
  constexpr std::size_t kWhole = 4;
  if (numbers.size() <= kWhole) return fmt::format("{}", fmt::join(numbers, separator));
  bool even = true;
  for (std::size_t i = 2; i < numbers.size(); ++i)
    even = even && numbers[i] - numbers[i - 1] == numbers[1] - numbers[0];
  const std::string text = fmt::format("{}{}{}{}{} {}", numbers[0], separator, numbers[1],
                                       separator, dots(style), numbers.back());
  return even ? text : text + fmt::format(" ({})", counted(numbers.size(), "rank"));
}

std::string rank_tables(const Plan& plan, const Topology& node, const Style& style) {
  std::string text;
  const std::vector<Kind> all = kinds(plan);
  for (const Kind& kind : all) {
    text += "\n";
    if (all.size() > 1) {
      const std::string granted =
          kind.node->granted > 0 ? fmt::format(" on {} granted", counted(kind.node->granted, "CPU"))
                                 : "";
      const std::string title =
          fmt::format("on {}, {} each{}: ", counted(kind.first_ranks.size(), "node"),
                      counted(kind.node->ranks.size(), "rank"), granted);
      text += title + host_list(kind.hosts, style.width - columns(title)) + "\n";
    }
    text += table(kind, node, style);
  }
  return text;
}

}  // namespace hpclaunch::render
