#include "cli/picture.h"

#include "job/write_file.h"

namespace hpclaunch::cli {

void declare_picture(Parser& parser, PictureArgs& args) {
  parser.flag("--picture", args.terminal, "Draw the node, for a terminal");
  parser.text_or("--svg", args.svg, "-", "FILE",
                 "Draw the node as SVG, into this file or to standard output");
}

Status check_picture(const PictureArgs& args, bool json) {
  const int kinds = (json ? 1 : 0) + (args.terminal ? 1 : 0) + (args.svg.empty() ? 0 : 1);
  if (kinds > 1)
    return Error{ErrorKind::usage, "--json, --picture and --svg are different outputs",
                 "type one of them"};
  if (args.svg.empty() || args.svg == "-") return Done{};
  return check_file("--svg", args.svg);
}

int put_svg(const PictureArgs& args, const std::string& document, Session& session) {
  if (args.svg == "-")
    return print(session, document) ? 0 : exit_status(ErrorKind::system, session.exit_rules);
  const Status written = write_file("--svg", args.svg, document);
  return written ? 0 : report(session, written.error());
}

}  // namespace hpclaunch::cli
