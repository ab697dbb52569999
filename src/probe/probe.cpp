#include "hpclaunch/probe.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <optional>
#include <string>
#include <string_view>

#include "hpclaunch/sys.h"
#include "probe/child.h"
#include "probe/live.h"

namespace hpclaunch {
namespace {

/// hwloc XML of a large node has 1 to 3 MB.
constexpr std::size_t kMaxFile = std::size_t{16} << 20;

/// The diagnostics of a probe, each text ended by NUL, an empty text, and the topology.
std::string pack(const std::vector<Diagnostic>& diagnostics, const Topology& topology) {
  std::string bytes;
  for (const Diagnostic& one : diagnostics)
    for (const std::string* text : {&one.id, &one.message, &one.fix}) (bytes += *text) += '\0';
  return bytes + '\0' + pack_topology(topology);
}

Result<LiveNode> unpack(std::string_view bytes) {
  const auto next = [&] {
    const std::string_view text = bytes.substr(0, bytes.find('\0'));
    bytes.remove_prefix(std::min(text.size() + 1, bytes.size()));
    return std::string(text);
  };
  LiveNode node;
  for (std::string id = next(); !id.empty(); id = next()) {
    std::string message = next();
    node.diagnostics.push_back({std::move(id), Severity::note, std::move(message), next()});
  }
  Result<Topology> topology = unpack_topology(bytes);
  if (!topology) return Error{topology.error().kind, topology.error().message};
  node.topology = std::move(*topology);
  return node;
}

/// Runs a reader in a child process. Its topology is checked on this side.
Result<LiveNode> isolated(
    const std::function<Result<Topology>(std::vector<Diagnostic>&)>& read, double limit_seconds,
    const std::function<void()>& meanwhile = [] {}) {
  const Result<std::string> bytes = probe::run_in_child(
      [&]() -> Result<std::string> {
        std::vector<Diagnostic> diagnostics;
        const Result<Topology> topology = read(diagnostics);
        if (!topology) return topology.error();
        return pack(diagnostics, *topology);
      },
      limit_seconds, meanwhile);
  if (!bytes) return bytes.error();
  return unpack(*bytes);
}

/// A driver of accelerators: its files may not answer, and its libraries are foreign code.
bool has_driver() {
  for (const char* file : {"/dev/nvidiactl", "/dev/kfd", "/dev/dri"})
    if (access(file, F_OK) == 0) return true;
  return false;
}

/// Whether CUDA_VISIBLE_DEVICES names devices by this prefix.
bool named(std::string_view form) {
  const char* mask = std::getenv("CUDA_VISIBLE_DEVICES");
  return mask != nullptr && std::string_view(mask).find(form) != std::string_view::npos;
}

Result<Topology> read_file_at(const std::string& path, double limit_seconds) {
  const Result<std::string> text = sys::read_file(path, kMaxFile);
  if (!text) return text.error();
  const std::size_t begin = text->find_first_not_of("\xEF\xBB\xBF \t\r\n");
  const char first = begin == std::string::npos ? '\0' : (*text)[begin];
  if (first == '{') return topology_from_json(*text, path);
  if (first != '<') {
    return Error{ErrorKind::invalid,
                 begin == std::string::npos
                     ? "the topology file is empty"
                     : "not a topology: neither hwloc XML nor hpclaunch's JSON",
                 "", SourceRef{path}};
  }
  const auto read = [&](std::vector<Diagnostic>&) { return probe::load_xml(*text); };
  Result<LiveNode> node = isolated(read, limit_seconds);
  if (node) return std::move(node->topology);
  Error error = node.error();
  if (!error.where) error.where = SourceRef{path};
  return error;
}

}  // namespace

Result<LiveNode> probe::probe_asking(
    const std::function<vendor::Libraries(const Topology&)>& choose, double limit_seconds,
    const std::function<void()>& meanwhile) {
  const auto read = [&](std::vector<Diagnostic>& diagnostics) {
    Result<Topology> topology = load_live();
    if (topology) diagnostics = vendor::enrich(*topology, choose(*topology));
    return topology;
  };
  if (!has_driver())
    if (std::optional<Result<Topology>> files = load_from_files();
        files && (!*files || choose(**files).none())) {
      meanwhile();
      if (!*files) return files->error();
      return LiveNode{**std::move(files), {}};
    }
  return isolated(read, limit_seconds, meanwhile);
}

Result<std::string> topology_xml(const std::string& path, double limit_seconds) {
  Result<std::string> file = std::string();
  if (!path.empty()) file = sys::read_file(path, kMaxFile);
  if (!file) return file.error();
  if (!path.empty() && file->find("<topology") == std::string::npos)
    return Error{ErrorKind::unsupported, "only hwloc XML can be written as XML", "use --json",
                 SourceRef{path}};
  return probe::run_in_child([&] { return probe::export_xml(path.empty() ? nullptr : &*file); },
                             limit_seconds);
}

Result<LiveNode> probe_node(VendorLibraries libraries, double limit_seconds,
                            const std::function<void()>& meanwhile) {
  // Read here: the child's environment has no mask.
  const bool instances = named("MIG-");  // which only NVML can match with devices
  const bool by_uuid = named("GPU-");
  const auto choose =
      [&](const Topology& topology) {  // the driver's files in /proc usually have UUIDs
        const bool lacking = std::ranges::any_of(topology.devices, [](const Device& device) {
          return device.vendor == "nvidia" && device.uuid.empty();
        });
        return probe::vendor::libraries_to_open(topology, libraries,
                                                instances || (by_uuid && lacking));
      };
  return probe::probe_asking(choose, limit_seconds, meanwhile);
}

Result<Topology> read_topology(const std::string& path, double limit_seconds) {
  Result<Topology> topology = read_file_at(path, limit_seconds);
  if (topology || !topology.error().hint.empty()) return topology;
  Error error = topology.error();
  error.hint = error.where && error.where->line > 0
                   ? "fix it there; docs/reference/topology.md describes the format, hpclaunch "
                     "topo --json prints an example"
                   : "write one with: lstopo --of xml FILE, or: hpclaunch topo --json > FILE";
  return error;
}

}  // namespace hpclaunch
