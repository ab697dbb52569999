#include "job/libraries.h"

namespace hpclaunch::cli {

Result<Topology> known_node(const std::string& file, Session& session) {
  if (!file.empty()) return read_topology(file);
  Result<LiveNode> live = probe_node(VendorLibraries::all);
  if (!live) return live.error();
  report(session, live->diagnostics);
  if (const Status asked = ask_libfabric(live->topology); !asked)
    report(session, {{"libfabric-silent", Severity::note,
                      "no providers are shown: " + asked.error().message, asked.error().hint}});
  return std::move(live->topology);
}

}  // namespace hpclaunch::cli
