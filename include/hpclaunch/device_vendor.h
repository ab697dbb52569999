#pragma once
// Accelerator vendors, one row each: everything that differs between their drivers' environment variables.
#include <span>
#include <string_view>
#include <vector>

namespace hpclaunch {

/// What an entry of a device mask may be.
enum class MaskSyntax {
  none,
  cuda,  ///< numbers, or "GPU-..." UUIDs, or "MIG-..." instances, all of one form; order counts
  rocm,  ///< numbers and "GPU-..." UUIDs mixed; order counts
  level_zero,  ///< tiles (FLAT), or cards and card.tile (COMPOSITE); the driver keeps its own order
};

/// An environment variable with the value that has the wanted effect.
struct VendorSetting {
  std::string_view name;  ///< "" where the driver has none
  std::string_view value;
};

/// A variable that leaves a process some of the devices.
struct DeviceFilter {
  enum Kind {
    container,  ///< devices of a container, as its runtime reads it; the driver counts these alone
    mask,       ///< counts what the driver finds
    inner,      ///< counts what the mask before it leaves; the first one that is not empty applies
    fallback,   ///< read only where no mask is set (OpenCL, HIP before ROCm 4); Slurm writes it too
  };
  std::string_view variable;
  Kind kind = mask;
};

struct DeviceVendor {
  std::string_view name;    ///< "nvidia", "amd", "intel"; "" for none
  std::string_view pci_id;  ///< as sysfs prints it
  MaskSyntax syntax = MaskSyntax::none;
  std::span<const DeviceFilter> filters = {};  ///< in the order in which they apply
  /// Makes the driver count in PCI order, as masks of hpclaunch do.
  VendorSetting pci_order = {};
  /// Hides every device from a process.
  VendorSetting hide_all = {};
  /// Which of the devices that it sees a process takes, as JAX reads it; else that is the number of the local rank.
  std::string_view taken = {};
  /// Decides whether the driver counts tiles or cards.
  std::string_view hierarchy = {};
  std::string_view selector = {};  ///< another runtime's filter on top of the masks
  std::string_view device_file =
      {};  ///< stem of its numbered files in /dev; "" for DRM render nodes

  bool keeps_order() const { return syntax == MaskSyntax::level_zero; }
  /// Masks of programs: the one hpclaunch sets first, then those that restrict a second time.
  std::vector<std::string_view> masks() const;
};

/// nvidia, amd, intel: the order of every list made from the table.
std::span<const DeviceVendor> device_vendors();

/// The row of a vendor; an empty one for any other name.
const DeviceVendor& device_vendor(std::string_view name);

/// The vendor with a PCI id such as "0x10de"; an empty row for any other.
const DeviceVendor& device_vendor_of_pci(std::string_view pci_id);

/// Masks of all vendors, each once, with OpenCL's.
const std::vector<std::string_view>& device_masks();

/// Variables of the table that decide which devices a process sees, or how it counts them.
const std::vector<std::string_view>& device_variables();
bool is_device_variable(std::string_view name);

/// Slurm's lists of granted GPUs, the step's before the job's. They hold the node's own numbers for every vendor,
/// also inside a device control group, where the masks that Slurm writes count from 0.
/// Source: Slurm gres.html, sbatch(1). PBS and Flux write masks only.
inline constexpr const char* kSlurmGpuLists[] = {"SLURM_STEP_GPUS", "SLURM_JOB_GPUS"};

/// Their number on this node.
inline constexpr const char* kSlurmGpuCount = "SLURM_GPUS_ON_NODE";

}  // namespace hpclaunch
