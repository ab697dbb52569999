#include "cli/libraries.h"

namespace hpclaunch::cli {

std::vector<Finding> library_findings(const std::vector<LibraryNote>& notes) {
  std::vector<Finding> findings;
  findings.reserve(notes.size());
  for (const LibraryNote& note : notes) {
    findings.push_back({"vendor-library", Severity::note, note.library + ": " + note.what, ""});
  }
  return findings;
}

Result<Topology> known_node(const std::string& file, Session& session) {
  if (!file.empty()) return read_topology(file);
  Result<LiveNode> live = probe_node(VendorLibraries::all);
  if (!live) return live.error();
  report(session, library_findings(live->notes));
  if (const Status asked = ask_libfabric(live->topology); !asked)
    report(session, {{"libfabric-silent", Severity::note,
                      "no providers are shown: " + asked.error().message, asked.error().hint}});
  return std::move(live->topology);
}

}  // namespace hpclaunch::cli
