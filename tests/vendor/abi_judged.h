#pragma once

namespace hpclaunch::test {

// Whether the vendor's header was there when this was compiled, and so every static_assert held.
bool nvml_judged();
bool level_zero_judged();
bool rocm_smi_judged();
bool amd_smi_judged();

}  // namespace hpclaunch::test
