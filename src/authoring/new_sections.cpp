// The sections but "rules" and "expect".
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <cctype>

#include "authoring/command.h"
#include "authoring/new.h"
#include "hpclaunch/profile.h"

namespace hpclaunch::authoring {

namespace {

bool has_letter(const std::string& text) {
  return std::any_of(text.begin(), text.end(),
                     [](char c) { return std::isalpha(static_cast<unsigned char>(c)) != 0; });
}

// Digits become '*', invalid characters '?'. A name without letters is kept: its pattern would match any site.
std::string host_pattern(const std::string& host) {
  const bool keep_digits = !has_letter(host);
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

std::string launcher_text(const Fresh& fresh) {
  if (!fresh.launcher)
    return prose("No multi-node launcher found. Name the site's, or leave it to PATH.", 2) +
           lines_of("\"launcher\": \"slurm\",", 2, true);
  const LauncherFacts& found = fresh.launcher->facts;
  const bool in_job = !fresh.scheduler.empty();
  return prose(fmt::format("Launcher: found {}{}{}. {}", plain(found.path),
                           found.version.empty() ? "" : ", version ", plain(found.version),
                           in_job ? "Without this line hpclaunch searches PATH at every start."
                                  : "Found outside of a job: use the line if jobs have the same."),
               2) +
         lines_of(fmt::format("\"launcher\": \"{}\",", fresh.launcher->launcher->name), 2, !in_job);
}

std::string defaults_text(const Fresh& fresh) {
  if (fresh.node.devices.empty()) return "";
  const char* why =
      fresh.in_mig ? "Ranks see their own MIG instance only."
                   : "Ranks see all devices, device LOCAL_RANK is the nearest; ranks that share "
                     "devices see their own only. \"gpu_view\": \"own\" makes it so always.";
  std::string text = prose(why, 2);
  if (fresh.has_tiles) text += prose("One tile per rank; device mode gpu gives a whole card.", 2);
  // gpu_view is left out: written, it would apply to ranks that share devices too.
  return text + fmt::format("  \"defaults\": {{\"ranks_per_device\": 1{}{}}},\n",
                            fresh.in_mig ? ", \"gpu_view\": \"own\"" : "",
                            fresh.has_tiles ? ", \"device_mode\": \"tile\"" : "");
}

std::string scheduler_text(const Fresh& fresh) {
  if (!fresh.scheduler.empty()) return fmt::format("  \"scheduler\": \"{}\",\n", fresh.scheduler);
  return prose("Batch system: pbs, slurm, flux, lsf, cobalt or sge (written outside of a job).",
               2) +
         lines_of("\"scheduler\": \"slurm\",", 2, true);
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

// `numbered`: the model's cores are this node's, in the same order.
std::string reserved_text(const Topology& node, bool numbered) {
  const CpuSet missing = node.all_pus() - node.allowed;
  const std::string about =
      "Core numbers of this model: \"reserved\" for the system, \"services\" for a running "
      "service.";
  if (missing.empty()) {
    if (node.cores.size() == 1) return prose(about, 6);
    return prose(about + " All cores were available on this node; an example:", 6) +
           lines_of(R"("reserved": {"cores": "0", "why": "system services are pinned there"},)", 6,
                    true);
  }
  const CpuSet cores = cores_without(node);
  std::string text = prose(fmt::format("{} CPUs {} were not available: reserved by the system, or "
                                       "granted to other jobs. A guess:",
                                       about, missing.to_list()),
                           6);
  if (!numbered || cores.empty()) return text + prose("(none: not a set of whole cores)", 6);
  return text + lines_of(fmt::format("\"reserved\": {{\"cores\": \"{}\", \"why\": \"not granted to "
                                     "the job that wrote this\"}},",
                                     cores.to_list()),
                         6, true);
}

// What this node has none of, for a node type that has.
std::string absent_text(const std::string& model) {
  std::string text;
  const auto suggest = [&](const char* key, const char* what, const char* example) {
    if (model.find(key) == std::string::npos)
      text += prose(what, 6) + lines_of(fmt::format("{}: {},", key, example), 6, true);
  };
  suggest("\"devices\"",
          "No devices were found; where nodes of this type have any, in the driver's order:",
          R"({"vendor": "nvidia", "list": [{"numa": 0}]})");
  suggest("\"nics\"", "No interfaces were found that ranks use; an example:",
          R"([{"name": "hsn0", "kind": "slingshot", "numa": 0}])");
  return text;
}

std::string left_out_text(const std::vector<std::string>& interfaces) {
  if (interfaces.empty()) return "";
  return prose(fmt::format("Interfaces left out, because ranks do not get them: {}.",
                           fmt::join(interfaces, ", ")),
               2);
}

std::string lost_text(const std::vector<std::string>& lost) {
  if (lost.empty())
    return prose(
        "This model is exact: packages, NUMA nodes, L3 caches, cores, devices and interfaces.", 2);
  std::string text = prose(
      "This model is not exact: inside a job the node is probed (\"use\": \"live\"). What is lost:",
      2);
  for (const std::string& what : lost) text += prose("- " + what, 2);
  return text;
}

}  // namespace

std::string head_section(const Fresh& fresh) {
  const auto command = [&](const std::string& words) {
    return fmt::format("//      {}\n", fmt::format(fmt::runtime(words), fresh.name));
  };
  std::string text =
      prose(fmt::format("Profile written by \"hpclaunch profile new\" from {}. Reference: "
                        "docs/reference/profile-format.md.",
                        plain(fresh.from)),
            0) +
      "//\n" +
      prose(
          "Edit first: \"doc\"; \"detect\", the signals of this site; \"launcher\" and "
          "\"scheduler\"; \"reserved\" in \"nodes\"; \"rules\", the site's recommendations.",
          0) +
      prose(
          "Commented lines that start with a quote or a bracket are suggestions: remove the // to "
          "use them.",
          0) +
      prose("Save it as " + fresh.name + ".json, then:", 0);
  for (const char* words :
       {"hpclaunch profile validate ./{0}.json", "hpclaunch profile test ./{0}.json",
        "hpclaunch profile schema > profile-schema.json    # for editors, see $schema",
        "hpclaunch plan --profile ./{0}.json -- python3 train.py"})
    text += command(words);
  text += fmt::format(
      "{{\n  \"$schema\": \"profile-schema.json\",\n  \"schema\": 1,\n  \"name\": \"{}\",\n  "
      "\"doc\": {},\n",
      fresh.name, json_text("as found on " + fresh.host));
  if (fresh.has_tiles)
    text += prose(
                "Device modes for cards and tiles, with their variables: hpclaunch profile show "
                "intel-max.",
                2) +
            "  \"extends\": [\"intel-max\"],\n";
  return text + scheduler_text(fresh) + launcher_text(fresh) + defaults_text(fresh) + "\n";
}

std::string detect_section(const Fresh& fresh, const EnvSnapshot& env) {
  const auto found = signals(env);
  std::string text =
      prose(
          "Signals of this site (docs/reference/profile-format.md, detect). One with \"proves\": "
          "false is a hint; without any other the profile is used only with --profile.",
          2) +
      "  \"detect\": [\n" +
      prose(found.empty() ? "This shell has no variable that names a cluster; an example:"
                          : "Variables of this shell; use those that only this site has:",
            4);
  if (found.empty())
    text += lines_of(R"({"env": "SLURM_CLUSTER_NAME", "like": "name-of-the-cluster"},)", 4, true);
  for (const auto& [name, like] : found)
    text +=
        lines_of(fmt::format("{{\"env\": \"{}\", \"like\": {}}},", name, json_text(like)), 4, true);
  text += prose("Other sites may have such host names.", 4);
  return text + fmt::format("    {{\"host\": {}, \"proves\": false}}\n  ],\n\n",
                            json_text(host_pattern(fresh.host)));
}

std::string stacks_section(const EnvSnapshot& env) {
  std::string name = "framework";
  std::string version = "2025";
  for (const auto& [module, loaded] : loaded_modules(env)) {
    if (!is_plain_module(module, loaded)) continue;
    name = module;
    version = loaded;
    break;
  }
  return prose(
             "Software stacks with rules of their own (docs/reference/profile-format.md, stacks): "
             "the first that applies, or \"--stack NAME\". An example:",
             2) +
         lines_of(
             fmt::format("\"stacks\": [\n  {{\"name\": \"current\", \"when\": [{{\"module.{}\": "
                         "{{\"ge\": {}}}}}]}},\n  {{\"name\": \"older\"}}\n],",
                         name, json_text(version)),
             2, true) +
         "\n";
}

std::string nodes_section(const Fresh& fresh) {
  const NodeText model = node_model_text(fresh.node);
  return prose(
             "Node types (docs/reference/profile-format.md, nodes). Each further one is an entry "
             "with a \"when\", or selected by \"--node-type NAME\".",
             2) +
         left_out_text(model.left_out) + lost_text(model.lost) +
         fmt::format("  \"nodes\": [\n    {{\n      \"name\": \"compute\",\n      \"doc\": {},\n",
                     json_text("as found on " + fresh.host)) +
         prose("Number of nodes, if known:", 6) + lines_of("\"count\": 1,", 6, true) +
         reserved_text(fresh.node, model.numbered) + absent_text(model.lines) +
         fmt::format("      \"use\": \"{}\",\n{}\n    }}\n  ],\n\n",
                     model.lost.empty() ? "model" : "live", model.lines);
}

std::string modes_section(const Fresh& fresh) {
  const Topology& node = fresh.node;
  if (node.devices.empty()) return "";
  std::string text = prose(
      "Device modes: what one rank gets (docs/reference/profile-format.md, device_modes). \"unit\" "
      "is device or subdevice; \"mask_item\" is the driver's name of it.",
      2);
  if (fresh.in_mig)
    return text +
           prose(
               "These devices are divided into MIG instances, which masks name by UUID. Inside a "
               "job hpclaunch takes the instances of the node or the batch system.",
               2) +
           "\n";
  if (fresh.has_tiles)
    return text +
           prose("Modes tile (default), tile-composite and gpu come from \"intel-max\".", 2) + "\n";
  std::string list =
      "\"device_modes\": [\n  {\"name\": \"gpu\", \"unit\": \"device\", \"doc\": \"a rank gets a "
      "whole device\"}";
  if (node.devices.front().subdevices > 1) {
    text += prose("These devices have parts: check \"mask_item\" with the driver before use.", 2);
    list +=
        ",\n  {\"name\": \"part\", \"unit\": \"subdevice\", \"mask_item\": \"${unit}\", \"doc\": "
        "\"a rank gets a part of one\"}";
  }
  return text + lines_of(list + "\n],", 2, true) + "\n";
}

std::string bindings_section(const Fresh& fresh) {
  const std::size_t packages = std::max<std::size_t>(1, fresh.node.packages.size());
  return prose(
             "CPU binding rules (docs/reference/profile-format.md, bindings). Without one, ranks "
             "share the cores nearest to their devices evenly. An example: ranks share each "
             "package's cores.",
             2) +
         lines_of(
             fmt::format(
                 "\"bindings\": [\n  {{\n    \"id\": \"share-packages\", \"when\": "
                 "{{\"ranks_per_node\": [{}, {}]}},\n    \"per\": \"package\", \"first\": 0, "
                 "\"split\": true,\n    \"why\": \"ranks of a package share its cores\"\n  }}\n],",
                 packages, 2 * packages),
             2, true) +
         "\n";
}

}  // namespace hpclaunch::authoring
