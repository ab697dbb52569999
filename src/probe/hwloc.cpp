#include <fmt/format.h>
#include <hwloc.h>
#include <sys/mman.h>
#include <sys/utsname.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstdlib>
#include <cstring>
#include <memory>
#include <optional>
#include <utility>

#include "hpclaunch/probe.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "probe/hwloc_objects.h"
#include "probe/live.h"
#include "probe/sysfs.h"

namespace hpclaunch::probe {
namespace {

struct Destroy {
  void operator()(hwloc_topology* topology) const { hwloc_topology_destroy(topology); }
};
using Handle = std::unique_ptr<hwloc_topology, Destroy>;

Error failed(const char* call) {
  return Error{ErrorKind::system, fmt::format("{}: {}", call, std::strerror(errno))};
}

/// Keeps only what `convert` and, with `io`, add_io read; the rest costs time. A library older than its
/// header refuses some flags; kNeeded alone must work.
Status restrict_to_needs(hwloc_topology_t topology, bool live, bool io) {
  hwloc_topology_set_all_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_NONE);
  // Groups are not read, but a NUMA node smaller than a package is a child of one: without them hwloc
  // would give it the CPUs of the whole package. The parent of an I/O object is its locality: a die that is
  // dropped loses it.
  for (const hwloc_obj_type_t type :
       {HWLOC_OBJ_PACKAGE, HWLOC_OBJ_DIE, HWLOC_OBJ_CORE, HWLOC_OBJ_L2CACHE, HWLOC_OBJ_L3CACHE,
        HWLOC_OBJ_L4CACHE, HWLOC_OBJ_L5CACHE})
    hwloc_topology_set_type_filter(topology, type, HWLOC_TYPE_FILTER_KEEP_ALL);
  hwloc_topology_set_type_filter(topology, HWLOC_OBJ_GROUP, HWLOC_TYPE_FILTER_KEEP_STRUCTURE);
  if (io) hwloc_topology_set_io_types_filter(topology, HWLOC_TYPE_FILTER_KEEP_ALL);
  constexpr unsigned long kNeeded = HWLOC_TOPOLOGY_FLAG_INCLUDE_DISALLOWED;
#if HWLOC_API_VERSION >= 0x00020800
  unsigned long cheap = HWLOC_TOPOLOGY_FLAG_NO_MEMATTRS;
  if (live) cheap |= HWLOC_TOPOLOGY_FLAG_NO_CPUKINDS;
  if (hwloc_topology_set_flags(topology, kNeeded | cheap) == 0) return Done{};
#endif
  if (hwloc_topology_set_flags(topology, kNeeded) == 0) return Done{};
  return failed("hwloc_topology_set_flags");
}

/// Plugins are shared libraries of vendors and of X11, looked for and opened at every start: a file
/// that is no folder keeps hwloc from looking. nullptr lets it look.
void choose_components(const char* components, const char* plugins) {
  const auto choose = [](const char* name, const char* value) {
    value == nullptr ? unsetenv(name) : setenv(name, value, 1);
  };
  choose("HWLOC_COMPONENTS", components);
  choose("HWLOC_PLUGINS_PATH", plugins);
}

constexpr const char* kNoPlugins = "/dev/null";

Result<Handle> load_once(const std::string* xml, bool io) {
  hwloc_topology_t raw = nullptr;
  if (hwloc_topology_init(&raw) != 0) return failed("hwloc_topology_init");
  Handle topology(raw);
  if (xml != nullptr) {
    const int size = static_cast<int>(xml->size()) + 1;
    if (hwloc_topology_set_xmlbuffer(raw, xml->c_str(), size) != 0) {
      return failed("hwloc_topology_set_xmlbuffer");
    }
  }
  if (const Status ok = restrict_to_needs(raw, xml == nullptr, io); !ok) return ok.error();
  if (hwloc_topology_load(raw) != 0) return failed("hwloc_topology_load");
  return topology;
}

/// This machine, or an XML text: by the components that are enough as a rule (on Linux its own one, for XML hwloc's
/// small parser), else by all.
Result<Handle> load(const std::string* xml, bool io) {
  choose_components(xml != nullptr ? nullptr : "linux,stop", kNoPlugins);
  Result<Handle> handle = load_once(xml, io);
  if (handle && (xml != nullptr || hwloc_get_nbobjs_by_type(handle->get(), HWLOC_OBJ_CORE) > 0))
    return handle;
  handle = Error{};
  choose_components(nullptr, nullptr);
  return load_once(xml, io);
}

/// What hwloc writes on standard error, while this exists. The process is a child without threads.
class Complaints {
 public:
  Complaints() : file_(memfd_create("hwloc", MFD_CLOEXEC)), before_(dup(STDERR_FILENO)) {
    setenv("HWLOC_XML_VERBOSE", "1", 1);
    if (file_ >= 0 && before_ >= 0) dup2(file_, STDERR_FILENO);
  }
  ~Complaints() {
    if (file_ >= 0 && before_ >= 0) dup2(before_, STDERR_FILENO);
    close(before_);
    close(file_);
  }
  Complaints(const Complaints&) = delete;
  Complaints& operator=(const Complaints&) = delete;

  /// ": invalid object Core P#0 with some missing cpusets": the first that is no remark on what is left out; "" for none.
  std::string reason() const {
    std::array<char, 4096> text{};
    const ssize_t size = pread(file_, text.data(), text.size(), 0);
    if (size <= 0) return "";
    for (std::string_view line :
         split(std::string_view(text.data(), static_cast<std::size_t>(size)), '\n')) {
      const std::size_t mark = line.find(": ");  // behind the name of the file
      if (mark != std::string_view::npos) line.remove_prefix(mark + 2);
      if (!line.empty() && !line.starts_with("ignoring ")) return fmt::format(": {}", shown(line));
    }
    return "";
  }

 private:
  int file_, before_;
};

/// The format version in an XML text, for messages; "1" without one.
std::string xml_version(std::string_view xml) {
  const std::size_t element = xml.find("<topology");
  if (element == std::string_view::npos) return "";
  const std::string_view head = xml.substr(element, xml.find('>', element) - element);
  const std::size_t key = head.find("version=\"");
  if (key == std::string_view::npos) return "1";
  const std::string_view value = head.substr(key + 9);
  return std::string(value.substr(0, std::min<std::size_t>(value.find('"'), 20)));
}

}  // namespace

namespace {

// Name, mask, devices and interfaces, for the processors of this machine.
Result<Topology> completed(Topology topology) {
  utsname names{};
  if (uname(&names) == 0) topology.hostname = names.nodename;
  const Result<CpuSet> mask = CpuSet::parse(sys::affinity());  // an error where the system has none
  const CpuSet affinity = mask ? *mask : topology.all_pus();
  if (!affinity.intersects(topology.allowed)) {
    return Error{
        ErrorKind::system,
        fmt::format(
            "no CPU is available to this process: the cgroup allows {}, the affinity mask {}",
            topology.allowed.to_list(), affinity.to_list())};
  }
  topology.allowed &= affinity;
  add_devices("", topology);
  add_nics("", sys::interfaces(), topology);
  return topology;
}

}  // namespace

std::optional<Result<Topology>> load_from_files() {
  std::optional<Topology> processors = read_processors("");
  if (!processors) return std::nullopt;
  return completed(*std::move(processors));
}

Result<Topology> load_live() {
  if (std::optional<Result<Topology>> read = load_from_files()) return *std::move(read);
  const Result<Handle> handle = load(nullptr, false);
  if (!handle) return handle.error();
  Result<Topology> topology = convert(handle->get());
  return topology ? completed(*std::move(topology)) : topology;
}

Result<std::string> export_xml(const std::string* xml) {
  choose_components(nullptr, kNoPlugins);
  const Result<Handle> handle = load(xml, true);
  if (!handle) return handle.error();
  char* text = nullptr;
  int size = 0;
  if (hwloc_topology_export_xmlbuffer(handle->get(), &text, &size, 0) != 0)
    return failed("hwloc_topology_export_xmlbuffer");
  std::string copy(text);
  hwloc_free_xmlbuffer(handle->get(), text);
  return copy;
}

Result<Topology> load_xml(const std::string& text) {
  const std::string version = xml_version(text);
  if (version.empty()) {
    return Error{ErrorKind::invalid, "not hwloc XML: no <topology> element",
                 "write one with: lstopo --of xml FILE"};
  }
  std::string reason;
  const Result<Handle> handle = [&] {
    const Complaints complaints;
    Result<Handle> loaded = load(&text, true);
    if (!loaded) reason = complaints.reason();
    return loaded;
  }();
  if (!handle) {
    const unsigned newest = hwloc_get_api_version() >> 16;
    const bool newer = std::strtoul(version.c_str(), nullptr, 10) > newest;
    return Error{ErrorKind::invalid,
                 fmt::format("hwloc {} cannot read it (format version {}){}", hwloc_version(),
                             version, reason),
                 newer ? fmt::format("write an older format on that machine: lstopo --of xml "
                                     "--export-xml-flags v{} FILE",
                                     newest)
                       : "check that the file is complete and written by lstopo --of xml"};
  }
  Result<Topology> topology = convert(handle->get());
  if (!topology) return topology;
  if (const Status ok = check_accelerators(handle->get()); !ok) return ok.error();
  add_io(handle->get(), *topology);
  return topology;
}

}  // namespace hpclaunch::probe

namespace hpclaunch {

std::string hwloc_version() {
  // The number of the API stays behind: 2.9.0 has that of 2.8. The library writes its release into what it makes.
  hwloc_topology_t made = nullptr;
  if (hwloc_topology_init(&made) == 0) {
    const probe::Handle handle(made);
    if (hwloc_topology_set_synthetic(made, "pu:1") == 0 && hwloc_topology_load(made) == 0)
      if (std::string release = probe::machine_info(made, "hwlocVersion"); !release.empty())
        return release;
  }
  const unsigned api = hwloc_get_api_version();  // 0x00020800
  return fmt::format("{}.{}", api >> 16, (api >> 8) & 0xff);
}

}  // namespace hpclaunch
