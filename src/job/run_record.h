#pragma once
// --report FILE: how a job went, as JSON. docs/reference/supervise.md has the keys.
#include <optional>
#include <string>
#include <vector>

#include "hpclaunch/plan.h"
#include "hpclaunch/result.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::cli {

struct RunRecord {
  std::vector<std::string> command;  ///< as typed, or as it was started
  const Plan* plan = nullptr;        ///< nullptr: there is none
  std::vector<std::string> argv;     ///< of the launcher
  double started = 0;                ///< UNIX time
  double ended = 0;
  int status = 0;
  std::optional<sys::Ending> ending;  ///< nullopt: nothing was started, and `error` says why
  std::optional<Error> error;
};

std::string run_record_json(const RunRecord& record);

}  // namespace hpclaunch::cli
