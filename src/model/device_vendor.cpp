#include "hpclaunch/device_vendor.h"

#include <algorithm>

namespace hpclaunch {

namespace {

// Sources: CUDA programming guide (environment variables); ROCm documentation (GPU isolation) and clr
// rocdevice.cpp; Level Zero specification and compute-runtime (parseAffinityMask); NVIDIA container toolkit;
// Slurm src/plugins/gpu (which mask each plugin writes); PCI ID list (pci-ids.ucw.cz).
constexpr std::array<DeviceVendor, 3> kVendors = {{
    {.name = "nvidia",
     .pci_id = "0x10de",
     .syntax = MaskSyntax::cuda,
     .masks = {"CUDA_VISIBLE_DEVICES"},
     .container_list = "NVIDIA_VISIBLE_DEVICES",
     .pci_order = {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
     .hide_all = {"CUDA_VISIBLE_DEVICES", ""},
     .taken = "JAX_LOCAL_DEVICE_IDS",
     .device_file = "nvidia"},
    {.name = "amd",
     .pci_id = "0x1002",
     .syntax = MaskSyntax::rocm,
     .masks = {"ROCR_VISIBLE_DEVICES", "HIP_VISIBLE_DEVICES", "CUDA_VISIBLE_DEVICES"},
     .opencl_mask = "GPU_DEVICE_ORDINAL",
     .hide_all = {"HIP_VISIBLE_DEVICES", "-1"},
     .taken = "JAX_LOCAL_DEVICE_IDS"},
    {.name = "intel",
     .pci_id = "0x8086",
     .syntax = MaskSyntax::level_zero,
     .masks = {"ZE_AFFINITY_MASK"},
     .hierarchy = "ZE_FLAT_DEVICE_HIERARCHY",
     .selector = "ONEAPI_DEVICE_SELECTOR"},
}};

constexpr DeviceVendor kNone{};

}  // namespace

std::span<const DeviceVendor> device_vendors() { return kVendors; }

const DeviceVendor& device_vendor(std::string_view name) {
  for (const DeviceVendor& vendor : kVendors)
    if (vendor.name == name) return vendor;
  return kNone;
}

const DeviceVendor& device_vendor_of_pci(std::string_view pci_id) {
  for (const DeviceVendor& vendor : kVendors)
    if (vendor.pci_id == pci_id) return vendor;
  return kNone;
}

const std::vector<std::string_view>& device_masks() {
  static const std::vector<std::string_view> kAll = [] {
    std::vector<std::string_view> all;
    const auto add = [&](std::string_view name) {
      if (!name.empty() && std::find(all.begin(), all.end(), name) == all.end())
        all.push_back(name);
    };
    for (const DeviceVendor& vendor : kVendors) {
      for (const std::string_view mask : vendor.masks) add(mask);
      add(vendor.opencl_mask);
    }
    return all;
  }();
  return kAll;
}

bool is_device_variable(std::string_view name) {
  const std::vector<std::string_view>& masks = device_masks();
  if (name.empty()) return false;
  return std::find(masks.begin(), masks.end(), name) != masks.end() ||
         std::any_of(kVendors.begin(), kVendors.end(), [&](const DeviceVendor& vendor) {
           return name == vendor.container_list || name == vendor.pci_order.name ||
                  name == vendor.hierarchy || name == vendor.selector;
         });
}

}  // namespace hpclaunch
