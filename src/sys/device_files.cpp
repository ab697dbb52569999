#include <fmt/format.h>
#include <stdlib.h>
#include <unistd.h>

#include <algorithm>
#include <optional>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::sys {

namespace {

std::vector<std::string> names_in(const std::string& folder) {
  Result<std::vector<std::string>> names = list_directory(folder);
  return names ? std::move(*names) : std::vector<std::string>{};
}

// A control group denies access(2) as it denies open(2) (the kernel's inode_permission), and only the latter
// wakes a device up.
bool can_use(const std::string& path, bool to_open) {
  return access(path.c_str(), to_open ? R_OK | W_OK : F_OK) == 0;
}

// Source: NVIDIA's driver README, "Using the /proc File System Interface".
std::optional<long> minor_of(const std::string& information) {
  const Result<std::string> text = read_file(information, 4096);
  if (!text) return std::nullopt;
  for (const std::string_view line : split(*text, '\n')) {
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
    const Result<std::string> vendor = read_file(device + "/vendor", 64);
    // NVIDIA's programs use the files above.
    const bool ours = vendor && (trim(*vendor) == "0x1002" || trim(*vendor) == "0x8086");
    if (!ours || !is_address(address)) continue;
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

}  // namespace hpclaunch::sys
