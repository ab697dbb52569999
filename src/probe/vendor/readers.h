#pragma once
#include "probe/vendor/library.h"
#include "probe/vendor/told.h"

namespace hpclaunch::probe::vendor {

// Each asks one library for all that it knows. To be called in a child that may be thrown away: a
// library may hang, crash, print, or change anything of the process. The devices are in the
// library's own order. Errors: `system` when it could not name its devices; any call that fails after
// that is a remark, and what it would have told stays unknown.

/// NVIDIA: PCI address, name, UUID, memory, MIG instances, NVLink (also through NVSwitch).
Result<Told> read_nvml(const Library& library);

/// Intel: PCI address, name, UUID, memory, tiles, Xe Link; discrete GPUs only. Changes the environment.
Result<Told> read_level_zero(const Library& library);

/// AMD: PCI address, name, UUID, memory, compute partition, XGMI links.
Result<Told> read_amd_smi(const Library& library);

/// The same, from the library before AMD SMI.
Result<Told> read_rocm_smi(const Library& library);

}  // namespace hpclaunch::probe::vendor
