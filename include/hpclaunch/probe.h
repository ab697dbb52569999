#pragma once
// From a machine or a file to a Topology. Knows no plan and no profile.
#include <functional>
#include <string>
#include <vector>

#include "hpclaunch/diagnostic.h"
#include "hpclaunch/topology.h"

namespace hpclaunch {

/// Which libraries of device vendors a probe opens (NVML, Level Zero, ROCm SMI). Each costs from some
/// milliseconds to seconds.
enum class VendorLibraries {
  none,
  if_needed,  ///< where a plan may depend on them (docs/reference/topology.md)
  all,        ///< of every vendor with devices here
};

struct LiveNode {
  Topology topology;
  std::vector<Diagnostic> diagnostics;  ///< faults of vendors' libraries: "vendor-library", notes
};

/// This machine's processors, devices and network interfaces. Where it has a driver of accelerators, or only hwloc can
/// tell, they are read in a child process, so that a crash or a hang of the probe cannot affect the caller. The child's
/// environment has nothing that filters what hwloc and the vendors' libraries see (HWLOC_*, device masks). Each library
/// runs in a child process with a time limit; a failure is a diagnostic, and the library counts as not installed.
/// Errors: `system` when the child crashed (signal named), exceeded `limit_seconds` (it is killed), hwloc
/// failed (call and errno named), or no CPU is available; `unsupported` when a PU number exceeds the capacity
/// of CpuSet. `meanwhile` is called once, while the child works where there is one.
Result<LiveNode> probe_node(
    VendorLibraries libraries, double limit_seconds = 20,
    const std::function<void()>& meanwhile = [] {});

/// Sets libfabric's provider of each fabric interface (InfiniBand, Slingshot, EFA, ...): the first that offers
/// reliable datagrams (FI_EP_RDM), else the first. The library is opened in a child process and may take a
/// second; without fabric interfaces it is not opened. Errors, with nothing changed: `unsupported` when it is
/// not installed or offers nothing, `system` when it crashed or exceeded the limit.
Status ask_libfabric(Topology& topology, double limit_seconds = 5);

/// An installed libfabric, by its own account.
struct FabricLibrary {
  std::string version;  ///< "1.22"
  std::vector<std::string>
      providers;  ///< that work here, in its order, each once: "cxi", "verbs;ofi_rxm", "tcp"
};

/// Opened in a child process. `library`: a path, or a name that the loader finds. Errors: as ask_libfabric.
Result<FabricLibrary> libfabric_offer(const std::string& library, double limit_seconds = 5);

/// A variable that the installed libfabric reads, by its own account.
struct FabricParameter {
  std::string name;   ///< "FI_CXI_RDZV_THRESHOLD"
  std::string type;   ///< "text", "integer", "yes or no", "size"
  std::string help;   ///< one line
  std::string value;  ///< that holds here; "" for the default
};

/// By fi_getparams, in a child process. Errors: `unsupported` when libfabric is not installed or does not answer,
/// `system` when it crashed or exceeded the limit.
Result<std::vector<FabricParameter>> libfabric_parameters(double limit_seconds = 5);

/// Reads a topology file: our own JSON, or hwloc XML of format version 1 or 2, distinguished by content. XML is
/// read in a child process. `hostname` is the file's, or "". Errors: `not_found`; `invalid` (with file and,
/// for JSON, line, column and pointer); `unsupported` (as above); `system`.
Result<Topology> read_topology(const std::string& path, double limit_seconds = 20);

/// The file by which programs reach an accelerator.
struct DeviceFile {
  std::string pci;   ///< address, lower case: "0000:18:00.0"
  std::string path;  ///< "/dev/nvidia0", "/dev/dri/renderD128"
  bool usable = false;
};

/// Those of NVIDIA (as its driver lists them), AMD and Intel (render nodes); ascending address. `to_open`:
/// usable means that it may be opened, which a control group may refuse; else that it is there. None is.
/// `root` goes before every path.
std::vector<DeviceFile> device_files(bool to_open, const std::string& root = "");

/// Of the hwloc in use: "2.9".
std::string hwloc_version();

/// This machine, or the hwloc XML file `path`, in the XML format of the installed hwloc. Errors: as probe_live and
/// read_topology; `unsupported` for another file.
Result<std::string> topology_xml(const std::string& path, double limit_seconds = 20);

}  // namespace hpclaunch
