#include <fmt/format.h>

#include <functional>
#include <optional>

#include "probe/child.h"
#include "probe/vendor/merge.h"
#include "probe/vendor/readers.h"
#include "probe/vendor/vendor.h"

namespace hpclaunch::probe::vendor {

namespace {

struct Task {
  std::string name;  ///< for the user: "NVML"
  const std::vector<std::string>* files;
  Result<Told> (*read)(const Library&);
  std::optional<Told> told = {};
  std::string fault = {};  ///< why there is none; "" when the library is not installed
};

Result<std::string> ask(const Task& task) {
  const Result<Library> library = Library::open(*task.files);
  if (!library && library.error().kind == ErrorKind::not_found) return std::string();
  if (!library) return library.error();
  Result<Told> told = task.read(*library);
  if (!told) {
    return Error{ErrorKind::system, fmt::format("{}: {}", library->name(), told.error().message)};
  }
  told->library = library->name();
  return told_to_json(*told);
}

void take(Task& task, const Result<std::string>& answer) {
  if (answer && answer->empty()) return;
  Result<Told> told = answer ? told_from_json(*answer) : Result<Told>(answer.error());
  if (told) {
    task.told = std::move(*told);
    return;
  }
  task.fault = told.error().message;
  if (!told.error().hint.empty()) task.fault += fmt::format(" ({})", told.error().hint);
}

/// Runs the tasks from `next` on at the same time, each in a child.
void run(std::vector<Task>& tasks, std::size_t next, double limit_seconds) {
  if (next == tasks.size()) return;
  const auto others = [&] { run(tasks, next + 1, limit_seconds); };
  if (tasks[next].files->empty()) return others();
  take(tasks[next], run_in_child([&] { return ask(tasks[next]); }, limit_seconds, others));
}

void settle(const Task& task, const std::string& sysfs, Topology& topology,
            std::vector<LibraryNote>& notes) {
  if (!task.fault.empty()) notes.push_back({task.name, task.fault});
  if (!task.told) return;
  const std::string remark = merge(topology, *task.told, sysfs);
  if (!remark.empty()) notes.push_back({task.name, remark});
  constexpr std::size_t kMost = 4;
  const std::vector<std::string>& remarks = task.told->remarks;
  for (std::size_t i = 0; i < remarks.size() && i < kMost; ++i) {
    notes.push_back({task.name, remarks[i]});
  }
  if (remarks.size() > kMost) {
    notes.push_back({task.name, fmt::format("{} more like these", remarks.size() - kMost)});
  }
}

}  // namespace

std::vector<LibraryNote> enrich(Topology& topology, const Libraries& which) {
  std::vector<Task> tasks = {{"NVML", &which.nvml, read_nvml},
                             {"Level Zero", &which.level_zero, read_level_zero},
                             {"AMD SMI", &which.amd_smi, read_amd_smi}};
  run(tasks, 0, which.limit_seconds);
  if (!tasks.back().told) {
    std::vector<Task> older = {{"ROCm SMI", &which.rocm_smi, read_rocm_smi}};
    run(older, 0, which.limit_seconds);
    tasks.push_back(std::move(older.front()));
  }
  std::vector<LibraryNote> notes;
  for (const Task& task : tasks) settle(task, which.sysfs, topology, notes);
  return notes;
}

}  // namespace hpclaunch::probe::vendor
