
#include "cli/command.h"
#include "cli/options.h"
#include "hpclaunch/probe.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  std::string topology;
  bool json = false;
};

int topo(const Args& args, Session& session) {
  const Result<Topology> node = args.topology.empty() ? probe_live() : read_topology(args.topology);
  if (!node) return report(session, node.error());
  const std::string text =
      args.json ? topology_to_json(*node) : topology_tree(*node, session.style);
  return print(session, text) ? 0 : exit_status(ErrorKind::system, session.exit_rules);
}

}  // namespace

Runner declare_topo(Parser& parser) {
  auto args = std::make_shared<Args>();
  parser.text("--topology", args->topology, "FILE",
              "Show this file instead: hwloc XML, or what topo --json wrote");
  parser.flag("--json", args->json, "For programs, and for --topology");
  parser.footer("Exit status: 0 shown, 2 the node or the file could not be read.");
  return [args](Session& session) { return topo(*args, session); };
}

}  // namespace hpclaunch::cli
