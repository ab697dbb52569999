
#include "cli/command.h"
#include "cli/options.h"
#include "cli/picture.h"
#include "hpclaunch/probe.h"
#include "job/libraries.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  std::string topology;
  bool json = false;
  PictureArgs picture;
};

int topo(const Args& args, Session& session) {
  if (const Status good = check_picture(args.picture, args.json); !good)
    return report(session, good.error());
  const Result<Topology> node = known_node(args.topology, session);
  if (!node) return report(session, node.error());
  if (!args.picture.svg.empty()) return put_svg(args.picture, topology_svg(*node), session);
  const std::string text = args.json               ? topology_to_json(*node)
                           : args.picture.terminal ? topology_picture(*node, session.style)
                                                   : topology_tree(*node, session.style);
  return print(session, text) ? 0 : exit_status(ErrorKind::system, session.exit_rules);
}

}  // namespace

Runner declare_topo(Parser& parser) {
  auto args = std::make_shared<Args>();
  parser.text("--topology", args->topology, "FILE",
              "Show this file instead: hwloc XML, or what topo --json wrote");
  parser.flag("--json", args->json, "For programs, and for --topology");
  declare_picture(parser, args->picture);
  parser.footer(
      "Exit status: 0 shown, 2 the node or the file could not be read, or the picture not be "
      "written.");
  return [args](Session& session) { return topo(*args, session); };
}

}  // namespace hpclaunch::cli
