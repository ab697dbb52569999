// A new profile up to its golden cases: profiles/new/profile.txt with what was found filled in.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "authoring/command.h"
#include "authoring/new.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"

namespace hpclaunch::authoring {

namespace {

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
  const auto is_part = [](char c) {
    return std::isalnum(static_cast<unsigned char>(c)) != 0 || c == '-';
  };
  return !version.empty() && std::isdigit(static_cast<unsigned char>(version.front())) != 0 &&
         version.find_first_not_of("0123456789.") == std::string::npos &&
         std::all_of(name.begin(), name.end(), is_part);
}

// Cores of which no thread is in the cgroup or affinity mask, by the core numbers of the model.
CpuSet cores_without(const Topology& node) {
  CpuSet cores;
  for (std::size_t c = 0; c < node.cores.size(); ++c)
    if (!node.allowed.intersects(node.cores[c].pus)) cores.add(static_cast<int>(c));
  return cores;
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
  values["program"] = fmt::format("{}{}{}", plain(found.path),
                                  found.version.empty() ? "" : ", version ", plain(found.version));
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
  const CpuSet whole = cores_without(node);
  const auto note = [&](bool there, const char* name) {
    if (there) names.insert(name);
  };
  note(fresh.has_tiles, "tiles");
  note(fresh.in_mig, "mig");
  note(!node.devices.empty(), "devices");
  note(!node.devices.empty() && node.devices.front().subdevices > 1, "parts");
  note(!model.left_out.empty(), "left-out");
  note(model.lost.empty(), "exact");
  note(node.cores.size() != 1, "cores");
  note(!taken.empty(), "taken");
  note(model.numbered && !whole.empty(), "whole");
  note(model.lines.find("\"devices\"") != std::string::npos, "model-devices");
  note(model.lines.find("\"nics\"") != std::string::npos, "model-nics");
  std::string lost;
  for (const std::string& what : model.lost) lost += prose("- " + what, 2);
  const std::size_t packages = std::max<std::size_t>(1, node.packages.size());
  // gpu_view is left out: written, it would apply to ranks that share devices too.
  values["defaults"] = fmt::format("{}{}", fresh.in_mig ? ", \"gpu_view\": \"own\"" : "",
                                   fresh.has_tiles ? ", \"device_mode\": \"tile\"" : "");
  values["left-out"] = fmt::format("{}", fmt::join(model.left_out, ", "));
  values["lost"] = trim(lost).empty() ? "" : lost.substr(0, lost.size() - 1);
  values["taken"] = taken.to_list();
  values["whole"] = whole.to_list();
  values["model"] = model.lines;
  values["packages"] = std::to_string(packages);
  values["twice"] = std::to_string(2 * packages);
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
  Values values = {{"from", plain(fresh.from)},
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
