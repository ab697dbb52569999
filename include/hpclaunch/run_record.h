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
  const Plan* plan = nullptr;        ///< nullptr: there is none
  std::vector<std::string> argv;     ///< of the launcher
  double started = 0;                ///< UNIX time
  double ended = 0;
  int status = 0;
  std::vector<Attempt> attempts;  ///< empty: nothing was started, and `error` says why
  std::optional<Error> error;
  std::optional<StartProfile> start;
};

std::string run_record_json(const RunRecord& record);

}  // namespace hpclaunch::job
