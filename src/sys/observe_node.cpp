#include "sys/observe_node.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/statvfs.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "hpclaunch/device_vendor.h"
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

bool is_numbered(const std::string& name, std::string_view stem) {
  return name.starts_with(stem) && parse_natural(name.substr(stem.size()));
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

}  // namespace

void add_devices(RankReport& report) {
  const auto look = [&](const std::string& path, const std::string& vendor) {
    const int fd = open(path.c_str(), O_RDWR | O_CLOEXEC | O_NONBLOCK | O_NOCTTY);
    if (fd < 0)
      report.refused.push_back(path);
    else
      ++report.devices[vendor];
    if (fd >= 0) close(fd);
  };
  for (const DeviceVendor& vendor : device_vendors())
    for (const std::string& name : names_in("/dev"))
      if (!vendor.device_file.empty() && is_numbered(name, vendor.device_file))
        look("/dev/" + name, std::string(vendor.name));
  for (const std::string& name : names_in("/dev/dri")) {
    if (!is_numbered(name, "renderD")) continue;
    const std::string vendor = vendor_of(line_of("/sys/class/drm/" + name + "/device/vendor"));
    const bool by_render_node = vendor != "other" && device_vendor(vendor).device_file.empty();
    if (by_render_node) look("/dev/dri/" + name, vendor);
  }
  if (access("/dev/kfd", F_OK) != 0) return;
  const int kfd = open("/dev/kfd", O_RDWR | O_CLOEXEC);
  if (kfd < 0)
    report.refused.emplace_back("/dev/kfd");
  else
    close(kfd);
}

NodeFacts node_facts(const EnvSnapshot& env, const ObserveRequest& request, bool first_node) {
  NodeFacts facts;
  facts.online = line_of("/sys/devices/system/cpu/online");
  facts.numa = line_of("/sys/devices/system/node/has_cpu");
  facts.pci = pci_devices(facts.gpus);
  for (const char* folder : {"/sys/class/cxi", "/sys/class/infiniband"})
    for (std::string& name : names_in(folder)) facts.fabrics.push_back(std::move(name));
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
  if (first_node && port) facts.port_problem = listen_problem(static_cast<int>(*port));
  if (!request.program.empty()) {
    const Result<std::string> found = find_program(request.program, "");
    if (!found) facts.program_problem = found.error().message;
  }
  facts.rooms = {room_in("/dev/shm"), room_in(env.get("TMPDIR", "/tmp"))};
  return facts;
}

}  // namespace hpclaunch::sys
