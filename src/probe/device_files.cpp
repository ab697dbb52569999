// The files by which programs reach accelerators.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <utility>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/probe.h"
#include "hpclaunch/text.h"
#include "probe/sysfs.h"

namespace hpclaunch {

namespace {

// A control group denies access(2) as it denies open(2) (the kernel's inode_permission), and only the latter
// wakes a device up.
bool can_use(const std::string& path, bool to_open) {
  return access(path.c_str(), to_open ? R_OK | W_OK : F_OK) == 0;
}

// Source: NVIDIA's driver README, "Using the /proc File System Interface".
std::optional<long> minor_of(const std::string& information) {
  for (const std::string_view line : split(information, '\n')) {
    constexpr std::string_view kKey = "Device Minor:";
    if (line.starts_with(kKey)) return parse_natural(trim(line.substr(kKey.size())));
  }
  return std::nullopt;
}

}  // namespace

std::vector<DeviceFile> device_files(bool to_open, const std::string& root) {
  std::vector<DeviceFile> files;
  const auto add = [&](std::string_view name, const std::string& path) {
    if (const auto address = probe::parse_pci(name))
      files.push_back({to_string(*address), path, can_use(path, to_open)});
  };
  const std::string gpus = root + "/proc/driver/nvidia/gpus";
  for (const std::string& name : probe::names_in(gpus)) {
    const std::string folder = probe::below(gpus, name);
    if (const auto minor = minor_of(probe::read_small(probe::below(folder, "information"))))
      add(name, fmt::format("{}/dev/nvidia{}", root, *minor));
  }
  const std::string drm = root + "/sys/class/drm";
  for (const std::string& name : probe::numbered_in(drm, "renderD")) {
    const std::string device = fmt::format("{}/{}/device", drm, name);
    const DeviceVendor& vendor =
        device_vendor_of_pci(probe::read_small(probe::below(device, "vendor")));
    // Programs of the other vendors use numbered files of the driver.
    if (!vendor.name.empty() && vendor.device_file.empty())
      add(probe::link_name(device), fmt::format("{}/dev/dri/{}", root, name));
  }
  std::ranges::sort(files, {}, &DeviceFile::pci);
  return files;
}

}  // namespace hpclaunch
