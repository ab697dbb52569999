// Which vendor libraries a probe opens.
#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "hpclaunch/device_vendor.h"
#include "probe/sysfs.h"
#include "probe/vendor/vendor.h"

namespace hpclaunch::probe::vendor {

namespace {

/// "nvidia0", "nvidia12": the files that a program opens to use a GPU. Opening asks the device cgroup,
/// and so does access(2).
long usable_nvidia(const std::string& root) {
  const std::string folder = root + "/dev";
  return std::ranges::count_if(numbered_in(folder, device_vendor("nvidia").device_file),
                               [&](const std::string& name) {
                                 return access(below(folder, name).c_str(), R_OK | W_OK) == 0;
                               });
}

/// The driver has a folder for each MIG GPU instance: /proc/driver/nvidia/capabilities/gpu0/mig/gi1.
bool has_mig_instances(const std::string& root) {
  const std::string folder = root + "/proc/driver/nvidia/capabilities/";
  return std::ranges::any_of(names_in(folder), [&](const std::string& gpu) {
    return !numbered_in(folder + gpu + "/mig", "gi").empty();
  });
}

/// A GPU that can have tiles, of which the kernel shows none.
bool hides_tiles(const Device& device, const std::string& root) {
  if (device.vendor != "intel" || device.subdevices != 0) return false;
  const auto id = number_in(read_small(root + "/sys/bus/pci/devices/" + device.pci + "/device"));
  return id && may_have_tiles(static_cast<unsigned>(*id));
}

}  // namespace

Libraries libraries_to_open(const Topology& topology, VendorLibraries want, bool named_by_uuid,
                            const std::string& root) {
  Libraries which;
  which.sysfs = root + "/sys";
  if (want == VendorLibraries::none) return which;
  const bool all = want == VendorLibraries::all;

  const auto count = [&](std::string_view vendor) {
    return std::ranges::count(topology.devices, vendor, &Device::vendor);
  };
  const long nvidia = count("nvidia");
  const bool nvidia_here = nvidia > 0 || exists(root + "/dev/nvidiactl");
  if (nvidia_here &&
      (all || named_by_uuid || usable_nvidia(root) != nvidia || has_mig_instances(root))) {
    which.nvml = {"libnvidia-ml.so.1"};
  }
  const bool tiles_hidden = std::ranges::any_of(
      topology.devices, [&](const Device& one) { return hides_tiles(one, root); });
  const bool intel_here =
      count("intel") > 0 || (topology.devices.empty() && exists(root + "/dev/dri"));
  if (all ? intel_here : tiles_hidden) which.level_zero = {"libze_loader.so.1"};
  // /sys has all that a plan needs about AMD's devices.
  if (all && (count("amd") > 0 || exists(root + "/dev/kfd")))
    for (const char* folder : {"", "/opt/rocm/lib/"})  // by the loader, then ROCm's usual one
      for (int version = 8; version > 0; --version)
        which.rocm_smi.push_back(fmt::format("{}librocm_smi64.so.{}", folder, version));
  return which;
}

}  // namespace hpclaunch::probe::vendor
