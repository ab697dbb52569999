#pragma once
// --report and --profile-start: how a job went.
#include <array>
#include <functional>
#include <iterator>
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/start.h"

namespace hpclaunch::job {

/// What --profile-start measures of a rank, in seconds and in this order; docs/reference/supervise.md.
inline constexpr const char* kStartPhases[] = {"launch",     "interpreter", "import",
                                               "rendezvous", "collective",  "output"};
inline constexpr std::size_t kStartPhaseCount = std::size(kStartPhases);

struct RankStart {
  std::string host;  ///< "" where nothing is known of the rank
  std::array<std::optional<double>, kStartPhaseCount> seconds = {};
  std::optional<double> ran, delayed;  ///< of the import: running, and ready without a processor
  std::string import_from;             ///< directory of the package
  bool python = false;                 ///< an interpreter has started

  double waited() const;  ///< of the import, for files; 0 unknown
};

struct StartProfile {
  std::vector<RankStart> ranks;                     ///< index = rank
  std::map<std::string, std::string> file_systems;  ///< type by directory
  std::vector<Diagnostic> diagnostics;              ///< which staging would help
};

/// Gathers what the ranks have written, and removes it on every node.
StartProfile start_profile(const Prepared& prepared, const sys::Ending& ending,
                           const std::function<void(std::string_view line)>& other);

/// The table, whole lines.
std::string start_profile_text(const StartProfile& profile, const Plan& plan);
std::string start_profile_json(const StartProfile& profile, const Plan& plan);

/// --report FILE: how a job went. docs/reference/supervise.md has the keys.
struct RunRecord {
  std::vector<std::string> command;  ///< as typed, or resolved
  std::vector<std::string> typed;    ///< the words of hpclaunch: "run", "-n", "2", ...
  std::string job;                   ///< as RunningLaunch::job
  const Plan* plan = nullptr;        ///< nullptr: there is none
  std::vector<std::string> argv;     ///< of the launcher
  double started = 0;                ///< UNIX time
  double ended = 0;
  int status = 0;
  bool finished = true;           ///< false: written while the job ran
  int pid = 0;                    ///< of hpclaunch
  std::vector<Attempt> attempts;  ///< empty: nothing was started, and `error` says why
  std::optional<Error> error;
  std::optional<StartProfile> start;
};

/// `whole`: with the times of the start, and indented.
std::string run_record_json(const RunRecord& record, bool whole = true);

/// For `hpclaunch report`: the last few jobs of this user on this machine. Nothing where no rank was started.
void keep_run_record(const RunRecord& record);

/// What was written so: of a file, of the last run of a batch job, or with "" of the last run. And where it lies.
/// Errors: `not_found`; `invalid`.
struct FoundRecord {
  std::string json, path;
};
Result<FoundRecord> find_run_record(const std::string& what);

/// One screen about a job: at most 25 lines at 100 columns. Pure.
struct JobReport {
  struct Row {
    const char* key;                 ///< "first"
    std::vector<std::string> lines;  ///< of people's text
    bool many = false;               ///< a list in JSON, whatever the number of lines
  };
  std::vector<Row> rows;
};

/// Of the JSON of --report, also of an earlier hpclaunch; what it lacks is left out. `path`: where it lies. Errors:
/// `invalid`.
Result<JobReport> read_run_record(std::string_view json, const std::string& path);
std::string job_report_text(const JobReport& report);
std::string job_report_json(const JobReport& report);

}  // namespace hpclaunch::job
