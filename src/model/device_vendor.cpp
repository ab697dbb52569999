#include "hpclaunch/device_vendor.h"

#include <algorithm>
#include <iterator>

namespace hpclaunch {

namespace {

// Sources: CUDA programming guide (environment variables); ROCm documentation (GPU isolation) and clr
// rocdevice.cpp; Level Zero specification and compute-runtime (parseAffinityMask); NVIDIA container toolkit;
// Slurm src/plugins/gpu (which mask each plugin writes); PCI ID list (pci-ids.ucw.cz).
constexpr DeviceFilter kNvidia[] = {{"NVIDIA_VISIBLE_DEVICES", DeviceFilter::container},
                                    {"CUDA_VISIBLE_DEVICES", DeviceFilter::mask}};
constexpr DeviceFilter kAmd[] = {{"ROCR_VISIBLE_DEVICES", DeviceFilter::mask},
                                 {"HIP_VISIBLE_DEVICES", DeviceFilter::inner},
                                 {"CUDA_VISIBLE_DEVICES", DeviceFilter::inner},
                                 {"GPU_DEVICE_ORDINAL", DeviceFilter::fallback}};
constexpr DeviceFilter kIntel[] = {{"ZE_AFFINITY_MASK", DeviceFilter::mask}};

constexpr DeviceVendor kVendors[] = {{.name = "nvidia",
                                      .pci_id = "0x10de",
                                      .syntax = MaskSyntax::cuda,
                                      .filters = kNvidia,
                                      .pci_order = {"CUDA_DEVICE_ORDER", "PCI_BUS_ID"},
                                      .hide_all = {"CUDA_VISIBLE_DEVICES", ""},
                                      .taken = "JAX_LOCAL_DEVICE_IDS",
                                      .device_file = "nvidia"},
                                     {.name = "amd",
                                      .pci_id = "0x1002",
                                      .syntax = MaskSyntax::rocm,
                                      .filters = kAmd,
                                      .hide_all = {"HIP_VISIBLE_DEVICES", "-1"},
                                      .taken = "JAX_LOCAL_DEVICE_IDS"},
                                     {.name = "intel",
                                      .pci_id = "0x8086",
                                      .syntax = MaskSyntax::level_zero,
                                      .filters = kIntel,
                                      .hierarchy = "ZE_FLAT_DEVICE_HIERARCHY",
                                      .selector = "ONEAPI_DEVICE_SELECTOR"}};

constexpr DeviceVendor kNone{};

}  // namespace

std::span<const DeviceVendor> device_vendors() { return kVendors; }

const DeviceVendor& device_vendor(std::string_view name) {
  const auto found = std::ranges::find(kVendors, name, &DeviceVendor::name);
  return found == std::end(kVendors) ? kNone : *found;
}

const DeviceVendor& device_vendor_of_pci(std::string_view pci_id) {
  const auto found = std::ranges::find(kVendors, pci_id, &DeviceVendor::pci_id);
  return found == std::end(kVendors) ? kNone : *found;
}

std::vector<std::string_view> DeviceVendor::masks() const {
  std::vector<std::string_view> names;
  for (const DeviceFilter& filter : filters)
    if (filter.kind == DeviceFilter::mask || filter.kind == DeviceFilter::inner)
      names.push_back(filter.variable);
  return names;
}

const std::vector<std::string_view>& device_masks() {
  static const std::vector<std::string_view> kAll = [] {
    std::vector<std::string_view> all;
    for (const DeviceVendor& vendor : kVendors)
      for (const auto& [name, kind] : vendor.filters)
        if (kind != DeviceFilter::container && std::ranges::count(all, name) == 0)
          all.push_back(name);
    return all;
  }();
  return kAll;
}

const std::vector<std::string_view>& device_variables() {
  static const std::vector<std::string_view> kAll = [] {
    std::vector<std::string_view> all = device_masks();
    for (const DeviceVendor& vendor : kVendors) {
      for (const auto& [name, kind] : vendor.filters)
        if (kind == DeviceFilter::container) all.push_back(name);
      for (const std::string_view name : {vendor.pci_order.name, vendor.hierarchy, vendor.selector})
        if (!name.empty()) all.push_back(name);
    }
    return all;
  }();
  return kAll;
}

bool is_device_variable(std::string_view name) {
  return std::ranges::find(device_variables(), name) != device_variables().end();
}

}  // namespace hpclaunch
