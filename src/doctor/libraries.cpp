// Which communication libraries a Python's torch would load. Torch is not imported.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <filesystem>
#include <map>
#include <tuple>

#include "doctor/examination.h"
#include "hpclaunch/text.h"

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
  std::string python = {};     // "3.11"
  std::string built_for = {};  // "CUDA 12.8"
  knowledge::Versions versions = {};
};

// The value of NAME in torch/version.py: NAME = 'x', or NAME: Optional[str] = 'x'.
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
    found.versions["torch"] = found.version;
    for (const auto& [name, title, component] :
         {std::tuple("cuda", "CUDA", "cuda"), {"hip", "HIP", "rocm"}, {"xpu", "XPU", "xpu"}})
      if (const std::string value = version_value(*text, name); !value.empty()) {
        found.built_for = fmt::format("{} {}", title, value);
        found.versions[component] = value;
      }
    if (!found.built_for.empty()) found.version += ", " + found.built_for;
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

void report_libraries(Examination& doctor, const std::vector<std::string>& folders) {
  const LoaderAnswer& answer = doctor.loaded;
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
  doctor.torch = extension;
  doctor.built_for = torch->built_for;
  doctor.versions = torch->versions;
  doctor.loaded = *answer;
  report_libraries(doctor, search_folders(doctor.env(), torch->folder));
}

}  // namespace hpclaunch::job
