// The last few reports of this user on this machine.
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cstdio>
#include <nlohmann/json.hpp>

#include "hpclaunch/run_record.h"
#include "hpclaunch/session.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::job {

namespace {

constexpr std::size_t kKept = 8;
constexpr std::size_t kMostBytes = 16u << 20;
constexpr const char* kHint = "hpclaunch report FILE, of run --report FILE";

std::string folder_of_records(bool create) {
  const std::string runtime = sys::runtime_folder(create);
  if (runtime.empty()) return "";
  std::string folder = runtime + "/reports";
  if (create) mkdir(folder.c_str(), S_IRWXU);
  return folder;
}

// Names begin with the time, of always as many digits: the newest first.
std::vector<std::string> kept(const std::string& folder) {
  Result<std::vector<std::string>> names = sys::list_directory(folder);
  std::vector<std::string> found;
  for (const std::string& name : names ? *names : std::vector<std::string>())
    if (name.ends_with(".json")) found.push_back(fmt::format("{}/{}", folder, name));
  std::ranges::reverse(found);
  return found;
}

// "slurm 4711" of job 4711, "pbs 4711.server" of 4711 too.
bool is_of_job(const std::string& json, const std::string& job) {
  const auto record = nlohmann::json::parse(json, nullptr, false);
  const auto found = record.is_object() ? record.find("job") : record.end();
  if (!record.is_object() || found == record.end() || !found->is_string()) return false;
  const std::string name = found->get<std::string>();
  const std::string id = name.substr(name.find(' ') + 1);
  return name == job || id == job || id.substr(0, id.find('.')) == job;
}

}  // namespace

void keep_run_record(const RunRecord& record) {
  const std::string folder = record.attempts.empty() ? "" : folder_of_records(true);
  if (folder.empty()) return;
  const std::string name = fmt::format("{:015.0f}-{}.json", record.started * 1000, record.pid);
  constexpr unsigned kOwnerOnly = 0600;
  if (!write_file("report", fmt::format("{}/{}", folder, name), run_record_json(record, false),
                  kOwnerOnly))
    return;  // nobody has asked for it
  const std::vector<std::string> all = kept(folder);
  for (std::size_t i = kKept; i < all.size(); ++i) unlink(all[i].c_str());
}

Result<FoundRecord> find_run_record(const std::string& what) {
  Result<std::string> file =
      what.empty() ? Error{ErrorKind::not_found, ""} : sys::read_file(what, kMostBytes);
  if (file) return FoundRecord{*std::move(file), what};
  if (what.find('/') != what.npos || what.ends_with(".json") ||
      file.error().kind != ErrorKind::not_found) {
    Error error = file.error();
    error.hint = kHint;
    return error;
  }
  const std::string folder = folder_of_records(false);
  for (const std::string& path : folder.empty() ? std::vector<std::string>() : kept(folder)) {
    Result<std::string> json = sys::read_file(path, kMostBytes);
    if (json && (what.empty() || is_of_job(*json, what)))
      return FoundRecord{*std::move(json), path};
  }
  return Error{ErrorKind::not_found,
               what.empty()
                   ? std::string("no run of this user is kept on this machine")
                   : fmt::format("no file, and no kept run of job \"{}\" on this machine", what),
               kHint};
}

}  // namespace hpclaunch::job
