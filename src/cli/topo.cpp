#include "cli/command.h"

namespace hpclaunch::cli {

namespace {

struct Args {
  std::string topology;
  bool json = false;
  bool xml = false;
  PictureArgs picture;
};

int topo(const Args& args, Session& session) {
  if (const Status good = check_picture(args.picture, (args.json ? 1 : 0) + (args.xml ? 1 : 0));
      !good)
    return report(session, good.error());
  if (args.xml) {
    const Result<std::string> xml = job::known_xml(args.topology);
    return xml ? print_all(session, *xml) : report(session, xml.error());
  }
  const Result<Topology> node = job::known_node(args.topology, session);
  if (!node) return report(session, node.error());
  if (!args.picture.svg.empty()) return write_svg(args.picture, topology_svg(*node), session);
  const std::string text = args.json               ? topology_to_json(*node)
                           : args.picture.terminal ? topology_picture(*node, session.style)
                                                   : topology_tree(*node, session.style);
  return print_all(session, text);
}

}  // namespace

Runner declare_topo(Parser& parser) {
  auto args = std::make_shared<Args>();
  parser.text("--topology", args->topology, "FILE",
              "Topology to show: hwloc XML, or JSON of hpclaunch topo");
  parser.flag("--json", args->json, "Print JSON, as --topology reads it");
  parser.flag("--xml", args->xml, "Print hwloc XML");
  declare_picture(parser, args->picture);
  parser.footer("Exit status: 0 shown, 2 node, file or picture failed.");
  return [args](Session& session) { return topo(*args, session); };
}

}  // namespace hpclaunch::cli
