// The machine as a World, and one that a golden case makes up.
#include "hpclaunch/world.h"

#include <fmt/format.h>
#include <sys/stat.h>

#include <algorithm>
#include <filesystem>
#include <set>

#include "hpclaunch/paths.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

namespace fs = std::filesystem;

std::string stamp_of(const std::string& path) {
  struct stat info {};
  stat(path.c_str(), &info);
  return fmt::format("{} {}.{}", info.st_size, info.st_mtim.tv_sec, info.st_mtim.tv_nsec);
}

constexpr const char* kAddToCase = "add it to the case's \"files\" or \"programs\"";

Error none_in_case(const std::string& path) {
  return {ErrorKind::not_found, fmt::format("\"{}\" is not in the case", path), kAddToCase};
}

// The files and programs of a case. `there`: every file, and every directory above one.
struct Disk {
  std::string directory;
  std::map<std::string, std::string> files, programs;
  std::set<std::string> directories;

  std::string full(const std::string& path) const { return absolute_from(directory, path); }

  FileKind look(const std::string& typed) const {
    const std::string path = full(typed);
    if (files.contains(path)) return FileKind::program;
    return directories.contains(path) ? FileKind::directory : FileKind::nothing;
  }

  Result<std::string> find(const std::string& name, std::string_view path) const {
    if (name.find('/') != std::string::npos && look(name) == FileKind::program) return full(name);
    if (name.find('/') == std::string::npos) {
      for (const std::string_view folder : split(path, ':'))
        if (std::string file = fmt::format("{}/{}", folder, name);
            !folder.empty() && look(file) == FileKind::program)
          return full(file);
      if (programs.contains(name)) return name;
    }
    return Error{ErrorKind::program_not_found,
                 fmt::format("program \"{}\" is not in the case", name), kAddToCase};
  }

  Result<std::vector<std::string>> list(const std::string& typed) const {
    const std::string folder = full(typed) + "/";
    std::set<std::string> names;
    for (const auto& [path, text] : files)
      if (path.starts_with(folder))
        names.insert(path.substr(folder.size(), path.find('/', folder.size()) - folder.size()));
    return std::vector<std::string>(names.begin(), names.end());
  }
};

}  // namespace

FileKind file_kind(const std::string& path) {
  if (sys::is_executable(path)) return FileKind::program;
  std::error_code failed;
  const fs::file_status found = fs::status(path, failed);
  if (found.type() == fs::file_type::not_found) return FileKind::nothing;
  return fs::is_directory(found) ? FileKind::directory : FileKind::file;  // or we may not look
}

std::string World::absolute(const std::string& path) const {
  return absolute_from(directory, path);
}

World this_world(EnvSnapshot env) {
  World world;
  world.env = std::move(env);
  world.host = sys::host_name();
  world.user_id = sys::user_id();
  world.user = fmt::format("uid{}", world.user_id);
  world.directory = sys::working_directory();
  world.installation = sys::own_directory();
  world.find_program = sys::find_program;
  world.look = file_kind;
  world.read_file = sys::read_file;
  world.list_directory = sys::list_directory;
  world.real_path = sys::real_path;
  world.stamp = stamp_of;
  world.capture = [](const auto& argv, double seconds, const EnvSnapshot* in) {
    return sys::capture(argv, seconds, in);
  };
  world.resolve = sys::resolve;
  world.own_addresses = sys::own_addresses;
  world.outward_address = sys::outward_address;
  world.ephemeral_ports = sys::ephemeral_ports;
  world.claim_port = sys::claim_port;
  world.running_launches = running_launches;
  world.clock = [] { return static_cast<long long>(sys::wall_clock()); };
  world.affinity = sys::affinity;
  world.probe_node = [](double seconds, const std::function<void()>& meanwhile) {
    return hpclaunch::probe_node(VendorLibraries::if_needed, seconds, meanwhile);
  };
  world.device_files = [](bool to_open) { return hpclaunch::device_files(to_open); };
  world.read_topology = hpclaunch::read_topology;
  return world;
}

World made_up_world(std::shared_ptr<const Profile> profile, const CaseWorld& said) {
  constexpr long long kNoon = 1'767'268'800;  // of 2026-01-01: any time, the same in every run
  World world;
  std::map<std::string, std::optional<std::string>> env(said.env.begin(), said.env.end());
  const Scheduler* system = find_row<Scheduler>(profile->scheduler);
  if (system != nullptr && !said.job_id.empty()) env.emplace(system->job_variable, said.job_id);
  if (!said.user.empty()) env.insert_or_assign("USER", said.user);
  world.env = EnvSnapshot().with(env);
  world.job_id = said.job_id;
  world.user = "user";
  world.user_id = 1000;
  world.directory = world.env.get("PWD", "/");
  world.port_key = profile->name;
  world.launcher_version = said.launcher_version;
  world.hosts = said.hosts;
  world.profile = std::move(profile);
  world.profile_why = "named by the case";
  auto disk = std::make_shared<Disk>();
  disk->directory = world.directory;
  disk->programs = said.programs;
  std::map<std::string, std::string> files = said.files;
  for (const auto& [name, version] : said.programs)
    if (name.find('/') != std::string::npos) files.emplace(name, "");
  for (const auto& [path, text] : files) {
    const std::string file = disk->full(path);
    disk->files[file] = text;
    for (std::size_t end = file.rfind('/'); end != std::string::npos && end > 0;
         end = file.rfind('/', end - 1))
      disk->directories.insert(file.substr(0, end));
  }
  world.find_program = [disk](const std::string& name, std::string_view path) {
    return disk->find(name, path);
  };
  world.look = [disk](const std::string& path) { return disk->look(path); };
  world.read_file = [disk](const std::string& path, std::size_t) -> Result<std::string> {
    const auto found = disk->files.find(disk->full(path));
    if (found == disk->files.end()) return none_in_case(path);
    return found->second;
  };
  world.list_directory = [disk](const std::string& path) { return disk->list(path); };
  world.real_path = [](const std::string& path) { return path; };
  world.stamp = [](const std::string&) { return std::string(); };
  world.capture = [disk](const std::vector<std::string>& argv, double,
                         const EnvSnapshot*) -> Result<sys::Captured> {
    const auto known = disk->programs.find(argv.front());
    if (known != disk->programs.end() && argv.size() == 2 && argv[1] == "--version")
      return sys::Captured{0, known->second, ""};
    return Error{ErrorKind::unsupported,
                 fmt::format("a case starts no programs: {}", joined(argv, " ").substr(0, 60)),
                 "leave it to the job, or say in the case what it would find"};
  };
  world.resolve = [](const std::string& name) -> Result<std::vector<std::string>> {
    return Error{ErrorKind::system, fmt::format("a case resolves no names: {}", name)};
  };
  world.own_addresses = [] { return std::vector<std::string>(); };
  world.outward_address = [](const std::string&) { return std::optional<std::string>(); };
  world.ephemeral_ports = [] { return std::pair(1, 0); };
  world.claim_port = [](const std::vector<int>& candidates,
                        const std::string&) -> Result<sys::PortClaim> {
    return sys::PortClaim{candidates.front()};
  };
  world.running_launches = [] { return std::vector<RunningLaunch>(); };
  world.clock = [] { return kNoon; };
  world.affinity = [] { return std::string(); };
  world.probe_node = [](double, const std::function<void()>&) -> Result<LiveNode> {
    return Error{ErrorKind::unsupported, "a case has no node but the profile's"};
  };
  world.device_files = [](bool) { return std::vector<DeviceFile>(); };
  world.read_topology = [](const std::string& path, double) -> Result<Topology> {
    return Error{ErrorKind::unsupported,
                 fmt::format("--topology {}: a case plans for the profile's nodes", path),
                 "--node-type NAME"};
  };
  return world;
}

}  // namespace hpclaunch::job
