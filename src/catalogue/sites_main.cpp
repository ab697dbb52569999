// hpclaunch-sites: profiles of sites and parts as C++. A program of its own: their reader asks the rows that
// hpclaunch-catalogue has compiled.
#include <fmt/format.h>

#include "sites.h"
#include "tool.h"

using namespace hpclaunch;

int main(int argc, char** argv) {
  if (argc < 3) {
    fmt::print(stderr, "usage: hpclaunch-sites OUTPUT PROFILE...     (OUTPUT \"-\": check only)\n");
    return 2;
  }
  catalogue::Sites sites;
  catalogue::Tool tool;
  tool.read = [&](const std::string& file, const std::string& text) {
    return catalogue::read_site(file, text, sites);
  };
  tool.emit = [&] { return catalogue::emit_sites(sites); };
  return catalogue::run_tool(tool, argv[1], std::vector<std::string>(argv + 2, argv + argc));
}
