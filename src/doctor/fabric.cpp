// The network plug-in that NCCL or RCCL would open, as the dynamic loader finds it beside torch; libfabric, and the
// providers that it offers.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>

#include "doctor/examination.h"
#include "hpclaunch/probe.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

// NCCL_NET_PLUGIN or NCCL_NET that only a plug-in can serve, as NAME=VALUE; "" for neither.
std::string asked_plugin(const EnvSnapshot& env) {
  const std::string plugin = env.get("NCCL_NET_PLUGIN");
  if (plugin == "none") return "";
  if (!plugin.empty()) return "NCCL_NET_PLUGIN=" + plugin;
  const std::string net = env.get("NCCL_NET");
  return net.empty() || net == "IB" || net == "Socket" ? "" : "NCCL_NET=" + net;
}

// Names that NCCL tries. Source: NVIDIA/nccl src/plugin/net.cc and plugin_open.cc; RCCL has the same.
std::vector<std::string> plugin_names(const EnvSnapshot& env) {
  const std::string wanted = env.get("NCCL_NET_PLUGIN");
  if (wanted == "none") return {};
  if (wanted.empty()) return {"libnccl-net.so", "librccl-net.so"};
  return {wanted, fmt::format("libnccl-net-{}.so", wanted),
          fmt::format("librccl-net-{}.so", wanted)};
}

struct Plugin {
  std::string path;
  LoaderAnswer answer;  // of the loader, for torch with it
};

// The loader names no folder of what it refuses.
std::string refused_file(const std::string& name, const std::string& folders) {
  for (const std::string_view folder : split(folders, ':')) {
    std::string path = fmt::format("{}/{}", folder, name);
    std::error_code ignored;
    if (!folder.empty() && std::filesystem::exists(path, ignored)) return path;
  }
  return name;
}

// The first that the loader finds; without a path: none.
Plugin find_plugin(const Examination& doctor) {
  for (const std::string& name : plugin_names(doctor.env())) {
    Result<LoaderAnswer> answer = ask_loader(doctor.program(), doctor.env(), name);
    if (!answer || answer->refused.starts_with("cannot open shared object")) continue;
    std::string path = answer->path_of(name);
    if (path.empty()) path = refused_file(name, doctor.env().get("LD_LIBRARY_PATH"));
    return {std::move(path), *std::move(answer)};
  }
  return {};
}

// What the plug-in needs and neither the loader nor torch has.
std::vector<std::string> missing_for(const Plugin& plugin, const LoaderAnswer& torch) {
  std::vector<std::string> missing;
  if (!plugin.answer.refused.empty()) missing.push_back(plugin.answer.refused);
  for (const Loaded& one : plugin.answer.libraries) {
    const auto same = [&](const Loaded& other) { return other.name == one.name; };
    if (one.path.empty() && plugin.answer.path_of(one.name).empty() &&
        std::ranges::none_of(torch.libraries, same))
      missing.push_back(one.name);
  }
  for (const std::string& complaint : plugin.answer.complaints)
    if (std::ranges::count(torch.complaints, complaint) == 0) missing.push_back(complaint);
  return missing;
}

void report_plugin(Examination& doctor, const Plugin& plugin, const std::string& collectives) {
  const std::vector<std::string> missing = missing_for(plugin, doctor.loaded);
  if (!missing.empty())
    return doctor.fault(
        "plug-in", Severity::error, "plugin-broken",
        fmt::format("{} cannot be loaded: {}; NCCL then uses sockets without a word", plugin.path,
                    fmt::join(missing, ", ")),
        "load the module of what it needs, such as libfabric, or reinstall it");
  const std::set<long> has = network_interfaces(plugin.path);
  const std::set<long> wants = network_interfaces(collectives);
  const bool fits = has.empty() || wants.empty() ||
                    std::ranges::any_of(has, [&](long one) { return wants.contains(one); });
  if (!fits)
    return doctor.fault(
        "plug-in", Severity::error, "plugin-version",
        fmt::format("{} has version {} of NCCL's network interface, and {} looks for {}: sockets "
                    "are used",
                    plugin.path, fmt::join(has, ", "), collectives, fmt::join(wants, ", ")),
        *has.rbegin() < *wants.begin() ? "a newer plug-in, such as a newer module of aws-ofi-nccl"
                                       : "a newer torch, or an older plug-in");
  doctor.sound("plug-in", plugin.path);
}

// Returns the libfabric that comes with the plug-in; "" for none.
std::string examine_plugin(Examination& doctor, std::string_view kind) {
  std::string collectives = doctor.loaded.path_of("libnccl.so");
  if (collectives.empty()) collectives = doctor.loaded.path_of("librccl.so");
  const std::string asked = asked_plugin(doctor.env());
  const bool linked_in =
      doctor.built_for.starts_with("CUDA") || doctor.built_for.starts_with("HIP");
  const bool cannot_have = !doctor.torch.empty() && !linked_in;
  if (collectives.empty() && (asked.empty() || cannot_have)) return "";
  const Plugin plugin = find_plugin(doctor);
  if (!collectives.empty()) {
    doctor.versions["nccl"] = version_behind(collectives, "NCCL version ");
    doctor.versions["rccl"] = version_behind(collectives, "RCCL version ");
  }
  if (!plugin.path.empty()) {
    doctor.versions["aws-ofi-nccl"] = version_behind(plugin.path, "aws-ofi-nccl ");
    report_plugin(doctor, plugin, collectives);
    return plugin.answer.path_of("libfabric.so");
  }
  const bool refused = doctor.env().get("NCCL_NET_PLUGIN") == "none" ||
                       !doctor.env().get("NCCL_NET").empty();  // IB or Socket
  if (!asked.empty() || (!kind.empty() && !refused))
    doctor.fault("plug-in", asked.empty() ? Severity::warning : Severity::error, "plugin-missing",
                 fmt::format("{}, and the loader finds no network plug-in: sockets are used",
                             asked.empty() ? fmt::format("the node has {}", kind) : asked),
                 "load its module (aws-ofi-nccl, aws-ofi-rccl)");
  return "";
}

// Whether libfabric offers what an entry of FI_PROVIDER names: "verbs;ofi_rxm" serves verbs.
bool is_offered(std::string_view entry, const std::vector<std::string>& providers) {
  const std::string name = to_lower(entry);
  return std::ranges::any_of(providers, [&](const std::string& one) {
    return one == name || std::ranges::count(split(one, ';'), name) > 0;
  });
}

}  // namespace

bool asks_for_fabric(const EnvSnapshot& env) {
  return !env.get("FI_PROVIDER").empty() || !asked_plugin(env).empty();
}

void examine_fabric(Examination& doctor, std::string_view kind) {
  constexpr const char* kName = "libfabric.so.1";
  constexpr const char* kFix =
      "load the site's libfabric; on a login node the fabric may be missing";
  std::string library = examine_plugin(doctor, kind);
  if (library.empty()) library = doctor.loaded.path_of("libfabric.so");
  if (library.empty())
    if (const auto answer = ask_loader(doctor.program(), doctor.env(), kName))
      library = answer->path_of(kName);
  const std::string wanted = doctor.env().get("FI_PROVIDER");
  const Result<FabricLibrary> found = libfabric_offer(library.empty() ? kName : library);
  if (!found && wanted.empty()) return doctor.sound("libfabric", found.error().message);
  if (!found)
    return doctor.fault("libfabric", Severity::error, "provider-missing",
                        fmt::format("FI_PROVIDER={}: {}", wanted, found.error().message),
                        found.error().hint.empty() ? kFix : found.error().hint);
  doctor.versions["libfabric"] = found->version;
  const std::string title = fmt::format("libfabric {} ({})", found->version, library);
  const std::string all = fmt::format("{}", fmt::join(found->providers, ", "));
  const std::vector<std::string_view> entries = split(wanted, ',');
  if (!wanted.empty() && !wanted.starts_with('^') &&
      std::ranges::none_of(entries,
                           [&](std::string_view one) { return is_offered(one, found->providers); }))
    return doctor.fault("libfabric", Severity::error, "provider-missing",
                        fmt::format("FI_PROVIDER={}: {} offers {}", wanted, title, all), kFix);
  doctor.sound("libfabric", fmt::format("{}, providers {}", title, all));
}

}  // namespace hpclaunch::job
