#pragma once
// What the ranks and the nodes really got: `hpclaunch verify`, --preflight, `verify --doctor`.
#include <functional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/check.h"
#include "hpclaunch/doctor.h"
#include "hpclaunch/prepared.h"
#include "hpclaunch/session.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::job {

/// The findings in one line, with the node's position (RANK); ends in a newline.
std::string node_line(const std::vector<DoctorRow>& rows, const EnvSnapshot& env);

struct Verification {
  Observed seen;
  sys::Ended ended;
  std::vector<std::string> argv;  ///< the launch line
  Comparison comparison;
};

/// When the ranks report.
struct ReportTime {
  std::string module;  ///< after Python has imported it, in place of the program; "" for none
  std::string after;  ///< after so many seconds of the program, or at its "end"; "": in place of it
  double limit_seconds = 0;  ///< for all reports, beside the time of the program
};

/// What is wrong with `time`, of the plan's program. Errors: `usage`.
Status check_time(const ReportTime& time, const std::vector<std::string>& program);

/// Starts a report on each rank and compares. With ended.interrupted_by there is no comparison. Errors: as the
/// launcher's render and sys::listen_to; `system` when no rank reported in time.
Result<Verification> verify(const Prepared& prepared, const ReportTime& time,
                            const OtherLines& other);

/// The same with one unbound report per node, before a start. A diagnostic per difference. Where the ranks' environment
/// names a provider or a network plug-in, every node is also asked for it (examine_nodes).
Result<std::vector<Diagnostic>> preflight(const Prepared& prepared, double limit_seconds,
                                          const OtherLines& other);

struct NodesExamined {
  std::vector<Difference> findings;  ///< what.message is the first node's; errors first
  int answered = 0;                  ///< nodes
  int interrupted_by = 0;            ///< signal, 0 for none
};

/// `hpclaunch doctor --node` on each node of the plan, by its launcher. Lines of others go to `other`. `fabric`: as
/// DoctorSubject has it. Errors: as the launcher's render; `system`.
Result<NodesExamined> examine_nodes(const Prepared& prepared, bool fabric, double limit_seconds,
                                    const OtherLines& other);

}  // namespace hpclaunch::job
