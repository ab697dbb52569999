#include <dlfcn.h>
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <nlohmann/json.hpp>
#include <optional>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "probe/child.h"
#include "probe/sysfs.h"
#include "probe/vendor/reader.h"
#include "probe/vendor/vendor.h"

namespace hpclaunch::probe::vendor {

Result<Library> Library::open(const std::vector<std::string>& names) {
  std::string fault;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr)
      return Library(name, handle);
    const char* const message = dlerror();
    const std::string words = message == nullptr ? name : message;
    // The message of glibc begins with the name of what it could not open: the library itself, or one it needs.
    const bool absent = words.starts_with(name) && words.find("No such file") != std::string::npos;
    if (!absent && fault.empty()) fault = words;
  }
  if (fault.empty()) return Error{ErrorKind::not_found, "no such library"};
  return Error{ErrorKind::system, "cannot be loaded: " + fault};
}

void* Library::symbol(const char* name) const { return dlsym(handle_, name); }

// ---- reports ----------------------------------------------------------------------------------------

using Json = nlohmann::json;

NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReportedDevice, pci, model, uuid, partition, memory_bytes,
                                   subdevices, instances)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(ReportedLink, from, to, lanes)
NLOHMANN_DEFINE_TYPE_NON_INTRUSIVE(VendorReport, vendor, link_kind, devices, links, complete,
                                   faults)

std::string report_to_json(const VendorReport& report) {
  return Json(report).dump(-1, ' ', false, Json::error_handler_t::replace);
}

Result<VendorReport> report_from_json(const std::string& text) {
  try {
    return Json::parse(text).get<VendorReport>();
  } catch (const Json::exception& error) {
    return Error{ErrorKind::system, fmt::format("invalid vendor report: {}", error.what())};
  }
}

void add_fault(VendorReport& report, std::string_view call, std::string_view why) {
  const std::string begin = fmt::format("{}: ", call);
  const bool known = std::ranges::any_of(
      report.faults, [&](const std::string& line) { return line.starts_with(begin); });
  if (!known) report.faults.push_back(begin + std::string(why));
}

std::string clean(const char* buffer, std::size_t size) {
  return std::string(trim(shown({buffer, std::find(buffer, buffer + size, '\0')}, size)));
}

std::string pci_text(std::uint64_t domain, std::uint64_t bus, std::uint64_t device,
                     std::uint64_t function) {
  if (domain > 0xFFFFFFFFU || bus > 0xFF || device > 0x1F || function > 7) return "";
  return fmt::format("{:04x}:{:02x}:{:02x}.{:x}", domain, bus, device, function);
}

namespace {

using Names = std::vector<std::string>;  ///< of one library, tried in order

/// The files that the loader may take for a library, by device, inode and time of change, and this start of the
/// machine. It changes when a library is replaced, added or removed.
std::string identity(const Names& library) {
  const Result<std::string> read = sys::read_file("/etc/ld.so.cache", std::size_t{16} << 20);
  const std::string cache = read ? *read : "";
  const char* const path = std::getenv("LD_LIBRARY_PATH");
  std::string text = read_small("/proc/sys/kernel/random/boot_id") + "\n";
  const auto add = [&](const std::string& file) {
    struct stat info {};
    if (stat(file.c_str(), &info) == 0)
      text += fmt::format("{} {} {} {}.{}\n", file, info.st_dev, info.st_ino, info.st_mtim.tv_sec,
                          info.st_mtim.tv_nsec);
  };
  for (const std::string& name : library) {
    add(name);
    for (const std::string_view folder : split(path == nullptr ? "" : path, ':'))
      add(below(folder, name));
    for (const std::string_view known : split(cache, '\0'))
      if (known.starts_with('/') && known.ends_with("/" + name)) add(std::string(known));
  }
  return text;
}

/// The file that says that a library did not answer; "" when nothing can be remembered.
std::string record_of(const Names& library, bool create) {
  const std::string folder = sys::runtime_folder(create);
  const std::string name = library[0].substr(library[0].rfind('/') + 1);
  return folder.empty() ? "" : below(folder, "no-answer-" + name.substr(0, name.find(".so")));
}

bool remember_hang(const Names& library) {
  const std::string record = record_of(library, true);
  const int fd = open(record.c_str(), O_WRONLY | O_CREAT | O_TRUNC | O_CLOEXEC | O_NOFOLLOW, 0600);
  if (fd < 0) return false;
  const bool written = sys::write_all(fd, identity(library));
  close(fd);
  return written;
}

struct Task {
  std::string name;  ///< for messages: "NVML"
  Names library;     ///< empty: not asked
  Result<VendorReport> (*read)(const Library&);
  std::optional<VendorReport> report = {};
  std::string fault = {};  ///< why there is no report; "" when the library is not installed
  std::string fix = {};
};

Result<std::string> ask(const Task& task) {
  const Result<Library> library = Library::open(task.library);
  if (!library && library.error().kind == ErrorKind::not_found) return std::string();
  if (!library) return library.error();
  Result<VendorReport> report = task.read(*library);
  if (report && report->devices.empty() && !report->faults.empty())
    report = Error{ErrorKind::system, report->faults.front()};
  if (!report) {
    return Error{ErrorKind::system, fmt::format("{}: {}", library->name(), report.error().message)};
  }
  return report_to_json(*report);
}

void take(Task& task, const Result<std::string>& answer) {
  if (answer && answer->empty()) return;
  Result<VendorReport> report =
      answer ? report_from_json(*answer) : Result<VendorReport>(answer.error());
  if (report) {
    task.report = std::move(*report);
  } else {
    const std::string& hint = report.error().hint;
    task.fault = report.error().message + (hint.empty() ? "" : fmt::format(" ({})", hint));
  }
}

/// Runs the tasks from `next` on at the same time, each in a child; those that hung before are skipped.
void run(std::vector<Task>& tasks, std::size_t next, double limit_seconds) {
  if (next == tasks.size()) return;
  const auto others = [&] { run(tasks, next + 1, limit_seconds); };
  Task& task = tasks[next];
  if (task.library.empty()) return others();
  const Result<std::string> record = sys::read_file(record_of(task.library, false), 1 << 16);
  bool hung = record && *record == identity(task.library);
  if (hung) {
    task.fault = "skipped: the library did not answer earlier, and is unchanged";
    others();
  } else {
    take(task, run_in_child([&] { return ask(task); }, limit_seconds, others, &hung));
    hung = hung && remember_hang(task.library);
    if (hung) task.fault += "; from now on it is skipped";
  }
  if (hung) task.fix = fmt::format("rm {}", record_of(task.library, false));
}

void merge_task(const Task& task, const std::string& sysfs, Topology& topology,
                std::vector<Diagnostic>& diagnostics) {
  const auto add = [&](const std::string& what) {
    if (!what.empty())
      diagnostics.push_back({"vendor-library", Severity::note, task.name + ": " + what, task.fix});
  };
  add(task.fault);
  if (!task.report) return;
  add(merge(topology, *task.report, sysfs));
  constexpr std::size_t kMost = 4;
  const std::vector<std::string>& faults = task.report->faults;
  for (std::size_t i = 0; i < faults.size() && i < kMost; ++i) add(faults[i]);
  if (faults.size() > kMost) add(fmt::format("{} more faults", faults.size() - kMost));
}

}  // namespace

std::vector<Diagnostic> enrich(Topology& topology, const Libraries& which) {
  std::vector<Task> tasks = {{"NVML", which.nvml, read_nvml},
                             {"Level Zero", which.level_zero, read_level_zero},
                             {"ROCm SMI", which.rocm_smi, read_rocm_smi}};
  run(tasks, 0, which.limit_seconds);
  std::vector<Diagnostic> diagnostics;
  for (const Task& task : tasks) merge_task(task, which.sysfs, topology, diagnostics);
  return diagnostics;
}

}  // namespace hpclaunch::probe::vendor
