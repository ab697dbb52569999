// Started by the shim on the first rank of each node, by hpclaunch verify and run --preflight: adds what a shim without
// a C library cannot find out to the report that it passes on.

#include "cli/command.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

int rank_report(const std::string& program, Session& session) {
  std::optional<Result<RankSeen>> seen;
  ReportPieces pieces;
  bool was_piece = false;
  const std::string lines = session.env.get("HPCLAUNCH_REPORT");
  for (const std::string_view line : split(lines, '\n'))
    if (auto found = pieces.take(line, was_piece)) seen = std::move(found);
  if (!seen || !*seen)
    return report(session, Error{ErrorKind::usage, "rank-report: HPCLAUNCH_REPORT is not a report",
                                 "hpclaunch verify"});
  RankReport whole = *(*seen)->found;
  whole.facts = sys::node_facts(session.env, program);
  whole.clock = sys::wall_clock();
  (*seen)->found = std::make_shared<const RankReport>(std::move(whole));
  return sys::write_all(1, report_pieces(**seen)) ? 0 : 1;
}

}  // namespace

Runner declare_rank_report(Parser& parser) {
  auto program = std::make_shared<std::string>();
  parser.text("--program", *program, "PATH", "Program to check");
  return [program](Session& session) { return rank_report(*program, session); };
}

}  // namespace hpclaunch::cli
