#include "job/libraries.h"

namespace hpclaunch::cli {

std::vector<Diagnostic> library_diagnostics(const std::vector<LibraryNote>& notes) {
  std::vector<Diagnostic> diagnostics;
  diagnostics.reserve(notes.size());
  for (const LibraryNote& note : notes) {
    diagnostics.push_back({"vendor-library", Severity::note, note.library + ": " + note.what, ""});
  }
  return diagnostics;
}

Result<Topology> known_node(const std::string& file, Session& session) {
  if (!file.empty()) return read_topology(file);
  Result<LiveNode> live = probe_node(VendorLibraries::all);
  if (!live) return live.error();
  report(session, library_diagnostics(live->notes));
  if (const Status asked = ask_libfabric(live->topology); !asked)
    report(session, {{"libfabric-silent", Severity::note,
                      "no providers are shown: " + asked.error().message, asked.error().hint}});
  return std::move(live->topology);
}

}  // namespace hpclaunch::cli
