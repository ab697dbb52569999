// Which vendor libraries a probe opens.
#include <unistd.h>

#include <algorithm>
#include <string_view>

#include "hpclaunch/device_vendor.h"
#include "probe/sysfs.h"
#include "probe/vendor/vendor.h"

namespace hpclaunch::probe::vendor {

namespace {

long count_of(const Topology& topology, std::string_view vendor) {
  return std::count_if(topology.devices.begin(), topology.devices.end(),
                       [&](const Device& device) { return device.vendor == vendor; });
}

/// "nvidia0", "nvidia12": the files that a program opens to use a GPU. Opening asks the device cgroup,
/// and so does access(2).
long usable_nvidia(const std::string& root) {
  const std::string folder = root + "/dev";
  const std::vector<std::string> names = numbered_in(folder, device_vendor("nvidia").device_file);
  return std::count_if(names.begin(), names.end(), [&](const std::string& name) {
    return access(below(folder, name).c_str(), R_OK | W_OK) == 0;
  });
}

/// The driver has a folder for each MIG GPU instance: /proc/driver/nvidia/capabilities/gpu0/mig/gi1.
bool has_mig_instances(const std::string& root) {
  const std::string folder = root + "/proc/driver/nvidia/capabilities/";
  const std::vector<std::string> gpus = names_in(folder);
  return std::any_of(gpus.begin(), gpus.end(), [&](const std::string& gpu) {
    return !numbered_in(folder + gpu + "/mig", "gi").empty();
  });
}

/// A GPU that can have tiles, of which the kernel shows none.
bool hides_tiles(const Device& device, const std::string& root) {
  if (device.vendor != "intel" || device.subdevices != 0) return false;
  const auto id = number_in(read_small(root + "/sys/bus/pci/devices/" + device.pci + "/device"));
  return id && may_have_tiles(static_cast<unsigned>(*id));
}

/// "libamd_smi.so.27" and so on, found by the loader, then in ROCm's usual folder.
std::vector<std::string> of_rocm(const std::string& name, std::initializer_list<int> versions) {
  std::vector<std::string> all;
  for (const char* folder : {"", "/opt/rocm/lib/"})
    for (const int version : versions) all.push_back(folder + name + std::to_string(version));
  return all;
}

}  // namespace

Libraries libraries_to_open(const Topology& topology, VendorLibraries want, bool named_by_uuid,
                            const std::string& root) {
  Libraries which;
  which.sysfs = root + "/sys";
  if (want == VendorLibraries::none) return which;
  const bool all = want == VendorLibraries::all;

  const long nvidia = count_of(topology, "nvidia");
  const bool nvidia_here = nvidia > 0 || exists(root + "/dev/nvidiactl");
  if (nvidia_here &&
      (all || named_by_uuid || usable_nvidia(root) != nvidia || has_mig_instances(root))) {
    which.nvml = {"libnvidia-ml.so.1"};
  }
  const bool tiles_hidden = std::any_of(topology.devices.begin(), topology.devices.end(),
                                        [&](const Device& one) { return hides_tiles(one, root); });
  const bool intel_here =
      count_of(topology, "intel") > 0 || (topology.devices.empty() && exists(root + "/dev/dri"));
  if (all ? intel_here : tiles_hidden) which.level_zero = {"libze_loader.so.1"};
  // /sys has all that a plan needs about AMD's devices.
  if (all && (count_of(topology, "amd") > 0 || exists(root + "/dev/kfd"))) {
    which.amd_smi = of_rocm("libamd_smi.so.", {27, 26, 25, 24, 0});  // the last is Debian's
    which.rocm_smi = of_rocm("librocm_smi64.so.", {8, 7, 6, 5, 4, 3, 2, 1});
  }
  return which;
}

}  // namespace hpclaunch::probe::vendor
