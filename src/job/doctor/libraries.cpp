// Which communication libraries a Python's torch would load, and whether plug-ins can be loaded. Torch is not imported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>

#include "hpclaunch/probe.h"
#include "hpclaunch/text.h"
#include "job/doctor/doctor.h"

namespace hpclaunch::job {

namespace fs = std::filesystem;

namespace {

constexpr std::string_view kCommunication[] = {"libnccl.so",     "librccl.so", "libccl.so",
                                               "libfabric.so",   "libmpi.so",  "libmpich.so",
                                               "libmpi_intel.so"};

bool is_communication(std::string_view name) {
  return std::ranges::any_of(kCommunication,
                             [&](std::string_view one) { return name.starts_with(one); });
}

std::string major_name(std::string_view name) {  // "libnccl.so.2" of "libnccl.so.2.20.5"
  const std::size_t so = name.find(".so.");
  if (so == std::string_view::npos) return std::string(name);
  return std::string(name.substr(0, name.find('.', so + 4)));
}

// Files named like `name`, where the loader might look: LD_LIBRARY_PATH and beside what torch brings along.
std::vector<std::string> other_copies(const Loaded& loaded,
                                      const std::vector<std::string>& folders) {
  std::vector<std::string> copies;
  const std::string real = sys::real_path(loaded.path);
  for (const std::string& folder : folders) {
    const std::string path = fmt::format("{}/{}", folder, loaded.name);
    std::error_code ignored;
    if (!fs::exists(path, ignored)) continue;
    const std::string other = sys::real_path(path);
    if (other != real && std::ranges::count(copies, path) == 0) copies.push_back(path);
  }
  return copies;
}

std::vector<std::string> search_folders(const EnvSnapshot& env, const std::string& torch) {
  std::vector<std::string> folders;
  const std::string path = env.get("LD_LIBRARY_PATH");
  for (const std::string_view one : split(path, ':'))
    if (!one.empty()) folders.emplace_back(one);
  if (torch.empty()) return folders;
  folders.push_back(torch + "/lib");
  const std::string beside = torch.substr(0, torch.rfind('/')) + "/nvidia";
  if (const auto names = sys::list_directory(beside))
    for (const std::string& name : *names)
      folders.push_back(fmt::format("{}/{}/lib", beside, name));
  return folders;
}

struct TorchOf {
  std::string folder;   // of the package
  std::string version;  // "2.9.0+cu128, CUDA 12.8"
  std::string prefix;
  std::string python = {};  // "3.11"
};

}  // namespace

std::string version_value(std::string_view text, std::string_view name) {
  for (const std::string_view line : split(text, '\n')) {
    if (!line.starts_with(name)) continue;
    const std::size_t equals = line.find('=');
    if (equals == std::string_view::npos ||
        std::string_view(" :=").find(line[name.size()]) == std::string_view::npos)
      continue;
    const std::string_view value = trim(line.substr(equals + 1));
    if (value.size() > 2 && (value.front() == '\'' || value.front() == '"'))
      return std::string(value.substr(1, value.size() - 2));
  }
  return "";
}

namespace {

Result<TorchOf> find_torch(const std::string& python, const EnvSnapshot& env) {
  constexpr double kSeconds = 10;
  constexpr const char* kCode =
      "import importlib.util as u, sys\ns = u.find_spec('torch')\n"
      "print(sys.prefix)\nprint('%d.%d' % "
      "sys.version_info[:2])\nprint(s.submodule_search_locations[0] if s and "
      "s.submodule_search_locations else '')";
  const Result<sys::Captured> told = sys::capture({python, "-c", kCode}, kSeconds, &env);
  if (!told) return told.error();
  const std::vector<std::string_view> lines = split(told->out, '\n');
  if (told->status != 0 || lines.size() < 3)
    return Error{ErrorKind::system,
                 fmt::format("{} does not start: {}", python, told->complaint())};
  TorchOf found{std::string(lines[2]), "", std::string(lines[0]), std::string(lines[1])};
  if (found.folder.empty()) return found;
  if (const auto text = sys::read_file(found.folder + "/version.py", 1u << 20)) {
    found.version = version_value(*text, "__version__");
    for (const auto& [name, title] :
         {std::pair("cuda", "CUDA"), std::pair("hip", "HIP"), std::pair("xpu", "XPU")})
      if (const std::string value = version_value(*text, name); !value.empty())
        found.version += fmt::format(", {} {}", title, value);
  }
  return found;
}

// The extension module that "import torch" loads first.
std::string extension_of(const std::string& folder) {
  if (const auto names = sys::list_directory(folder))
    for (const std::string& name : *names)
      if (name.starts_with("_C.") && name.ends_with(".so"))
        return fmt::format("{}/{}", folder, name);
  return "";
}

void report_libraries(Examination& doctor, const LoaderAnswer& answer,
                      const std::vector<std::string>& folders) {
  std::vector<std::string> missing;
  for (const Loaded& one : answer.libraries)
    if (one.path.empty()) missing.push_back(one.name);
  if (!missing.empty())
    doctor.fault(
        "torch", Severity::error, "library-missing",
        fmt::format("torch needs {}, which the loader does not find", fmt::join(missing, ", ")),
        "load the modules that torch was built with, or add their folder to LD_LIBRARY_PATH");
  for (const std::string& complaint : answer.complaints)
    doctor.fault("torch", Severity::error, "library-version", complaint,
                 "a newer system or compiler module, or a torch built for this one");
  std::map<std::string, std::string> seen;  // name without minor versions -> path
  for (const Loaded& one : answer.libraries) {
    if (!is_communication(one.name) || one.path.empty()) continue;
    doctor.sound("torch", fmt::format("{} is {}", one.name, sys::real_path(one.path)));
    if (one.name.starts_with("libnccl.so") || one.name.starts_with("librccl.so"))
      doctor.collectives = one.path;
    const auto [before, added] = seen.emplace(major_name(one.name), sys::real_path(one.path));
    std::vector<std::string> copies = other_copies(one, folders);
    if (!added && before->second != sys::real_path(one.path)) copies.push_back(before->second);
    if (!copies.empty())
      doctor.fault("torch", Severity::warning, "two-libraries",
                   fmt::format("{} is also at {}: which one is used depends on LD_LIBRARY_PATH",
                               one.name, fmt::join(copies, ", ")),
                   "unload the module that adds it, or take its folder out of LD_LIBRARY_PATH");
  }
}

// A plug-in that NCCL or RCCL opens by name.
void examine_plugin(Examination& doctor, const std::string& path) {
  const Result<LoaderAnswer> answer = ask_loader(path, doctor.env());
  if (!answer)
    return doctor.fault("plug-in", Severity::error, "plugin-broken",
                        fmt::format("{}: {}", path, answer.error().message),
                        "reinstall it, or unload its module");
  std::vector<std::string> missing;
  for (const Loaded& one : answer->libraries)
    if (one.path.empty()) missing.push_back(one.name);
  missing.insert(missing.end(), answer->complaints.begin(), answer->complaints.end());
  if (!missing.empty())
    return doctor.fault(
        "plug-in", Severity::error, "plugin-broken",
        fmt::format("{} cannot be loaded: {}; NCCL then uses sockets without a word", path,
                    fmt::join(missing, ", ")),
        "load the module of what it needs, such as libfabric");
  const std::set<long> has = network_interfaces(path);
  const std::set<long> wants = network_interfaces(doctor.collectives);
  const bool fits = has.empty() || wants.empty() ||
                    std::ranges::any_of(has, [&](long one) { return wants.contains(one); });
  if (!fits)
    return doctor.fault(
        "plug-in", Severity::error, "plugin-version",
        fmt::format("{} has version {} of NCCL's network interface, and {} looks for {}: sockets "
                    "are used",
                    path, fmt::join(has, ", "), doctor.collectives, fmt::join(wants, ", ")),
        *has.rbegin() < *wants.begin() ? "a newer plug-in, such as a newer module of aws-ofi-nccl"
                                       : "a newer torch, or an older plug-in");
  doctor.plugin = path;
  doctor.sound("plug-in", path);
}

// Names that NCCL tries. Source: NVIDIA/nccl src/plugin/net.cc and plugin_open.cc; RCCL has the same.
std::vector<std::string> plugin_names(const EnvSnapshot& env) {
  const std::string wanted = env.get("NCCL_NET_PLUGIN");
  if (wanted == "none") return {};
  if (wanted.empty()) return {"libnccl-net.so", "librccl-net.so"};
  return {wanted, fmt::format("libnccl-net-{}.so", wanted),
          fmt::format("librccl-net-{}.so", wanted)};
}

}  // namespace

void examine_python(Examination& doctor, const std::string& typed) {
  const Result<std::string> python =
      sys::find_program(typed.empty() ? "python3" : typed, doctor.env().get("PATH"));
  if (!python)
    return doctor.fault("python", typed.empty() ? Severity::note : Severity::error, "no-python",
                        python.error().message,
                        "load a module, activate an environment, or --python PATH");
  const Result<TorchOf> torch = find_torch(*python, doctor.env());
  if (!torch)
    return doctor.fault("python", Severity::error, "python-broken", torch.error().message,
                        "PYTHONHOME and PYTHONPATH may be another version's");
  doctor.sound("python", fmt::format("{}, prefix {}", *python, torch->prefix));
  doctor.torch = torch->folder;
  examine_python_paths(doctor, {*python, torch->prefix, torch->python, torch->folder});
  if (torch->folder.empty())
    return doctor.fault("torch", Severity::note, "no-torch",
                        fmt::format("{} has no torch", *python),
                        "--python PATH of the job's environment");
  doctor.sound("torch",
               fmt::format("{} in {}",
                           torch->version.empty() ? "a version without version.py" : torch->version,
                           torch->folder));
  const std::string extension = extension_of(torch->folder);
  if (extension.empty())
    return doctor.fault("torch", Severity::error, "torch-broken",
                        fmt::format("{} has no extension module _C", torch->folder),
                        "install torch again");
  const Result<LoaderAnswer> answer = ask_loader(extension, doctor.env());
  if (!answer)
    return doctor.fault("torch", Severity::error, "torch-broken",
                        fmt::format("{}: {}", extension, answer.error().message),
                        "install torch again");
  report_libraries(doctor, *answer, search_folders(doctor.env(), torch->folder));
}

void examine_network_libraries(Examination& doctor, const Plan* plan) {
  const EnvSnapshot& env = doctor.env();
  const auto asked = [&](const char* name) {
    const Setting* const setting = plan == nullptr ? nullptr : plan->find_env(name);
    const auto* text = setting == nullptr ? nullptr : std::get_if<std::string>(&setting->value());
    return text == nullptr ? env.get(name) : *text;
  };
  bool found = false;
  const std::vector<std::string> folders = search_folders(env, "");
  for (const std::string& name : plugin_names(env))
    for (const std::string& folder : folders) {
      std::error_code ignored;
      const std::string path = name.starts_with('/') ? name : fmt::format("{}/{}", folder, name);
      if (found || !fs::exists(path, ignored)) continue;
      found = true;
      examine_plugin(doctor, path);
    }
  const std::string net = asked("NCCL_NET");
  const bool wants = !env.get("NCCL_NET_PLUGIN").empty() && env.get("NCCL_NET_PLUGIN") != "none";
  const bool own = net.empty() || net == "IB" || net == "Socket";
  if (!found && (wants || !own))
    doctor.fault(
        "plug-in", Severity::error, "plugin-missing",
        fmt::format("{} asks for a network plug-in, and LD_LIBRARY_PATH has none",
                    wants ? "NCCL_NET_PLUGIN=" + env.get("NCCL_NET_PLUGIN") : "NCCL_NET=" + net),
        "load its module (aws-ofi-nccl, aws-ofi-rccl)");
  const std::string wanted = asked("FI_PROVIDER");
  const Result<std::vector<std::string>> offered = libfabric_providers();
  if (!offered) {
    if (wanted.empty())
      return doctor.sound("libfabric", "not installed, or not on LD_LIBRARY_PATH");
    return doctor.fault("libfabric", Severity::error, "provider-missing",
                        fmt::format("FI_PROVIDER={}: {}", wanted, offered.error().message),
                        offered.error().hint);
  }
  const std::string all = fmt::format("{}", fmt::join(*offered, ", "));
  if (wanted.empty() || wanted.starts_with('^'))
    return doctor.sound("libfabric", "providers " + all);
  std::vector<std::string> lacking;
  for (const std::string_view one : split(wanted, ',')) {
    const std::string name = to_lower(one);
    const auto serves = [&](const std::string& provider) {  // "verbs;ofi_rxm" is verbs
      return provider == name || std::ranges::count(split(provider, ';'), name) > 0;
    };
    if (std::ranges::none_of(*offered, serves)) lacking.emplace_back(one);
  }
  if (lacking.size() == split(wanted, ',').size())
    return doctor.fault("libfabric", Severity::error, "provider-missing",
                        fmt::format("FI_PROVIDER={}: libfabric here offers {}", wanted, all),
                        "load the site's libfabric; on a login node the fabric may be missing");
  doctor.sound("libfabric", fmt::format("FI_PROVIDER={} is offered", wanted));
}

}  // namespace hpclaunch::job
