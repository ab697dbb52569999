// Devices, their files and what else a node has: what lies in /dev and /sys.
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::sys {

namespace {

std::vector<std::string> names_in(const std::string& folder) {
  Result<std::vector<std::string>> names = list_directory(folder);
  return names ? std::move(*names) : std::vector<std::string>{};
}

std::string line_of(const std::string& path) {
  const Result<std::string> text = read_file(path, 4096);
  return text ? std::string(trim(*text)) : "";
}

std::string vendor_of(const std::string& id) {
  const std::string_view name = device_vendor_of_pci(id).name;
  return name.empty() ? "other" : std::string(name);
}

// Programs of the other vendors use numbered files of the driver.
bool opens_render_node(const std::string& id) {
  const DeviceVendor& vendor = device_vendor_of_pci(id);
  return !vendor.name.empty() && vendor.device_file.empty();
}

// Display controllers and processing accelerators: classes 03 and 12 of the PCI Code and ID Assignment.
// `known`: addresses of those of vendors that we know.
std::map<std::string, int> pci_devices(std::vector<std::string>& known) {
  std::map<std::string, int> counts;
  const std::string root = "/sys/bus/pci/devices/";
  for (const std::string& name : names_in(root)) {
    const std::string kind = line_of(root + name + "/class");
    if (!kind.starts_with("0x03") && !kind.starts_with("0x12")) continue;
    const std::string vendor = vendor_of(line_of(root + name + "/vendor"));
    ++counts[vendor];
    if (vendor != "other") known.push_back(name);
  }
  return counts;
}

Room room_in(const std::string& path) {
  Room room{path, "", 0};
  struct statvfs info {};
  if (statvfs(path.c_str(), &info) != 0) {
    room.problem = std::strerror(errno);
    return room;
  }
  room.free_bytes = static_cast<unsigned long long>(info.f_bavail) * info.f_frsize;
  if (access(path.c_str(), W_OK | X_OK) != 0) room.problem = std::strerror(errno);
  return room;
}

// A control group denies access(2) as it denies open(2) (the kernel's inode_permission), and only the latter
// wakes a device up.
bool can_use(const std::string& path, bool to_open) {
  return access(path.c_str(), to_open ? R_OK | W_OK : F_OK) == 0;
}

// Source: NVIDIA's driver README, "Using the /proc File System Interface".
std::optional<long> minor_of(const std::string& information) {
  const std::string text = line_of(information);
  for (const std::string_view line : split(text, '\n')) {
    constexpr std::string_view kKey = "Device Minor:";
    if (line.starts_with(kKey)) return parse_natural(trim(line.substr(kKey.size())));
  }
  return std::nullopt;
}

// The last part of where a link leads to: "0000:18:00.0" for a PCI device.
std::string target_of(const std::string& link) {
  char buffer[4096];
  const ssize_t size = readlink(link.c_str(), buffer, sizeof buffer);
  if (size <= 0) return "";
  const std::string path(buffer, static_cast<std::size_t>(size));
  return path.substr(path.rfind('/') + 1);
}

bool is_address(const std::string& name) {
  return std::count(name.begin(), name.end(), ':') == 2 && name.find('.') != std::string::npos;
}

}  // namespace

std::vector<DeviceFile> device_files(bool to_open, const std::string& root) {
  std::vector<DeviceFile> files;
  const std::string gpus = root + "/proc/driver/nvidia/gpus/";
  for (const std::string& address : names_in(gpus))
    if (const auto minor = minor_of(fmt::format("{}{}/information", gpus, address))) {
      const std::string path = fmt::format("{}/dev/nvidia{}", root, *minor);
      files.push_back({address, path, can_use(path, to_open)});
    }
  const std::string drm = root + "/sys/class/drm/";
  for (const std::string& name : names_in(drm)) {
    if (!name.starts_with("renderD")) continue;
    const std::string device = fmt::format("{}{}/device", drm, name);
    std::string address = target_of(device);
    if (!opens_render_node(line_of(device + "/vendor")) || !is_address(address)) continue;
    const std::string path = fmt::format("{}/dev/dri/{}", root, name);
    files.push_back({std::move(address), path, can_use(path, to_open)});
  }
  for (DeviceFile& file : files)
    for (char& c : file.pci)
      if (c >= 'A' && c <= 'F') c = static_cast<char>(c - 'A' + 'a');
  std::sort(files.begin(), files.end(),
            [](const DeviceFile& a, const DeviceFile& b) { return a.pci < b.pci; });
  return files;
}

NodeFacts node_facts(const EnvSnapshot& env, const std::string& program) {
  NodeFacts facts;
  facts.online = line_of("/sys/devices/system/cpu/online");
  facts.numa = line_of("/sys/devices/system/node/has_cpu");
  facts.pci = pci_devices(facts.gpus);
  const std::string classes = "/sys/class/";
  for (const std::string& kind : names_in(classes))
    if (kind == "cxi" || kind == "infiniband")
      for (std::string& name : names_in(classes + kind)) facts.fabrics.push_back(std::move(name));
  facts.interfaces = interfaces();
  facts.master = env.get("MASTER_ADDR");
  if (!facts.master.empty()) {
    Result<std::vector<std::string>> found = resolve(facts.master);
    if (found)
      facts.master_resolves = std::move(*found);
    else
      facts.master_problem = found.error().message;
  }
  const std::optional<long> port = parse_natural(env.get("MASTER_PORT"), 65535);
  if (env.get("HPCLAUNCH_NODE") == "0" && port)
    facts.port_problem = listen_problem(static_cast<int>(*port));
  if (!program.empty()) {
    const Result<std::string> found = find_program(program, "");
    if (!found) facts.program_problem = found.error().message;
  }
  facts.rooms = {room_in("/dev/shm"), room_in(env.get("TMPDIR", "/tmp"))};
  return facts;
}

}  // namespace hpclaunch::sys
