// `profile show`: the flattened profile, for people with the place where each entry is written, for programs as a
// profile file has it.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "authoring/command.h"
#include "hpclaunch/profile_format.h"
#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

using Json = nlohmann::ordered_json;

/// A line with a label; "" without a value.
std::string labelled(const std::string& label, const std::string& value, int indent,
                     const Style& style) {
  constexpr std::size_t kLabel = 11;
  if (value.empty()) return "";
  return paragraph(fmt::format("{:>{}}{:<{}} ", "", indent, label, kLabel), value, style);
}

/// An entry of the profile.
struct Shown {
  std::string text;
  Style style;

  Shown(const std::string& name, const Origin& origin, const Style& width) : style(width) {
    const std::string place = place_text(origin.where);
    text = paragraph(
        "  ", fmt::format("{}  ({}{}{})", name, origin.profile, place.empty() ? "" : ", ", place),
        style);
  }
  void line(const std::string& label, const std::string& value) {
    text += labelled(label, value, 4, style);
  }
  void when(const When& when) { line("when", when_text(when)); }
  /// Comes last.
  void from(const Origin& origin) {
    line("why", origin.why);
    line("source", origin.source.empty() || origin.checked.empty()
                       ? origin.source
                       : fmt::format("{} (compared on {})", origin.source, origin.checked));
    line("printed", origin.printed);
    line("but", origin.printed_why);
    line("disputed", origin.disputed);
  }
};

void describe(const NodeModel& node, Shown& out) {
  out.line("what", node.doc);
  if (node.count > 0) out.line("count", std::to_string(node.count));
  out.line("made of", node_text(node));
  out.line("use", node.live ? "live: inside a job the node itself is probed" : "");
  out.when(node.when);
  if (const std::string cpus = node.reserved.to_list(); !cpus.empty())
    out.line("reserved", fmt::format("CPUs {}: {}", cpus, node.reserved_why));
  out.line("shared", share_text(node.share));
  for (const ServiceCores& one : node.services)
    out.line("service", fmt::format("{} on CPUs {}: {}", one.name, one.pus.to_list(), one.why));
}

void describe(const Stack& stack, Shown& out) {
  out.line("what", stack.doc);
  for (const When& when : stack.when) out.when(when);
  out.line("modules", joined(module_lines(stack.modules), "; "));
}

void describe(const Queue& queue, Shown& out) {
  out.line("option", queue.option);
  out.line("takes", limits_text(queue));
  out.line("node types", joined(queue.node_types, ", "));
  out.line("shared", share_text(queue.share));
}

void describe(const DeviceMode& mode, Shown& out) {
  out.line("what", mode.doc);
  out.line("unit", mode.subdevices ? "part of a device" : "device");
  out.line("mask", mode.mask.empty() ? "" : mode.mask + " = " + mode.mask_item);
}

void describe(const SiteContainer& container, Shown& out) {
  out.line("options", joined(container.options, " "));
  out.line("binds", joined(container.binds, " "));
}

constexpr const char* kPer[] = {"node", "package", "NUMA node", "L3 cache"};

std::string binding_text(const Binding& binding) {
  std::string text = fmt::format("{} each {}: ", binding.across ? "of" : "in",
                                 kPer[static_cast<std::size_t>(binding.per)]);
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

void describe(const Binding& binding, Shown& out) {
  out.when(binding.when);
  out.line("cores", binding_text(binding));
  for (const Binding::Role& role : binding.roles)
    out.line("role", role.from_base ? fmt::format("{}: core base + {}", role.name, role.first)
                                    : fmt::format("{}: core first of group + {} + {} * i",
                                                  role.name, role.first, role.stride));
}

std::string template_text(const Template& value) {
  if (value.each == Template::Each::once) return value.text;
  return fmt::format("{} (once per {}, \"{}\" between)", value.text,
                     value.each == Template::Each::rank ? "local rank" : "unit", value.join);
}

void add_assignments(const char* verb, const std::vector<Assignment>& assignments, Shown& out) {
  for (const Assignment& one : assignments)
    out.line(verb, fmt::format("{} = {}", one.name,
                               is_secret(one.name, one.value.text) ? "<hidden>"
                                                                   : template_text(one.value)));
}

void describe(const Rule& rule, Shown& out) {
  out.when(rule.when);
  add_assignments("default", rule.defaults, out);
  add_assignments("require", rule.require, out);
  add_assignments("prepend", rule.prepend, out);
  out.line("unset", joined(rule.unset, " "));
  for (const auto& [key, lists] :
       {std::pair("launch", &rule.launch), std::pair("batch", &rule.batch)})
    for (const auto& [program, list] : *lists)
      out.line(key, fmt::format("{}: {}", program, fmt::join(list, " ")));
  out.line("core limit", rule.core_limit.value_or(""));
  out.line("make dirs", joined(rule.make_dirs, " "));
  if (rule.report) {
    out.line("report", fmt::format("{}: {}", rule.report->severity, rule.report->message));
    out.line("fix", rule.report->fix);
  }
  for (const auto& [key, by_variable] :
       {std::pair("why", &rule.whys), std::pair("disputed", &rule.disputes)})
    for (const auto& [name, sentence] : *by_variable) out.line(key, name + ": " + sentence);
}

void describe(const Note& note, Shown& out) {
  out.line("title", note.title);
  out.line("text", note.text);
}

template <class Entry>
std::vector<Shown> all(const std::vector<Entry>& entries, const Style& style) {
  std::vector<Shown> list;
  for (const Entry& entry : entries) {
    if constexpr (requires { entry.id; })
      list.emplace_back(entry.id, entry.origin, style);
    else
      list.emplace_back(entry.name, entry.origin, style);
    describe(entry, list.back());
    list.back().from(entry.origin);
  }
  return list;
}

struct Section {
  const char* heading;
  std::vector<Shown> entries;
};

std::vector<Section> sections(const Profile& profile, const Style& style) {
  return {{"queues (the first that fits is used)", all(profile.job.queues, style)},
          {"nodes", all(profile.nodes, style)},
          {"stacks", all(profile.stacks, style)},
          {"device modes", all(profile.device_modes, style)},
          {"bindings (the last that applies and fits is used)", all(profile.bindings, style)},
          {"rules (in this order)", all(profile.rules, style)},
          {"containers (the first that is there is used)", all(profile.containers, style)},
          {"notes", all(profile.notes, style)}};
}

std::string head_text(const Profile& profile, const std::string& file, const Style& style) {
  std::string text = paragraph(printable(profile.name) + "  ", profile.doc, style);
  const auto line = [&](const char* label, const std::string& value) {
    text += labelled(label, value, 2, style);
  };
  line("file", file);
  if (profile.part) line("part", "for other profiles to extend; matches no site");
  line("extends", joined(profile.extends, ", "));
  if (const auto& retired = profile.retired)
    line("retired",
         retired->date +
             (retired->successor.empty() ? "" : "; " + retired->successor + " is the successor"));
  line("launcher", profile.launcher), line("scheduler", profile.scheduler);
  if (profile.lsf_launch_node) line("lsf_launch_node", *profile.lsf_launch_node ? "true" : "false");
  line("account", profile.job.account.empty() ? "" : "mandatory");
  line("file system", profile.job.filesystems);
  line("example host", profile.example_host);
  line("stack", profile.stack), line("mode", profile.device_mode);
  line("gpu view", profile.gpu_view);
  if (profile.ranks_per_device > 0) line("per device", counted(profile.ranks_per_device, "rank"));
  line("fill", profile.fill), line("mps", profile.mps);
  return text;
}

std::string as_text(const Profile& profile, const std::string& file, const Style& style) {
  std::string text = head_text(profile, file, style);
  const auto heading = [&](const char* title) {
    text += style.color ? fmt::format("\n\x1b[1m{}\x1b[0m\n", title) : fmt::format("\n{}\n", title);
  };
  if (!profile.detect.empty()) heading("signals");
  for (const Signal& signal : profile.detect)
    text += fmt::format("  {} like {}{}\n", signal.env.empty() ? "host name" : signal.env,
                        printable(signal.like), signal.proves ? "" : " (hint only)");
  for (const Section& section : sections(profile, style)) {
    if (!section.entries.empty()) heading(section.heading);
    for (const Shown& entry : section.entries) text += entry.text;
  }
  if (const std::size_t cases = profile.expect.size(); cases > 0)
    text += fmt::format("\n{} for hpclaunch profile test\n", counted(cases, "golden case"));
  return text;
}

Json as_object(const Profile& profile, const std::string& file) {
  Json object = profile_json(profile);
  object["file"] = file;
  object["cases"] = profile.expect.size();
  return object;
}

}  // namespace

int profile_show(const Args& args, Session& session) {
  if (args.names.empty())
    return report(session, Error{ErrorKind::usage, "show needs the name of a profile",
                                 "hpclaunch profile list"});
  const Result<Shelf> shelf = open_shelf(args.names, session.env);
  if (!shelf) return report(session, shelf.error());
  std::string text;
  auto list = Json::array();
  for (const std::string& ref : args.names) {
    const Result<LoadedProfile> loaded = load_for_review(ref, *shelf);
    if (!loaded) return report(session, loaded.error());
    if (!loaded->resolved) return report(session, loaded->problems.front());
    if (args.format == "json")
      list.push_back(as_object(*loaded->resolved, loaded->file));
    else
      text += (text.empty() ? "" : "\n") +
              as_text(*loaded->resolved, loaded->file, line_style(session));
  }
  if (args.format == "json") text = json_document("profiles", std::move(list));
  return print_all(session, text);
}

}  // namespace hpclaunch::authoring
