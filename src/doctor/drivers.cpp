// Kernel drivers of devices, the library by which programs reach each, and what the Python's torch was built for.
#include <fmt/format.h>

#include <algorithm>
#include <filesystem>

#include "doctor/examination.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

struct Driver {
  const char* module;
  const char* library;
  std::string_view needs;  // what torch is built for when it loads that library from the system
};
// Wheels of torch for ROCm bring their runtime along.
constexpr Driver kDrivers[] = {{"nvidia", "libcuda.so.1", "CUDA"},
                               {"amdgpu", "libhsa-runtime64.so.1", ""},
                               {"xe", "libze_loader.so.1", "XPU"},
                               {"i915", "libze_loader.so.1", "XPU"}};

// The package cuda-compat has a libcuda that is newer than the driver: "libcuda.so.580.65.06".
std::string newest(const std::string& version, const std::string& library) {
  const std::string file = sys::real_path(library);
  const std::size_t so = file.rfind(".so.");
  const std::string own = so == file.npos ? "" : file.substr(so + 4);
  return compare_versions(own, version).value_or(-1) > 0 ? own : version;
}

}  // namespace

void examine_drivers(Examination& doctor) {
  bool any = false;
  for (const Driver& driver : kDrivers) {
    const std::string folder = fmt::format("/sys/module/{}", driver.module);
    std::error_code ignored;
    if (!std::filesystem::exists(folder, ignored)) continue;
    any = true;
    const auto text = sys::read_file(folder + "/version", 4096);
    const std::string version(text ? trim(*text) : "of the kernel");
    const auto answer = ask_loader(doctor.program(), doctor.env(), driver.library);
    const std::string path = answer ? answer->path_of(driver.library) : "";
    if (path.empty() && !driver.needs.empty() && doctor.built_for.starts_with(driver.needs))
      doctor.fault("driver", Severity::error, "driver-library",
                   fmt::format("torch is built for {}, and the loader does not find {} of the "
                               "driver {}",
                               doctor.built_for, driver.library, driver.module),
                   "in a container: its option for devices, such as --nv; else the site's module");
    else
      doctor.sound("driver", fmt::format("{} {}, {} {}", driver.module, version, driver.library,
                                         path.empty() ? "is not found" : "is " + path));
    if (driver.library == kDrivers[0].library)
      doctor.versions["nvidia-driver"] = newest(version, path);
  }
  if (!any) doctor.sound("driver", "none of nvidia, amdgpu, xe and i915 is loaded");
}

}  // namespace hpclaunch::job
