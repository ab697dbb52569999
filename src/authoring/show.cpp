// `profile show`: the flattened profile, for people with the place where each entry is written, for
// programs with the keys of a profile file. One description of each entry serves both.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <nlohmann/json.hpp>

#include "authoring/command.h"
#include "hpclaunch/render.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

using Json = nlohmann::ordered_json;

// Empty texts, lists and objects, and null, are left out.
void put(Json& object, const char* key, Json value) {
  const bool empty =
      value.is_string() ? value.get_ref<const std::string&>().empty() : value.empty();
  if (!empty) object[key] = std::move(value);
}

Json as_json(const When& when) {
  constexpr const char* kNames[] = {"eq", "ne", "lt", "le", "gt", "ge", "like", "unlike"};
  Json object = Json::object();
  for (const Test& test : when) {
    if (test.op == Test::Op::is_set || test.op == Test::Op::is_unset) {
      object[test.fact]["set"] = test.op == Test::Op::is_set;
      continue;
    }
    const Json value = test.values.size() == 1 ? Json(test.values.front()) : Json(test.values);
    object[test.fact][kNames[static_cast<std::size_t>(test.op)]] = value;
  }
  return object;
}

/// A line with a label; "" without a value.
std::string labelled(const std::string& label, const std::string& value, int indent,
                     const Style& style) {
  constexpr std::size_t kLabel = 11;
  if (value.empty()) return "";
  return paragraph(fmt::format("{:>{}}{:<{}} ", "", indent, label, kLabel), value, style);
}

/// An entry of the profile: `text` for people, `object` for programs.
struct Shown {
  std::string text;
  Json object;
  Style style;

  Shown(const char* key, const std::string& name, const Origin& origin, const Style& width)
      : style(width) {
    object[key] = name;
    const std::string place = place_text(origin.where);
    text = paragraph(
        "  ", fmt::format("{}  ({}{}{})", name, origin.profile, place.empty() ? "" : ", ", place),
        style);
  }
  void line(const std::string& label, const std::string& value) {
    text += labelled(label, value, 4, style);
  }
  /// `value` for people, `json` for programs.
  void add(const char* label, const char* key, const std::string& value, Json json) {
    line(label, value);
    put(object, key, std::move(json));
  }
  void add(const char* label, const char* key, const std::string& value) {
    add(label, key, value, value);
  }
  void when(const When& when) { add("when", "when", when_text(when), as_json(when)); }
  /// Comes last.
  void from(const Origin& origin) {
    add("why", "why", origin.why);
    add("source", "source",
        origin.source.empty() || origin.checked.empty()
            ? origin.source
            : fmt::format("{} (compared on {})", origin.source, origin.checked),
        origin.source);
    put(object, "checked", origin.checked);
    add("printed", "printed", origin.printed);
    add("but", "printed_why", origin.printed_why);
    add("disputed", "disputed", origin.disputed);
    object["origin"] = {{"profile", origin.profile},
                        {"file", origin.where.file},
                        {"line", origin.where.line},
                        {"column", origin.where.column}};
  }
};

void describe(const NodeModel& node, Shown& out) {
  out.add("what", "doc", node.doc);
  if (node.count > 0) out.add("count", "count", std::to_string(node.count), node.count);
  out.line("made of", node_text(node));
  out.add("use", "use", node.live ? "live: inside a job the node itself is probed" : "",
          node.live ? "live" : "model");
  out.when(node.when);
  if (const std::string cpus = node.reserved.to_list(); !cpus.empty())
    out.add("reserved", "reserved", fmt::format("CPUs {}: {}", cpus, node.reserved_why),
            {{"cpus", cpus}, {"why", node.reserved_why}});
  out.add("shared", "share", share_text(node.share), share_json(node.share));
  for (const ServiceCores& one : node.services) {
    const std::string cpus = one.pus.to_list();
    out.line("service", fmt::format("{} on CPUs {}: {}", one.name, cpus, one.why));
    out.object["services"].push_back({{"name", one.name}, {"cpus", cpus}, {"why", one.why}});
  }
  out.object["topology"] = Json::parse(topology_to_json(node.topology), nullptr, false);
}

void describe(const Stack& stack, Shown& out) {
  out.add("what", "doc", stack.doc);
  for (const When& when : stack.when) {
    out.line("when", when_text(when));
    out.object["when"].push_back(as_json(when));
  }
  Json modules = Json::object();
  if (stack.modules.purge) modules["purge"] = true;
  put(modules, "use", stack.modules.use);
  put(modules, "load", stack.modules.load);
  put(modules, "conda", stack.modules.conda);
  out.add("modules", "modules", joined(module_lines(stack.modules), "; "), modules);
}

void describe(const Queue& queue, Shown& out) {
  const auto range = [](long low, long high) { return Json{low, high != 0 ? Json(high) : Json()}; };
  out.add("option", "option", queue.option);
  out.line("takes", limits_text(queue));
  out.add("node types", "node_types", joined(queue.node_types, ", "), queue.node_types);
  out.add("shared", "share", share_text(queue.share), share_json(queue.share));
  out.object["nodes"] = range(queue.least_nodes, queue.most_nodes);
  out.object["minutes"] = range(queue.least_seconds / 60, queue.most_seconds / 60);
}

void describe(const DeviceMode& mode, Shown& out) {
  out.add("what", "doc", mode.doc);
  out.add("unit", "unit", mode.subdevices ? "part of a device" : "device",
          mode.subdevices ? "subdevice" : "device");
  out.add("mask", "mask", mode.mask.empty() ? "" : mode.mask + " = " + mode.mask_item, mode.mask);
  put(out.object, "mask_item", mode.mask_item);
}

// Key and name.
constexpr std::pair<const char*, const char*> kPer[] = {
    {"node", "node"}, {"package", "package"}, {"numa", "NUMA node"}, {"l3", "L3 cache"}};

std::string binding_text(const Binding& binding) {
  std::string text = fmt::format("{} each {}: ", binding.across ? "of" : "in",
                                 kPer[static_cast<std::size_t>(binding.per)].second);
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

void put_cores(const Binding& binding, Json& object) {
  object["per"] = kPer[static_cast<std::size_t>(binding.per)].first;
  object["first"] = binding.first;
  if (binding.split) {
    object["split"] = true;
    if (binding.across) object["across"] = true;
  } else {
    if (binding.at.empty())
      object["stride"] = binding.stride;
    else
      object["at"] = binding.at;
    object["cores"] = fmt::format("{}-{}", binding.low, binding.high);
    object["at_least"] = binding.at_least;
  }
  object["siblings"] = binding.siblings;
  put(object, "groups", binding.groups);
  object["interleave"] = binding.interleave;
}

void describe(const Binding& binding, Shown& out) {
  out.when(binding.when);
  out.line("cores", binding_text(binding));
  put_cores(binding, out.object);
  for (const Binding::Role& role : binding.roles) {
    Json& object = out.object["roles"][role.name];
    object = {{"from", role.from_base ? "base" : "group"}, {"first", role.first}};
    if (!role.from_base) object["stride"] = role.stride;
    out.line("role", role.from_base ? fmt::format("{}: core base + {}", role.name, role.first)
                                    : fmt::format("{}: core first of group + {} + {} * i",
                                                  role.name, role.first, role.stride));
  }
}

std::string template_text(const Template& value) {
  if (value.each == Template::Each::once) return value.text;
  return fmt::format("{} (once per {}, \"{}\" between)", value.text,
                     value.each == Template::Each::rank ? "local rank" : "unit", value.join);
}

void add_assignments(const char* verb, const std::vector<Assignment>& assignments, Shown& out) {
  for (const Assignment& one : assignments) {
    out.line(verb, fmt::format("{} = {}", one.name,
                               is_secret(one.name, one.value.text) ? "<hidden>"
                                                                   : template_text(one.value)));
    Json& value = out.object[verb][one.name];
    if (one.value.each == Template::Each::once)
      value = one.value.text;
    else
      value = {{"each", one.value.each == Template::Each::rank ? "rank" : "unit"},
               {"item", one.value.text},
               {"join", one.value.join}};
  }
}

void describe(const Rule& rule, Shown& out) {
  out.when(rule.when);
  add_assignments("default", rule.defaults, out);
  add_assignments("require", rule.require, out);
  add_assignments("prepend", rule.prepend, out);
  const auto words = [&](const char* label, const char* key, const auto& list) {
    out.add(label, key, joined(list, " "), list);
  };
  words("unset", "unset", rule.unset);
  for (const auto& [key, lists] :
       {std::pair("launch", &rule.launch), std::pair("batch", &rule.batch)}) {
    for (const auto& [program, list] : *lists)
      out.line(key, fmt::format("{}: {}", program, fmt::join(list, " ")));
    put(out.object, key, *lists);
  }
  out.add("core limit", "core_limit", rule.core_limit.value_or(""));
  words("make dirs", "make_dirs", rule.make_dirs);
  if (rule.report) {
    const auto& [severity, message, fix] = *rule.report;
    out.add("report", "report", fmt::format("{}: {}", severity, message),
            {{"severity", severity}, {"message", message}, {"fix", fix}});
    out.line("fix", fix);
  }
  for (const auto& [key, by_variable] :
       {std::pair("why", &rule.whys), std::pair("disputed", &rule.disputes)})
    for (const auto& [name, sentence] : *by_variable) {
      out.line(key, name + ": " + sentence);
      out.object[key][name] = sentence;
    }
}

void describe(const Note& note, Shown& out) {
  out.add("title", "title", note.title);
  out.add("text", "text", note.text);
}

template <class Entry>
std::vector<Shown> all(const std::vector<Entry>& entries, const Style& style) {
  std::vector<Shown> list;
  for (const Entry& entry : entries) {
    if constexpr (requires { entry.id; })
      list.emplace_back("id", entry.id, entry.origin, style);
    else
      list.emplace_back("name", entry.name, entry.origin, style);
    describe(entry, list.back());
    list.back().from(entry.origin);
  }
  return list;
}

struct Section {
  const char* key;
  const char* heading;
  std::vector<Shown> entries;
};

std::vector<Section> sections(const Profile& profile, const Style& style = {}) {
  return {{"nodes", "nodes", all(profile.nodes, style)},
          {"stacks", "stacks", all(profile.stacks, style)},
          {"device_modes", "device modes", all(profile.device_modes, style)},
          {"bindings", "bindings (the last that applies and fits is used)",
           all(profile.bindings, style)},
          {"rules", "rules (in this order)", all(profile.rules, style)},
          {"notes", "notes", all(profile.notes, style)}};
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
  if (!profile.job.queues.empty()) heading("queues (the first that fits is used)");
  for (const Shown& queue : all(profile.job.queues, style)) text += queue.text;
  for (const Section& section : sections(profile, style)) {
    if (!section.entries.empty()) heading(section.heading);
    for (const Shown& entry : section.entries) text += entry.text;
  }
  if (const std::size_t cases = profile.expect.size(); cases > 0)
    text += fmt::format("\n{} for hpclaunch profile test\n", counted(cases, "golden case"));
  return text;
}

// Each node's topology is what `hpclaunch topo --json` writes.
Json as_object(const Profile& profile, const std::string& file) {
  Json object = {
      {"name", profile.name}, {"file", file}, {"doc", profile.doc}, {"part", profile.part}};
  object["extends"] = profile.extends;
  if (const auto& retired = profile.retired) {
    Shown end("date", retired->date, retired->origin, {});
    put(end.object, "successor", retired->successor);
    end.from(retired->origin);
    object["retired"] = std::move(end.object);
  }
  put(object, "launcher", profile.launcher), put(object, "scheduler", profile.scheduler);
  if (profile.lsf_launch_node) object["lsf_launch_node"] = *profile.lsf_launch_node;
  Json job = Json::object();
  put(job, "account", profile.job.account);
  put(job, "filesystems", profile.job.filesystems);
  put(job, "constraint", profile.job.constraint);
  put(job, "local", profile.job.local);
  for (Shown& queue : all(profile.job.queues, {})) job["queues"].push_back(std::move(queue.object));
  put(object, "job", std::move(job));
  put(object, "example_host", profile.example_host);
  Json& defaults = object["defaults"] = Json::object();
  if (profile.ranks_per_device > 0) defaults["ranks_per_device"] = profile.ranks_per_device;
  const auto add = [&](const char* key, const std::string& text) { put(defaults, key, text); };
  add("gpu_view", profile.gpu_view), add("device_mode", profile.device_mode);
  add("stack", profile.stack), add("fill", profile.fill), add("mps", profile.mps);
  Json& detect = object["detect"] = Json::array();
  for (const Signal& signal : profile.detect) {
    Json one = Json::object();
    if (!signal.env.empty()) one["env"] = signal.env;
    one[signal.env.empty() ? "host" : "like"] = signal.like;
    one["proves"] = signal.proves;
    detect.push_back(std::move(one));
  }
  for (Section& section : sections(profile)) {
    Json& list = object[section.key] = Json::array();
    for (Shown& entry : section.entries) list.push_back(std::move(entry.object));
  }
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
