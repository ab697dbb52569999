// The plan as a table. Long values and long words of the command are cut and marked; `explain` and
// `run --dry-run` print them in full.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/render.h"
#include "hpclaunch/text.h"
#include "ranks.h"
#include "text.h"

namespace hpclaunch {

namespace {

using namespace render;

std::string words(const std::vector<std::string>& argv) {
  std::string line;
  for (const std::string& word : argv)
    line += (line.empty() ? "" : " ") + printable(quote_sh(word));
  return line;
}

std::string binding_text(const Plan& plan) {
  if (plan.bind_via == BindVia::none) return "none";
  return fmt::format("by the {}, {}", plan.bind_via == BindVia::shim ? "shim" : "launcher",
                     plan.verify == Verify::off
                         ? "not checked"
                         : fmt::format("checked at each rank (verify {})", to_string(plan.verify)));
}

std::string ranks_text(const Plan& plan) {
  if (plan.nodes() == 1) return fmt::format("{} on 1 node", plan.world_size());
  std::vector<std::size_t> sizes;
  for (const NodeRun& run : plan.layout) {
    const std::size_t size = plan.classes[static_cast<std::size_t>(run.node_class)].ranks.size();
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }
  return fmt::format("{} on {} nodes, {} per node", plan.world_size(), plan.nodes(),
                     fmt::join(sizes, " or "));
}

/// "2 packages, 4 NUMA nodes, 64 cores, 128 CPUs; 60 of 62 available cores used"; "" without a node.
std::string machine_text(const Plan& plan, const Topology& node) {
  if (node.cores.empty()) return "";
  std::string text = counts({{node.packages.size(), "package"},
                             {node.numa_nodes.size(), "NUMA node"},
                             {node.cores.size(), "core"},
                             {static_cast<std::size_t>(node.all_pus().count()), "CPU"}});
  CpuSet used;
  for (const NodeClass& one : plan.classes)
    for (const RankPlan& rank : one.ranks) used |= rank.cpus;
  if (used.empty() || plan.classes.size() > 1) return text;
  long allowed = 0;
  long busy = 0;
  for (const Core& core : node.cores) {
    allowed += core.pus.intersects(node.allowed) ? 1 : 0;
    busy += core.pus.intersects(used) ? 1 : 0;
  }
  return text + fmt::format("; {} of {} available {} used", busy, allowed,
                            allowed == 1 ? "core" : "cores");
}

std::string choice_text(const Plan& plan, const char* name) {
  const Setting* setting = plan.find_choice(name);
  const auto* text = setting == nullptr ? nullptr : std::get_if<std::string>(&setting->value());
  return text == nullptr ? "" : *text;
}

/// "example, stack 2025"; "" without a profile.
std::string site_text(const Plan& plan) {
  const std::string profile = choice_text(plan, "profile");
  if (profile.empty() || profile == "none") return "";
  const std::string stack = choice_text(plan, "stack");
  return stack.empty() ? profile : fmt::format("{}, stack {}", profile, stack);
}

std::string devices_text(const Plan& plan) {
  if (plan.gpu_view.empty()) return "";
  const std::string mode = choice_text(plan, "device-mode");
  const std::string_view sees = plan.gpu_view == "all"   ? "each rank sees all devices"
                                : plan.gpu_view == "own" ? "each rank sees only its own"
                                                         : "GPU visibility set by the launcher";
  const std::size_t each = 1 + plan.classes.front().ranks.front().more_units.size();
  if (mode.empty() && each > 1) return fmt::format("{} per rank, {}", each, sees);
  if (each > 1) return fmt::format("{} per rank, each a {}, {}", each, mode, sees);
  return mode.empty() ? std::string(sees) : fmt::format("one {} per rank, {}", mode, sees);
}

std::string header(const Plan& plan, const Topology& node, const Style& style) {
  constexpr int kLabel = 10;
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    if (value.empty()) return;
    text += hanging(tinted(pad_right(label, kLabel), Tone::strong, style),
                    wrap(value, style.width - kLabel, ' '), kLabel);
  };
  const std::string program = plan.command.empty() ? "(none)" : words(plan.command);
  line("program", shorten(program, style.width - kLabel, style));
  line("ranks", ranks_text(plan));
  line("hosts", host_list(plan.hosts, style.width - kLabel, style));
  line("site", printable(site_text(plan)));
  line("devices", printable(devices_text(plan)));
  line("job needs", printable(fmt::format("{}", fmt::join(plan.batch, " "))));
  line("core file", plan.core_limit == "0" ? "none" : printable(plan.core_limit));
  for (const std::string& directory : plan.make_dirs) line("makes", printable(directory));
  line("launcher", printable(plan.launcher));
  line("binding", binding_text(plan));
  line("node", machine_text(plan, node));
  return text;
}

struct EnvWidths {
  int name = 0;
  int value = 0;
  int layer = 0;
  int why = 0;  ///< 0: no room beside the other columns, so it goes below
};

EnvWidths env_widths(const Plan& plan, const Style& style) {
  EnvWidths widths;
  int value = 0;
  for (const Setting& setting : plan.env) {
    const Decision& last = setting.history.back();
    widths.name = std::max(widths.name, columns(printable(setting.name)));
    value = std::max(value, columns(shown_value(setting.name, last)));
    widths.layer = std::max(widths.layer, columns(to_string(last.layer)));
  }
  widths.name = std::min(widths.name, std::max(style.width / 3, 12));
  widths.value = std::min(value, std::max(style.width / 4, 22));
  const int rest = style.width - 2 - widths.name - 2 - widths.value - 2 - widths.layer - 2;
  widths.why = rest >= 24 ? rest : 0;
  return widths;
}

/// A value in `width` columns; a list of items that is too long keeps its first one and its length.
std::string short_value(const std::string& name, const Decision& decision, int width,
                        const Style& style) {
  const std::string whole = shown_value(name, decision);
  const auto* items = std::get_if<PerRank>(&decision.value);
  if (items != nullptr && columns(whole) > width) {
    long count = 0;
    for (const std::vector<std::string>& one : items->items) count += static_cast<long>(one.size());
    const std::string first = whole.substr(0, whole.find(" / "));
    std::string text =
        fmt::format("{} / {} ({})", first, style.unicode ? "…" : "...", counted(count, "item"));
    if (columns(text) <= width) return text;
  }
  return shorten(whole, width, style);
}

std::string env_row(const Setting& setting, const EnvWidths& widths, const Style& style) {
  const Decision& last = setting.history.back();
  const std::string name = printable(setting.name);
  const bool long_name = columns(name) > widths.name;
  std::string text = long_name ? "  " + shorten(name, style.width - 2, style) + "\n" : "";
  text += "  " + pad_right(long_name ? "" : name, widths.name) + "  ";
  const std::string value = short_value(setting.name, last, widths.value, style);
  text += pad_right(value, widths.value) + "  ";
  if (last.why.empty()) return text + std::string(to_string(last.layer)) + "\n";
  const std::string why = printable(last.why);
  constexpr int kBelow = 6;
  const bool below = widths.why == 0;
  const int indent = below ? kBelow : style.width - widths.why;
  const int room = below ? std::max(style.width - kBelow, 20) : widths.why;
  const std::string lead =
      below ? std::string(to_string(last.layer)) + "\n" + std::string(kBelow, ' ')
            : pad_right(to_string(last.layer), widths.layer) + "  ";
  return text + hanging(lead, tinted(wrap(why, room, ' '), Tone::faint, style), indent);
}

std::string environment(const Plan& plan, const Style& style) {
  if (plan.env.empty()) return "";
  std::string text = "\n" + tinted("environment", Tone::strong, style) + "\n";
  const EnvWidths widths = env_widths(plan, style);
  for (const Setting& setting : plan.env) text += env_row(setting, widths, style);
  return text;
}

std::string command(const std::vector<std::string>& argv, const Style& style) {
  if (argv.empty()) return "";
  std::string text = "\n" + tinted("command", Tone::strong, style) + "\n";
  std::string indent = "  ";
  for (const std::vector<std::string>& group : argument_groups(argv)) {
    const int room = style.width - static_cast<int>(indent.size());
    text += indent + shorten(words(group), room, style) + "\n";
    indent = "    ";
  }
  return text;
}

}  // namespace

std::string plan_table(const Plan& plan, const Topology& topology,
                       const std::vector<std::string>& argv, const Style& style) {
  return header(plan, topology, style) + rank_tables(plan, topology, style) +
         environment(plan, style) + command(argv.empty() ? plan.command : argv, style);
}

}  // namespace hpclaunch
