// `profile show`: the flattened profile for people, with the place where each entry is written.
#include "authoring/show.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <map>
#include <nlohmann/json.hpp>

#include "authoring/command.h"
#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

constexpr std::size_t kLabel = 11;

/// Text with labels in a column and, for each entry, where it was written.
class Page {
 public:
  explicit Page(const Style& style) : style_(style) {}

  void heading(const std::string& title) {
    text +=
        style_.color ? fmt::format("\n\x1b[1m{}\x1b[0m\n", title) : fmt::format("\n{}\n", title);
  }
  void entry(const std::string& name, const Origin& origin) {
    const std::string place = place_text(origin.where);
    text += fmt::format("  {}  ({}{}{})\n", plain(name), plain(origin.profile),
                        place.empty() ? "" : ", ", plain(place));
  }
  void line(const std::string& label, const std::string& value, int depth = 2) {
    if (value.empty()) return;
    text += fmt::format("{:>{}}{:<{}} {}\n", "", depth * 2, label, kLabel, plain(value));
  }
  void origin(const Origin& origin) {
    line("why", origin.why);
    line("source", origin.source.empty() || origin.checked.empty()
                       ? origin.source
                       : fmt::format("{} (compared on {})", origin.source, origin.checked));
    line("printed", origin.printed);
    line("but", origin.printed_why);
    line("disputed", origin.disputed);
  }

  std::string text;

 private:
  Style style_;
};

std::string template_text(const Template& value) {
  if (value.each == Template::Each::once) return value.text;
  return fmt::format("{} (once per {}, \"{}\" between)", value.text,
                     value.each == Template::Each::rank ? "local rank" : "unit", value.join);
}

std::string binding_text(const Binding& binding) {
  constexpr const char* kPer[] = {"node", "package", "NUMA node", "L3 cache"};
  std::string text = fmt::format("in each {}: ", kPer[static_cast<std::size_t>(binding.per)]);
  const std::string width = binding.low == binding.high
                                ? fmt::format("+ {}", binding.low)
                                : fmt::format("+ {}-{}", binding.low, binding.high);
  if (binding.split) {
    text += fmt::format("cores from {} on, shared evenly", binding.first);
  } else if (!binding.at.empty()) {
    std::vector<std::string> bases;
    for (const std::vector<int>& list : binding.at)
      bases.push_back(fmt::format("{}", fmt::join(list, " ")));
    text += fmt::format("base {}, cores base {}", fmt::join(bases, " | "), width);
  } else {
    text += fmt::format("base {} + {} * i{}, cores base {}", binding.first, binding.stride,
                        binding.at_least > 0 ? fmt::format(" (at least {})", binding.at_least) : "",
                        width);
  }
  if (binding.siblings) text += ", all hardware threads";
  if (!binding.groups.empty()) text += fmt::format(", groups {}", fmt::join(binding.groups, " "));
  if (binding.interleave) text += ", ranks round robin over the groups";
  return text;
}

void show_head(const Profile& profile, const std::string& file, Page& page) {
  page.text += fmt::format("{}  {}\n", plain(profile.name), plain(profile.doc));
  page.line("file", file, 1);
  if (profile.part) page.line("part", "for other profiles to extend; matches no site", 1);
  page.line("extends", fmt::format("{}", fmt::join(profile.extends, ", ")), 1);
  if (profile.retired)
    page.line("retired",
              fmt::format("{}{}", profile.retired->date,
                          profile.retired->successor.empty()
                              ? ""
                              : "; " + profile.retired->successor + " is the successor"),
              1);
  page.line("launcher", profile.launcher, 1);
  page.line("scheduler", profile.scheduler, 1);
  if (profile.lsf_launch_node)
    page.line("lsf_launch_node", *profile.lsf_launch_node ? "true" : "false", 1);
  page.line("stack", profile.stack, 1);
  page.line("mode", profile.device_mode, 1);
  page.line("gpu view", profile.gpu_view, 1);
  if (profile.ranks_per_device > 0)
    page.line("per device", counted(profile.ranks_per_device, "rank"), 1);
  page.line("fill", profile.fill, 1);
  if (profile.detect.empty()) return;
  page.heading("signals");
  for (const Signal& signal : profile.detect)
    page.text += fmt::format("  {} like {}{}\n", signal.env.empty() ? "host name" : signal.env,
                             plain(signal.like), signal.proves ? "" : " (hint only)");
}

void show_nodes(const Profile& profile, Page& page) {
  if (!profile.nodes.empty()) page.heading("nodes");
  for (const NodeModel& node : profile.nodes) {
    page.entry(node.name, node.origin);
    page.line("what", node.doc);
    if (node.count > 0) page.line("count", std::to_string(node.count));
    page.line("made of", node_text(node));
    if (node.live) page.line("use", "live: inside a job the node itself is probed");
    if (!node.reserved.empty())
      page.line("reserved", fmt::format("CPUs {}: {}", node.reserved.to_list(), node.reserved_why));
    for (const ServiceCores& service : node.services)
      page.line("service",
                fmt::format("{} on CPUs {}: {}", service.name, service.pus.to_list(), service.why));
    page.line("when", when_text(node.when));
    page.origin(node.origin);
  }
  if (!profile.stacks.empty()) page.heading("stacks");
  for (const Stack& stack : profile.stacks) {
    page.entry(stack.name, stack.origin);
    page.line("what", stack.doc);
    for (const When& when : stack.when) page.line("when", when_text(when));
    page.origin(stack.origin);
  }
  if (!profile.device_modes.empty()) page.heading("device modes");
  for (const DeviceMode& mode : profile.device_modes) {
    page.entry(mode.name, mode.origin);
    page.line("what", mode.doc);
    page.line("unit", mode.subdevices ? "part of a device" : "device");
    if (!mode.mask.empty()) page.line("mask", mode.mask + " = " + mode.mask_item);
    page.origin(mode.origin);
  }
}

void show_bindings(const Profile& profile, Page& page) {
  if (!profile.bindings.empty()) page.heading("bindings (the last that applies and fits is used)");
  for (const Binding& binding : profile.bindings) {
    page.entry(binding.id, binding.origin);
    page.line("when", when_text(binding.when));
    page.line("cores", binding_text(binding));
    for (const Binding::Role& role : binding.roles)
      page.line("role", role.from_base ? fmt::format("{}: core base + {}", role.name, role.first)
                                       : fmt::format("{}: core first of group + {} + {} * i",
                                                     role.name, role.first, role.stride));
    page.origin(binding.origin);
  }
}

void show_rule(const Rule& rule, Page& page) {
  page.entry(rule.id, rule.origin);
  page.line("when", when_text(rule.when));
  const auto all = [&](const char* verb, const std::vector<Assignment>& assignments) {
    for (const Assignment& one : assignments)
      page.line(verb, fmt::format("{} = {}", one.name,
                                  is_secret(one.name) ? "<hidden>" : template_text(one.value)));
  };
  all("default", rule.defaults);
  all("require", rule.require);
  all("prepend", rule.prepend);
  page.line("unset", fmt::format("{}", fmt::join(rule.unset, " ")));
  for (const auto& [launcher, flags] : rule.launch)
    page.line("launch", fmt::format("{}: {}", launcher, fmt::join(flags, " ")));
  for (const auto& [scheduler, directives] : rule.batch)
    page.line("batch", fmt::format("{}: {}", scheduler, fmt::join(directives, " ")));
  if (rule.core_limit) page.line("core limit", *rule.core_limit);
  page.line("make dirs", fmt::format("{}", fmt::join(rule.make_dirs, " ")));
  if (rule.report)
    page.line("report", fmt::format("{}: {}", rule.report->severity, rule.report->message));
  if (rule.report) page.line("fix", rule.report->fix);
  page.origin(rule.origin);
}

std::string as_text(const Profile& profile, const std::string& file, const Style& style) {
  Page page(style);
  show_head(profile, file, page);
  show_nodes(profile, page);
  show_bindings(profile, page);
  if (!profile.rules.empty()) page.heading("rules (in this order)");
  for (const Rule& rule : profile.rules) show_rule(rule, page);
  if (!profile.notes.empty()) page.heading("notes");
  for (const Note& note : profile.notes) {
    page.entry(note.id, note.origin);
    page.line("title", note.title);
    page.line("text", note.text);
    page.origin(note.origin);
  }
  if (!profile.expect.empty())
    page.text += fmt::format("\n{} for hpclaunch profile test\n",
                             counted(static_cast<long>(profile.expect.size()), "golden case"));
  return page.text;
}

}  // namespace

std::string when_text(const When& when) {
  using Op = Test::Op;
  static const std::map<Op, std::string> kSigns = {
      {Op::eq, "="}, {Op::ne, "is not"}, {Op::lt, "<"},      {Op::le, "<="},
      {Op::gt, ">"}, {Op::ge, ">="},     {Op::like, "like"}, {Op::unlike, "unlike"}};
  std::vector<std::string> tests;
  for (const Test& test : when) {
    if (test.op == Op::is_set || test.op == Op::is_unset) {
      tests.push_back(test.fact + (test.op == Op::is_set ? " is set" : " is not set"));
      continue;
    }
    std::vector<std::string> values;
    for (const std::string& value : test.values) values.push_back(value.empty() ? "\"\"" : value);
    tests.push_back(
        fmt::format("{} {} {}", test.fact, kSigns.at(test.op), fmt::join(values, " or ")));
  }
  return fmt::format("{}", fmt::join(tests, ", "));
}

std::string node_text(const NodeModel& node) {
  const Topology& t = node.topology;
  std::string text =
      fmt::format("{}, {}, {}, {}", counted(static_cast<long>(t.packages.size()), "package"),
                  counted(static_cast<long>(t.numa_nodes.size()), "NUMA node"),
                  counted(static_cast<long>(t.cores.size()), "core"),
                  counted(t.all_pus().count(), "hardware thread"));
  if (!t.devices.empty())
    text += fmt::format(
        ", {} ({})", counted(static_cast<long>(t.devices.size()), "device"),
        t.devices.front().model.empty() ? t.devices.front().vendor : t.devices.front().model);
  if (!t.nics.empty())
    text += fmt::format(", {}", counted(static_cast<long>(t.nics.size()), "NIC"));
  return text;
}

int profile_show(const Args& args, Session& session) {
  if (args.names.empty())
    return report(session, Error{ErrorKind::usage, "show needs the name of a profile",
                                 "hpclaunch profile list"});
  const Result<Shelf> shelf = open_shelf(args.names, session.env);
  if (!shelf) return report(session, shelf.error());
  std::string text;
  auto list = nlohmann::ordered_json::array();
  for (const std::string& ref : args.names) {
    const Result<LoadedProfile> loaded = load_for_review(ref, *shelf);
    if (!loaded) return report(session, loaded.error());
    if (!loaded->resolved) return report(session, loaded->problems.front());
    if (args.format == "json")
      list.push_back(profile_object(*loaded->resolved, loaded->file));
    else
      text += (text.empty() ? "" : "\n") + as_text(*loaded->resolved, loaded->file, session.style);
  }
  if (args.format == "json") text = json_document("profiles", std::move(list));
  return print(session, text) ? 0 : exit_status(ErrorKind::system, session.exit_rules);
}

}  // namespace hpclaunch::authoring
