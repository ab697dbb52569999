// The node drawn: what is near to what.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "authoring/command.h"
#include "authoring/markdown.h"
#include "authoring/page.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli::page {

namespace {

// Columns, where every character has one.
std::size_t width(const std::string& text) {
  return static_cast<std::size_t>(std::count_if(text.begin(), text.end(), [](char c) {
    return (static_cast<unsigned char>(c) & 0xC0u) != 0x80u;
  }));
}

std::string repeated(std::string_view piece, std::size_t times) {
  std::string out;
  for (std::size_t i = 0; i < times; ++i) out += piece;
  return out;
}

std::string box(const std::string& title, const std::vector<std::string>& lines) {
  constexpr std::size_t kLeast = 60;
  std::size_t inner = std::max(kLeast, width(title) + 2);
  for (const std::string& line : lines) inner = std::max(inner, width(line));
  std::string out = fmt::format("┌ {} {}┐\n", title, repeated("─", inner - width(title)));
  for (const std::string& line : lines)
    out += fmt::format("│ {}{} │\n", line, repeated(" ", inner - width(line)));
  return out + fmt::format("└{}┘\n", repeated("─", inner + 2));
}

/// Draws one node model.
class Drawing {
 public:
  explicit Drawing(const NodeModel& model) : model_(model), node_(model.topology) {}

  std::string str() {
    std::string out;
    for (const Package& package : node_.packages) out += draw(package);
    const std::string rest = unplaced();
    return rest.empty() ? out : out + rest;
  }

 private:
  // "cores 0-7": numbers as a profile counts them.
  std::string cores(const CpuSet& pus) const {
    CpuSet numbers;
    for (std::size_t c = 0; c < node_.cores.size(); ++c)
      if (node_.cores[c].pus.intersects(pus)) numbers.add(static_cast<int>(c));
    return fmt::format("{} {}", numbers.count() == 1 ? "core" : "cores", numbers.to_list());
  }

  std::string device(const Device& one) {
    drawn_devices_.push_back(one.index);
    std::string out = fmt::format("GPU {}", one.index);
    if (one.subdevices > 0) {
      std::vector<std::string> parts;
      parts.reserve(static_cast<std::size_t>(one.subdevices));
      for (int part = 0; part < one.subdevices; ++part)
        parts.push_back(fmt::format("{}.{}", one.index, part));
      out += fmt::format(" ({})", fmt::join(parts, " "));
    }
    return one.pci.empty() ? out : out + " at " + one.pci;
  }

  static std::string nic(const Nic& one) {
    if (one.name.empty()) return one.fabric;
    return one.fabric.empty() ? one.name : fmt::format("{} ({})", one.name, one.fabric);
  }

  // "NIC hsn0 (cxi0), ...", "" for none.
  template <class Wanted>
  std::string nics_where(Wanted wanted) const {
    std::vector<std::string> names;
    for (const Nic& one : node_.nics)
      if (wanted(one)) names.push_back(nic(one));
    return names.empty() ? "" : fmt::format("NIC {}", fmt::join(names, ", "));
  }

  // On a package, and on no single NUMA node of it.
  static bool is_on(const Package& package, const Nic& nic) {
    return !nic.pus.empty() && package.pus.contains(nic.pus);
  }

  // What is kept from these cores, "" for nothing.
  std::string kept(const CpuSet& pus) const {
    std::string out;
    const CpuSet reserved = model_.reserved & pus;
    if (!reserved.empty()) out = cores(reserved) + " reserved";
    for (const ServiceCores& service : model_.services) {
      const CpuSet used = service.pus & pus;
      if (!used.empty())
        out += fmt::format("{}{} for {}", out.empty() ? "" : "; ", cores(used), service.name);
    }
    return out;
  }

  std::vector<std::string> devices_near(const CpuSet& pus) {
    std::vector<std::string> out;
    for (const Device& one : node_.devices)
      if (!one.pus.empty() && pus.contains(one.pus) && !is_drawn(one.index))
        out.push_back(device(one));
    return out;
  }

  bool is_drawn(int index) const {
    return std::find(drawn_devices_.begin(), drawn_devices_.end(), index) != drawn_devices_.end();
  }

  std::vector<const Cache*> third_level(const CpuSet& pus) const {
    std::vector<const Cache*> out;
    for (const Cache& cache : node_.caches)
      if (cache.level == 3 && pus.contains(cache.pus)) out.push_back(&cache);
    return out;
  }

  // Columns: cores, CPUs, what is kept, what is near.
  void regions(const std::vector<const Cache*>& caches, std::vector<std::string>& lines) {
    std::vector<std::vector<std::string>> rows;
    rows.reserve(caches.size());
    for (const Cache* cache : caches)
      rows.push_back({"L3", cores(cache->pus), "CPUs " + cache->pus.to_list(), kept(cache->pus),
                      fmt::format("{}", fmt::join(devices_near(cache->pus), ", "))});
    std::vector<std::size_t> widths(rows.front().size());
    for (const auto& row : rows)
      for (std::size_t c = 0; c < row.size(); ++c) widths[c] = std::max(widths[c], width(row[c]));
    for (const auto& row : rows) {
      std::string line;
      for (std::size_t c = 0; c < row.size(); ++c)
        if (widths[c] > 0)
          line += fmt::format("  {}{}", row[c], repeated(" ", widths[c] - width(row[c])));
      lines.push_back(line.substr(0, line.find_last_not_of(' ') + 1));
    }
  }

  std::string memory_line(const NumaNode& numa) const {
    std::string line = fmt::format("NUMA node {}", numa.os_index);
    if (numa.memory_bytes > 0) line += fmt::format(", {}", human_bytes(numa.memory_bytes));
    for (const NumaNode& other : node_.numa_nodes)
      if (other.os_index != numa.os_index && !other.pus.empty() && !has_cores(other) &&
          numa.pus.contains(other.pus))
        line += fmt::format("; NUMA node {}, {}, memory only", other.os_index,
                            human_bytes(other.memory_bytes));
    return line;
  }

  bool has_cores(const NumaNode& numa) const {
    return std::any_of(node_.cores.begin(), node_.cores.end(),
                       [&](const Core& core) { return core.numa == numa.os_index; });
  }

  void draw(const NumaNode& numa, std::vector<std::string>& lines) {
    lines.push_back(memory_line(numa));
    const std::vector<const Cache*> caches = third_level(numa.pus);
    if (caches.size() > 1) {
      regions(caches, lines);
    } else {
      lines.push_back(fmt::format("  {}, CPUs {}", cores(numa.pus), numa.pus.to_list()));
      if (const std::string text = kept(numa.pus); !text.empty()) lines.push_back("  " + text);
    }
    for (const std::string& one : devices_near(numa.pus)) lines.push_back("  " + one);
    if (const std::string nics =
            nics_where([&](const Nic& one) { return one.numa == numa.os_index; });
        !nics.empty())
      lines.push_back("  " + nics);
  }

  std::string draw(const Package& package) {
    std::vector<std::string> lines;
    for (const NumaNode& numa : node_.numa_nodes)
      if (has_cores(numa) && package.pus.contains(numa.pus)) draw(numa, lines);
    for (const std::string& one : devices_near(package.pus)) lines.push_back(one);
    if (const std::string nics = nics_where([&](const Nic& one) { return is_on(package, one); });
        !nics.empty())
      lines.push_back(nics);
    const std::string title = package.model.empty()
                                  ? fmt::format("package {}", package.os_index)
                                  : fmt::format("package {}: {}", package.os_index, package.model);
    return box(title, lines);
  }

  // Devices, interfaces and memory that nobody says a place of.
  std::string unplaced() {
    std::vector<std::string> lines;
    for (const NumaNode& numa : node_.numa_nodes)
      if (numa.pus.empty())
        lines.push_back(fmt::format("NUMA node {}, {}, memory only", numa.os_index,
                                    human_bytes(numa.memory_bytes)));
    for (const Device& one : node_.devices)
      if (!is_drawn(one.index)) lines.push_back(device(one));
    const std::string nics = nics_where([&](const Nic& one) {
      return one.numa < 0 &&
             std::none_of(node_.packages.begin(), node_.packages.end(),
                          [&](const Package& package) { return is_on(package, one); });
    });
    if (!nics.empty()) lines.push_back(nics);
    return lines.empty() ? "" : box("place not published", lines);
  }

  const NodeModel& model_;
  const Topology& node_;
  std::vector<int> drawn_devices_;
};

std::string summary(const NodeModel& model) {
  const Topology& node = model.topology;
  std::string text;
  if (model.count > 0) text += grouped(model.count) + " nodes; ";
  const auto add = [&](std::size_t count, std::string_view noun) {
    text += fmt::format("{}, ", counted(static_cast<long>(count), noun));
  };
  add(node.packages.size(), "package");
  add(node.numa_nodes.size(), "NUMA node");
  add(node.cores.size(), "core");
  text += counted(node.all_pus().count(), "CPU");
  if (node.devices.empty()) return text + ".";
  const Device& first = node.devices.front();
  text += fmt::format(", {}", counted(static_cast<long>(node.devices.size()), "GPU"));
  std::vector<std::string> more;
  if (!first.model.empty()) more.push_back(markdown::text(first.model));
  if (first.memory_bytes > 0) more.push_back(human_bytes(first.memory_bytes));
  if (first.subdevices > 0) more.push_back(counted(first.subdevices, "part") + " each");
  return more.empty() ? text + "." : fmt::format("{} ({}).", text, fmt::join(more, ", "));
}

std::string sentence(const std::string& text) {
  return text.empty() ? "" : fmt::format(" {}.", markdown::text(text));
}

std::string node(const NodeModel& model) {
  std::string text = summary(model);
  if (!model.doc.empty()) text += sentence(model.doc);
  if (!model.when.empty()) text += fmt::format(" Taken when: {}.", when(model.when));
  if (model.live)
    text +=
        " Where things lie is not published: inside a job hpclaunch asks the node itself, and this "
        "model serves for planning elsewhere.";
  text += sentence(model.origin.why);
  std::string out =
      markdown::paragraph(fmt::format("{} Source: {}.", text, origin(model.name, model.origin)));
  out += "\n" + markdown::block("text", Drawing(model).str());
  std::string list;
  if (!model.reserved_why.empty())
    list += markdown::paragraph("- Reserved: " + markdown::text(model.reserved_why), "  ");
  for (const ServiceCores& service : model.services)
    list += markdown::paragraph(
        fmt::format("- {}: {}", markdown::text(service.name), markdown::text(service.why)), "  ");
  return list.empty() ? out : fmt::format("{}\n{}", out, list);
}

}  // namespace

std::string nodes(const Profile& profile) {
  if (profile.nodes.empty()) return "";
  if (profile.nodes.size() == 1) return "## The node\n\n" + node(profile.nodes.front());
  std::string out = "## The nodes\n\n";
  out += markdown::paragraph("The first is the default; `--node-type NAME` asks for another.");
  for (const NodeModel& model : profile.nodes)
    out += fmt::format("\n### {}\n\n{}", markdown::code(model.name), node(model));
  return out;
}

}  // namespace hpclaunch::cli::page
