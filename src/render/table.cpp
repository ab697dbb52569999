// The plan as a screen of text. Long values are cut and marked, and without `verbose` long words of the command;
// `explain` and `run --dry-run` print them in full.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/render.h"
#include "hpclaunch/text.h"
#include "ranks.h"
#include "text.h"

namespace hpclaunch {

namespace {

using namespace render;

std::string binding_text(const Plan& plan) {
  if (plan.placement.bind_via == BindVia::none) return "none";
  return fmt::format(
      "by the {}, {}", plan.placement.bind_via == BindVia::shim ? "shim" : "launcher",
      plan.supervision.verify == Verify::off
          ? "not checked"
          : fmt::format("checked at each rank (verify {})", to_string(plan.supervision.verify)));
}

std::string ranks_text(const Plan& plan) {
  if (plan.nodes() == 1) return fmt::format("{} on 1 node", plan.world_size());
  std::vector<std::size_t> sizes;
  for (const NodeRun& run : plan.placement.layout) {
    const std::size_t size = plan.placement.classes[run.node_class].ranks.size();
    if (std::find(sizes.begin(), sizes.end(), size) == sizes.end()) sizes.push_back(size);
  }
  std::string here;
  if (const auto [first, ranks] = plan.own_ranks(); plan.hosts.own >= 0)
    here = fmt::format("; here {}{}: node {} of {}, {}", first,
                       ranks > 1 ? fmt::format("-{}", first + ranks - 1) : "", plan.hosts.own,
                       plan.nodes(), plan.hosts.own_why);
  return fmt::format("{} on {} nodes, {} per node{}", plan.world_size(), plan.nodes(),
                     fmt::join(sizes, " or "), here);
}

/// "2 packages, 4 NUMA nodes, 64 cores, 128 CPUs; 60 of 62 available cores used"; "" without a node.
std::string machine_text(const Plan& plan, const Topology& node, int width) {
  if (node.cores.empty()) return "";
  std::string text = counts({{node.packages.size(), "package"},
                             {node.numa_nodes.size(), "NUMA node"},
                             {node.cores.size(), "core"},
                             {static_cast<std::size_t>(node.all_pus().count()), "CPU"}});
  CpuSet used;
  for (const NodeClass& one : plan.placement.classes)
    for (const RankPlan& rank : one.ranks) used |= rank.cpus;
  if (used.empty() || plan.placement.classes.size() > 1) return text;
  long allowed = 0;
  long busy = 0;
  for (const Core& core : node.cores) {
    allowed += core.pus.intersects(node.allowed) ? 1 : 0;
    busy += core.pus.intersects(used) ? 1 : 0;
  }
  const std::string cores = allowed == 1 ? "core" : "cores";
  const std::string used_text = fmt::format("; {} of {} available {} used", busy, allowed, cores);
  return text + (columns(text + used_text) <= width
                     ? used_text
                     : fmt::format("; {} of {} used", busy, allowed));
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
  const std::string& view = plan.placement.gpu_view;
  if (view.empty()) return "";
  const std::string mode = choice_text(plan, "device-mode");
  const std::string_view sees = view == "all"   ? "each rank sees all devices"
                                : view == "own" ? "each rank sees only its own"
                                                : "GPU visibility set by the launcher";
  const std::size_t each = plan.placement.classes.front().ranks.front().slots.size();
  if (mode.empty() && each > 1) return fmt::format("{} per rank, {}", each, sees);
  if (each > 1) return fmt::format("{} per rank, each a {}, {}", each, mode, sees);
  return mode.empty() ? std::string(sees) : fmt::format("one {} per rank, {}", mode, sees);
}

std::string header(const Plan& plan, const Topology& node, const Style& style, bool verbose) {
  constexpr int kLabel = 10;
  std::string text;
  const auto line = [&](std::string_view label, const std::string& value) {
    if (value.empty()) return;
    text += hanging(tinted(pad_right(label, kLabel), Tone::strong, style),
                    wrap(value, style.width - kLabel, ' '), kLabel);
  };
  const std::string program = plan.launch.command.empty()
                                  ? "(none)"
                                  : printable(quoted_words(without_secrets(plan.launch.command)));
  line("program", shorten(program, style.width - kLabel, style));
  line("ranks", printable(ranks_text(plan)));
  line("hosts", host_list(plan.hosts.names, style.width - kLabel));
  line("site", printable(site_text(plan)));
  line("staging", printable(choice_text(plan, "stage")));
  line("devices", printable(devices_text(plan)));
  line("job needs", printable(joined(plan.launch.batch, " ")));
  line("core file",
       plan.environment.core_limit == "0" ? "none" : printable(plan.environment.core_limit));
  if (verbose) line("makes", printable(joined(plan.environment.make_dirs, " ")));
  line("launcher", printable(plan.launch.launcher));
  line("binding", binding_text(plan));
  line("node", machine_text(plan, node, style.width - kLabel));
  return text;
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
    std::string text = fmt::format("{} / {} ({})", first, dots(style), counted(count, "item"));
    if (columns(text) <= width) return text;
  }
  const bool blanks =
      std::holds_alternative<std::string>(decision.value) && whole.find(' ') != std::string::npos;
  return blanks ? fmt::format("'{}'", shorten(whole, width - 2, style))
                : shorten(whole, width, style);
}

/// Variables that are shown together: of one layer and, unless that is "", with one reason.
struct Group {
  Layer layer;
  std::string why;
  std::vector<std::string> words;  ///< NAME=value
  int hidden = 0;                  ///< words that are not shown
};

constexpr int kIndent = 6;

/// What differs from a plain launch. `verbose`: everything with its reasons, but for the numbers of a
/// rank and a job, whose names explain them.
std::vector<Group> groups_of(const Plan& plan, const Style& style, bool verbose) {
  std::vector<Group> groups;
  for (const Setting& setting : plan.environment.settings) {
    const Decision& last = setting.history.back();
    const bool numbers =
        last.layer == Layer::computed && !std::holds_alternative<PerRank>(last.value);
    if (!verbose && (last.layer == Layer::computed || last.layer == Layer::builtin)) continue;
    const std::string why = verbose && !numbers ? printable(last.why) : "";
    auto group = std::ranges::find_if(
        groups, [&](const Group& one) { return one.layer == last.layer && one.why == why; });
    if (group == groups.end()) group = groups.insert(groups.end(), Group{last.layer, why, {}});
    const int room = style.width - kIndent;
    const std::string name = shorten(printable(setting.name), room / 2, style) + "=";
    group->words.push_back(name + short_value(setting.name, last, room - columns(name), style));
  }
  std::stable_partition(groups.begin(), groups.end(),
                        [](const Group& one) { return !one.why.empty(); });
  return groups;
}

std::string group_text(const Group& group, const Style& style) {
  const std::string layer = std::string(to_string(group.layer)) + ":";
  std::vector<std::string> words = group.words;
  if (group.why.empty()) words.insert(words.begin(), layer);
  if (group.hidden > 0) words.push_back(fmt::format("({} more)", group.hidden));
  const int indent = group.why.empty() ? 4 : 2;
  std::string text = hanging("  ", fill(words, style.width - indent, "  "), indent);
  if (group.why.empty()) return text;
  const auto why = wrap(layer + " " + group.why, style.width - kIndent, ' ');
  return text + hanging(std::string(kIndent, ' '), tinted(why, Tone::faint, style), kIndent);
}

int lines_of(std::string_view text) {
  return static_cast<int>(std::count(text.begin(), text.end(), '\n'));
}

/// Takes the widest word of the groups away that are the profile's; false: each has one.
bool take_widest(std::vector<Group>& groups) {
  Group* from = nullptr;
  std::size_t at = 0;
  for (Group& group : groups) {
    if (group.layer != Layer::profile_default && group.layer != Layer::profile_require) continue;
    for (std::size_t i = 0; group.words.size() > 1 && i < group.words.size(); ++i)
      if (from == nullptr || columns(group.words[i]) >= columns(from->words[at]))
        from = &group, at = i;
  }
  if (from == nullptr) return false;
  from->words.erase(from->words.begin() + static_cast<std::ptrdiff_t>(at));
  ++from->hidden;
  return true;
}

/// At most `most` lines where variables of the profile can be left out for that, the widest first.
std::string environment(const Plan& plan, const Style& style, bool verbose, int most) {
  const std::size_t size = plan.environment.settings.size();
  if (size == 0) return "";
  std::vector<Group> groups = groups_of(plan, style, verbose);
  for (;;) {
    std::string text = "\n" + tinted("environment", Tone::strong, style) +
                       fmt::format("  {}{}\n", counted(size, "variable"),
                                   verbose ? "" : "; -v shows all, with reasons");
    for (const Group& group : groups) text += group_text(group, style);
    if (verbose || lines_of(text) <= most || !take_widest(groups)) return text;
  }
}

/// `verbose`: one option per line, each whole; else the shim and the program, which the head has, by name only.
std::string command(const std::vector<std::string>& argv, const Style& style, bool verbose) {
  constexpr int kContinued = 4;
  if (argv.empty()) return "";
  const int room = style.width - kContinued;
  std::vector<std::string> parts;
  for (const std::vector<std::string>& group : argument_groups(without_secrets(argv))) {
    const std::string part = printable(quoted_words(group));
    if (!verbose && group.front().ends_with("/hpclaunch-shim")) {
      parts.insert(parts.end(), {"hpclaunch-shim", "PROGRAM"});
      break;
    }
    if (verbose)
      for (const std::string& line : flow(part, room - 2))
        parts.push_back((part.starts_with(line) ? "" : "  ") + line);
    else
      parts.push_back(columns(part) <= room ? part : shorten(part, room / 2, style));
  }
  const std::string head = "\n" + tinted("command", Tone::strong, style);
  return verbose ? head + "\n" + hanging("  ", parts, kContinued)
                 : head + hanging("  ", fill(parts, room - 5), kContinued);
}

}  // namespace

std::string plan_table(const Plan& plan, const Topology& topology,
                       const std::vector<std::string>& argv, const Style& style, bool verbose,
                       int above) {
  constexpr int kScreen = 39;  // lines, and one for the shell's prompt
  constexpr int kLeast = 5;    // of the environment
  const std::string head =
      header(plan, topology, style, verbose) + rank_tables(plan, topology, style);
  const std::string last = command(argv.empty() ? plan.launch.command : argv, style, verbose);
  const int room = kScreen - above - lines_of(head) - lines_of(last);
  return head + environment(plan, style, verbose, std::max(room, kLeast)) + last;
}

std::string launch_text(const Plan& plan, const std::vector<std::string>& argv) {
  constexpr int kWidth = 120;
  std::vector<std::string> shown = without_secrets(argv);
  for (std::string& word : shown) word = shorten(printable(shown_word(word)), kWidth, Style{});
  const std::string site = site_text(plan);
  return fmt::format("hpclaunch: starting {} ({}) with {}{}{}\nhpclaunch: {}\n", plan_title(plan),
                     printable(host_ranges(plan.hosts.names, kWidth)), plan.launch.launcher,
                     site.empty() ? "" : ", profile ", printable(site), joined(shown, " "));
}

}  // namespace hpclaunch
