#include "support/catch.h"
#include "vendor/abi_judged.h"

using namespace hpclaunch::test;

// The comparison itself is static_assert in abi_*.cpp: what does not hold does not compile.
TEST_CASE("declarations made by hand were held against the vendors' headers", "[vendor]") {
  if (!nvml_judged()) WARN("nvml.h is not here: NVML's declarations were not judged");
  if (!level_zero_judged())
    WARN("level_zero/ze_api.h is not here: its declarations were not judged");
  if (!rocm_smi_judged()) WARN("rocm_smi/rocm_smi.h is not here: its declarations were not judged");
  if (!amd_smi_judged())
    WARN("amd_smi/amdsmi.h is not here: AMD SMI's declarations were not judged");
  SUCCEED();
}
