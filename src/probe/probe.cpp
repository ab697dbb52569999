#include "hpclaunch/probe.h"

#include <functional>
#include <string>

#include "hpclaunch/sys.h"
#include "probe/child.h"
#include "probe/hwloc.h"

namespace hpclaunch {
namespace {

constexpr std::size_t kMaxFile = std::size_t{16}
                                 << 20;  ///< hwloc XML of a large node has 1 to 3 MB

/// Runs a reader in a child; what it read crosses as our JSON and is checked on this side.
Result<Topology> isolated(
    const std::function<Result<Topology>()>& read, const std::string& name, double limit_seconds,
    const std::function<void()>& meanwhile = [] {}) {
  const Result<std::string> text = probe::run_in_child(
      [&]() -> Result<std::string> {
        const Result<Topology> topology = read();
        if (!topology) return topology.error();
        if (const Status lawful = check_topology(*topology); !lawful) {
          return Error{ErrorKind::invalid, lawful.error().message};
        }
        return topology_to_json(*topology);
      },
      limit_seconds, meanwhile);
  if (!text) return text.error();
  return topology_from_json(*text, name);
}

}  // namespace

Result<Topology> probe_live(double limit_seconds, const std::function<void()>& meanwhile) {
  return isolated(probe::load_live, "<hwloc>", limit_seconds, meanwhile);
}

Result<Topology> read_topology(const std::string& path, double limit_seconds) {
  const Result<std::string> text = sys::read_file(path, kMaxFile);
  if (!text) return text.error();
  const std::size_t begin = text->find_first_not_of("\xEF\xBB\xBF \t\r\n");
  const char first = begin == std::string::npos ? '\0' : (*text)[begin];
  if (first == '{') return topology_from_json(*text, path);
  if (first != '<') {
    return Error{ErrorKind::invalid,
                 begin == std::string::npos ? "the topology file is empty"
                                            : "neither hwloc XML nor a topology in JSON",
                 "write one with: lstopo --of xml FILE, or: hpclaunch topo --json",
                 SourceRef{path}};
  }
  Result<Topology> topology = isolated([&] { return probe::load_xml(*text); }, path, limit_seconds);
  if (topology || topology.error().where) return topology;
  Error error = topology.error();
  error.where = SourceRef{path};
  return error;
}

}  // namespace hpclaunch
