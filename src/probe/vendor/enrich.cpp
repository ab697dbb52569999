#include <dlfcn.h>
#include <fmt/format.h>

#include <functional>
#include <optional>

#include "probe/child.h"
#include "probe/vendor/reader.h"
#include "probe/vendor/vendor.h"

namespace hpclaunch::probe::vendor {

Result<Library> Library::open(const std::vector<std::string>& names) {
  std::string fault;
  for (const std::string& name : names) {
    if (void* handle = dlopen(name.c_str(), RTLD_NOW | RTLD_LOCAL); handle != nullptr) {
      return Library(name, handle);
    }
    const char* message = dlerror();
    const std::string_view words = message == nullptr ? "" : message;
    // The message of glibc begins with the name of what it could not open: the library itself, or one it needs.
    const bool absent = words.substr(0, name.size()) == name &&
                        words.find("No such file") != std::string_view::npos;
    if (!absent && fault.empty()) fault = words.empty() ? name + " cannot be loaded" : words;
  }
  if (!fault.empty()) return Error{ErrorKind::system, "cannot be loaded: " + fault};
  return Error{ErrorKind::not_found, "no such library"};
}

void* Library::symbol(const char* name) const { return dlsym(handle_, name); }

namespace {

struct Task {
  std::string name;  ///< for messages: "NVML"
  const std::vector<std::string>* files;
  Result<VendorReport> (*read)(const Library&);
  std::optional<VendorReport> report = {};
  std::string fault = {};  ///< why there is no report; "" when the library is not installed
};

Result<std::string> ask(const Task& task) {
  const Result<Library> library = Library::open(*task.files);
  if (!library && library.error().kind == ErrorKind::not_found) return std::string();
  if (!library) return library.error();
  Result<VendorReport> report = task.read(*library);
  if (report && report->devices.empty() && !report->faults.empty())
    report = Error{ErrorKind::system, report->faults.front()};
  if (!report) {
    return Error{ErrorKind::system, fmt::format("{}: {}", library->name(), report.error().message)};
  }
  report->library = library->name();
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

/// Runs the tasks from `next` on at the same time, each in a child.
void run(std::vector<Task>& tasks, std::size_t next, double limit_seconds) {
  if (next == tasks.size()) return;
  const auto others = [&] { run(tasks, next + 1, limit_seconds); };
  if (tasks[next].files->empty()) return others();
  take(tasks[next], run_in_child([&] { return ask(tasks[next]); }, limit_seconds, others));
}

void merge_task(const Task& task, const std::string& sysfs, Topology& topology,
                std::vector<Diagnostic>& diagnostics) {
  const auto add = [&](const std::string& what) {
    if (!what.empty())
      diagnostics.push_back({"vendor-library", Severity::note, task.name + ": " + what});
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
  std::vector<Task> tasks = {{"NVML", &which.nvml, read_nvml},
                             {"Level Zero", &which.level_zero, read_level_zero},
                             {"AMD SMI", &which.amd_smi, read_amd_smi}};
  run(tasks, 0, which.limit_seconds);
  if (!tasks.back().report) {
    std::vector<Task> older = {{"ROCm SMI", &which.rocm_smi, read_rocm_smi}};
    run(older, 0, which.limit_seconds);
    tasks.push_back(std::move(older.front()));
  }
  std::vector<Diagnostic> diagnostics;
  for (const Task& task : tasks) merge_task(task, which.sysfs, topology, diagnostics);
  return diagnostics;
}

}  // namespace hpclaunch::probe::vendor
