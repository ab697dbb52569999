// A new profile up to its golden cases: profiles/new/profile.txt with what was found filled in.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <cctype>
#include <map>
#include <set>

#include "authoring/command.h"
#include "authoring/new.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

// What the template's rules ask for, and the names in its values.
using Names = std::set<std::string, std::less<>>;
using Values = std::map<std::string, std::string, std::less<>>;

void note(Names& names, bool there, std::string_view name) {
  if (there) names.emplace(name);
}

// Digits become '*', invalid characters '?'. A name without letters is kept: its pattern would match any site.
std::string host_pattern(const std::string& host) {
  const bool keep_digits =
      std::ranges::none_of(host, [](unsigned char c) { return std::isalpha(c) != 0; });
  constexpr std::size_t kLongest = 128;
  std::string pattern;
  for (const char c : host.substr(0, kLongest)) {
    const auto byte = static_cast<unsigned char>(c);
    const bool wild = std::isdigit(byte) != 0 && !keep_digits;
    if (wild && (pattern.empty() || pattern.back() != '*'))
      pattern += '*';
    else if (!wild)
      pattern += std::isalnum(byte) != 0 || c == '.' || c == '-' || c == '_' ? c : '?';
  }
  if (host.size() > kLongest) pattern += '*';
  return pattern;
}

// A value as a pattern that matches it alone.
std::string literally(const std::string& value) {
  std::string pattern;
  for (const char c : value) {
    if (std::string_view("*?[\\").find(c) != std::string_view::npos) pattern += '\\';
    pattern += c;
  }
  return pattern;
}

// Variables that name the cluster, each with a pattern for this shell's value.
std::vector<std::pair<std::string, std::string>> signals(const EnvSnapshot& env) {
  constexpr std::size_t kLongest = 100;  // longer values are not names
  constexpr std::array kNames = {"CC_CLUSTER", "LMOD_SYSTEM_NAME", "SLURM_CLUSTER_NAME",
                                 "NERSC_HOST", "PBS_O_SERVER"};
  std::vector<std::pair<std::string, std::string>> found;
  for (const char* name : kNames)
    if (const std::string value = env.get(name); !value.empty() && value.size() <= kLongest)
      found.emplace_back(name, literally(value));
  const std::string job = env.get("PBS_JOBID");
  if (const std::size_t dot = job.find('.'); dot != std::string::npos && job.size() <= kLongest)
    found.emplace_back("PBS_JOBID", "*" + literally(job.substr(dot)));
  return found;
}

// A dotted version can be compared, and a plain name needs no quoting.
bool is_plain_module(const std::string& name, const std::string& version) {
  return !version.empty() && std::isdigit(static_cast<unsigned char>(version.front())) != 0 &&
         version.find_first_not_of("0123456789.") == std::string::npos && consists_of(name, "-");
}

// What a template's @{name} stands for.
std::string filled(std::string_view line, const Values& values) {
  std::string out;
  for (std::size_t at = line.find("@{"); at != std::string_view::npos; at = line.find("@{")) {
    const std::size_t end = line.find('}', at);
    const auto value = values.find(line.substr(at + 2, end - at - 2));
    out.append(line.substr(0, at)).append(value == values.end() ? "" : value->second);
    line.remove_prefix(end + 1);
  }
  return out.append(line);
}

void add_launcher(const Fresh& fresh, Names& names, Values& values) {
  if (!fresh.scheduler.empty()) names.insert("job");
  values["scheduler"] = fresh.scheduler;
  if (!fresh.launcher) return;
  const LauncherFacts& found = fresh.launcher->facts;
  names.insert("launcher");
  values["launcher"] = fresh.launcher->launcher->name;
  values["program"] =
      fmt::format("{}{}{}", printable(found.path), found.version.empty() ? "" : ", version ",
                  printable(found.version));
}

void add_site(const Fresh& fresh, const EnvSnapshot& env, Names& names, Values& values) {
  std::string lines;
  for (const auto& [name, like] : signals(env))
    lines += fmt::format("\n    // {{\"env\": \"{}\", \"like\": {}}},", name, json_text(like));
  if (!lines.empty()) names.insert("signals");
  values["signals"] = lines.substr(std::min<std::size_t>(1, lines.size()));
  values["host"] = json_text(host_pattern(fresh.host));
  values["module"] = "framework";
  values["version"] = json_text("2025");
  for (const auto& [module, loaded] : loaded_modules(env)) {
    if (!is_plain_module(module, loaded)) continue;
    values["module"] = module;
    values["version"] = json_text(loaded);
    break;
  }
}

void add_node(const Fresh& fresh, Names& names, Values& values) {
  const Topology& node = fresh.node;
  const NodeText model = node_model_text(node);
  const CpuSet taken = node.all_pus() - node.allowed;
  // By the core numbers of the model: those of which no thread is allowed.
  const CoreSet whole = cores_of(node, node.all_pus()) - cores_of(node, node.allowed);
  note(names, fresh.has_tiles, "tiles");
  note(names, fresh.in_mig, "mig");
  note(names, !node.devices.empty(), "devices");
  note(names, !node.devices.empty() && node.devices.front().subdevices > 1, "parts");
  note(names, !model.left_out.empty(), "left-out");
  note(names, node.cores.size() != 1, "cores");
  note(names, !taken.empty(), "taken");
  note(names, !whole.empty(), "whole");
  const std::size_t packages = std::max<std::size_t>(1, node.packages.size());
  // gpu_view is left out: written, it would apply to ranks that share devices too.
  values["defaults"] = fmt::format("{}{}", fresh.in_mig ? ", \"gpu_view\": \"own\"" : "",
                                   fresh.has_tiles ? ", \"device_mode\": \"tile\"" : "");
  values["left-out"] = joined(model.left_out, ", ");
  values["taken"] = taken.to_list();
  values["whole"] = whole.to_list();
  values["model"] = model.lines;
  values["packages"] = std::to_string(packages);
  values["twice"] = std::to_string(2 * packages);
}

// ---- the network ------------------------------------------------------------------------------------

/// The interfaces for the job's traffic: those of the best kind that ranks get.
struct Fabric {
  std::string kind;
  std::vector<std::string> names;    // of IP interfaces
  std::vector<std::string> domains;  // of libfabric, or verbs devices
  std::string provider;              // as libfabric reports it; "" without libfabric
  std::size_t count = 0;
};

Fabric fabric_of(const Topology& node) {
  Fabric fabric;
  const std::vector<std::string> idle = idle_nics(node);
  for (const std::string_view kind : kNicKinds) {
    for (std::size_t n = 0; n < idle.size(); ++n) {
      const Nic& nic = node.nics[n];
      if (nic.kind != kind || !idle[n].empty()) continue;
      ++fabric.count;
      if (!nic.name.empty()) fabric.names.push_back(nic.name);
      if (!nic.fabric.empty()) fabric.domains.push_back(nic.fabric);
      if (fabric.provider.empty()) fabric.provider = nic.provider;
    }
    if (fabric.count == 0) continue;
    fabric.kind = kind;
    break;
  }
  return fabric;
}

// "hsn" for hsn0 to hsn3, when no other name starts so; else "=a,b": whole names for NCCL.
std::string socket_value(const Topology& node, const Fabric& fabric) {
  std::string stem = fabric.names.front();
  while (!stem.empty() && stem.back() >= '0' && stem.back() <= '9') stem.pop_back();
  const auto begins = [&](const std::string& name) {
    return !stem.empty() && name.starts_with(stem);
  };
  const bool ours = std::all_of(fabric.names.begin(), fabric.names.end(), begins);
  const auto all = std::count_if(node.nics.begin(), node.nics.end(),
                                 [&](const Nic& nic) { return begins(nic.name); });
  if (ours && static_cast<std::size_t>(all) == fabric.names.size()) return stem;
  return fmt::format("={}", joined(fabric.names, ","));
}

// A name that is safe in comma lists and templates.
bool is_plain(const std::string& name) { return consists_of(name, "-_.:;"); }

std::string provider_of(const Fabric& fabric) {
  if (!fabric.provider.empty()) return fabric.provider;
  if (fabric.kind == "slingshot") return "cxi";
  if (fabric.kind == "efa") return "efa";
  if (fabric.kind == "omni-path") return "opx";
  return fabric.kind == "infiniband" || fabric.kind == "roce" ? "verbs;ofi_rxm" : "";
}

// What the rules of a new profile follow from. A rule that applies to any machine with that hardware is active in
// profiles/new/profile.txt, others are suggestions.
void add_network(const Fresh& fresh, Names& found, Values& values) {
  Fabric fabric = fabric_of(fresh.node);
  found.insert({fabric.kind, fresh.scheduler});
  note(found, !fabric.kind.empty(), "fabric");
  values["fabric"] = fmt::format(
      "{} of {}", fabric.count == 1 ? "one interface" : fmt::format("{} interfaces", fabric.count),
      fabric.kind);
  note(found, std::ranges::all_of(fabric.names, is_plain), "plain-names");
  for (std::vector<std::string>* names : {&fabric.names, &fabric.domains})
    std::erase_if(*names, [](const std::string& name) { return !is_plain(name); });
  if (!is_plain(fabric.provider)) fabric.provider.clear();
  if (!fresh.node.devices.empty()) {
    found.insert(fresh.node.devices.front().vendor);
    note(found, !found.contains("intel"), "nccl");  // or RCCL, which reads NCCL's variables
  }
  const bool interface = !fabric.names.empty();
  note(found, interface, "interface");
  note(found, interface && (fabric.kind != "ethernet" || fabric.count > 1), "sockets");
  note(found, fabric.count > 1, "several");
  note(found, (fabric.kind == "infiniband" || fabric.kind == "roce") && !fabric.domains.empty(),
       "adapters");
  const std::string provider = provider_of(fabric);
  note(found, !provider.empty(), "provider");
  if (interface) {
    values["interfaces"] = short_text(socket_value(fresh.node, fabric));
    values["interface"] = short_text(fabric.names.front());
  }
  values["provider"] = short_text(provider);
  values["adapters"] = short_text(fmt::format("={}", joined(fabric.domains, ",")));
  values["ports"] = short_text(fmt::format("{}:1", joined(fabric.domains, ":1,")));
}

// Conditions of profiles/new/profile.txt: "a b|c !d" is a, one of b and c, and not d.
bool all_found(std::string_view needs, const Names& names) {
  return std::ranges::all_of(split(needs, ' '), [&](std::string_view word) {
    return std::ranges::any_of(split(word, '|'), [&](std::string_view one) {
      const bool no = one.starts_with('!');
      return one.empty() || names.contains(one.substr(no ? 1 : 0)) != no;
    });
  });
}

}  // namespace

std::string unfinished_profile(const Fresh& fresh, const EnvSnapshot& env) {
  Names names;
  Values values = {{"from", printable(fresh.from)},
                   {"name", fresh.name},
                   {"doc", json_text("as found on " + fresh.host)}};
  add_launcher(fresh, names, values);
  add_site(fresh, env, names, values);
  add_node(fresh, names, values);
  add_network(fresh, names, values);
  std::string text;
  bool active = true;
  for (const std::string_view line : split(kNewProfile, '\n')) {
    if (line.starts_with("%if")) {
      active = all_found(trim(line.substr(3)), names);
      continue;
    }
    if (!active) continue;
    const std::string whole = filled(line, values);
    const std::size_t indent = line.find("// ");
    const bool is_prose =
        indent != std::string_view::npos && trim(line.substr(0, indent)).empty() &&
        std::string_view(" \"{}[]").find(line[indent + 3]) == std::string_view::npos;
    text += is_prose ? prose(std::string_view(whole).substr(indent + 3), static_cast<int>(indent))
                     : whole + "\n";
  }
  return text;
}

}  // namespace hpclaunch::authoring
