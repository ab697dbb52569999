#pragma once
// Starting the rank-report in place of the program, and collecting what it says.
#include <string>
#include <vector>

#include "cli/session.h"
#include "hpclaunch/check.h"
#include "hpclaunch/sys.h"
#include "job/prepare.h"

namespace hpclaunch::cli {

/// What the ranks are asked.
struct Question {
  std::vector<std::string> names;  ///< of variables to fingerprint
  std::string local_variable;      ///< "" for none
  std::string program;             ///< absolute; "" for none
  std::string module;              ///< to import first; "" for none
  std::string python;              ///< absolute
};

/// The command that reports, for Plan::command.
std::vector<std::string> report_command(const Question& question);

/// One rank per node, bound to nothing, with the job's constants: what looks at the nodes first.
Plan one_rank_per_node(const Plan& plan);

struct Collected {
  Observed seen;
  sys::Ended ended;
  std::vector<std::string> argv;  ///< the launch line
};

/// A node may call itself otherwise than the host list does: its addresses tell. Fills Observed::addresses
/// for such hosts; each look-up may take seconds where a name service does not answer, so there are only
/// so many.
void look_up_hosts(const Plan& plan, Observed& seen);

/// Starts `plan`, whose command is a report_command, by the launcher of `prepared`, and waits for its end.
/// The shim leaves its own check to whoever reads the reports. What else comes on the launcher's standard
/// output goes to session.err.
/// Errors: as encode_wire, the launcher's render and sys::listen_to.
Result<Collected> collect_reports(Plan plan, const Prepared& prepared, const Session& session,
                                  double limit_seconds);

}  // namespace hpclaunch::cli
