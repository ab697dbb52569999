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
  const auto found = std::ranges::find(kVendors, name, &DeviceVendor::name);
  return found == kVendors.end() ? kNone : *found;
}

const DeviceVendor& device_vendor_of_pci(std::string_view pci_id) {
  const auto found = std::ranges::find(kVendors, pci_id, &DeviceVendor::pci_id);
  return found == kVendors.end() ? kNone : *found;
}

const std::vector<std::string_view>& device_masks() {
  static const std::vector<std::string_view> kAll = [] {
    std::vector<std::string_view> all;
    for (const DeviceVendor& vendor : kVendors) {
      for (const std::string_view mask : vendor.masks)
        if (!mask.empty() && std::ranges::count(all, mask) == 0) all.push_back(mask);
      if (!vendor.opencl_mask.empty()) all.push_back(vendor.opencl_mask);
    }
    return all;
  }();
  return kAll;
}

const std::vector<std::string_view>& device_variables() {
  static const std::vector<std::string_view> kAll = [] {
    std::vector<std::string_view> all = device_masks();
    for (const DeviceVendor& vendor : kVendors)
      for (const std::string_view name :
           {vendor.container_list, vendor.pci_order.name, vendor.hierarchy, vendor.selector})
        if (!name.empty()) all.push_back(name);
    return all;
  }();
  return kAll;
}

bool is_device_variable(std::string_view name) {
  return std::ranges::find(device_variables(), name) != device_variables().end();
}

}  // namespace hpclaunch
