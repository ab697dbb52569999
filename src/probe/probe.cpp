#include "hpclaunch/probe.h"

#include <algorithm>
#include <cstdlib>
#include <functional>
#include <nlohmann/json.hpp>
#include <string>
#include <string_view>

#include "hpclaunch/sys.h"
#include "probe/child.h"
#include "probe/live.h"

namespace hpclaunch {
namespace {

/// hwloc XML of a large node has 1 to 3 MB.
constexpr std::size_t kMaxFile = std::size_t{16} << 20;

std::string to_json_line(const std::vector<Diagnostic>& diagnostics) {
  nlohmann::json all = nlohmann::json::array();
  for (const Diagnostic& one : diagnostics) all.push_back({one.id, one.message});
  return all.dump(-1, ' ', false, nlohmann::json::error_handler_t::replace);
}

std::vector<Diagnostic> notes_from_json(std::string_view text) {
  std::vector<Diagnostic> notes;
  const nlohmann::json all = nlohmann::json::parse(text, nullptr, false);
  if (!all.is_array()) return notes;
  for (const nlohmann::json& one : all)
    notes.push_back({one.at(0).get<std::string>(), Severity::note, one.at(1).get<std::string>()});
  return notes;
}

/// Runs a reader in a child process. Its result is a line of diagnostics and the topology's JSON, which is
/// checked on this side.
Result<LiveNode> isolated(
    const std::function<Result<Topology>(std::vector<Diagnostic>&)>& read, const std::string& name,
    double limit_seconds, const std::function<void()>& meanwhile = [] {}) {
  const Result<std::string> text = probe::run_in_child(
      [&]() -> Result<std::string> {
        std::vector<Diagnostic> diagnostics;
        const Result<Topology> topology = read(diagnostics);
        if (!topology) return topology.error();
        if (const Status valid = check_topology(*topology); !valid)
          return Error{ErrorKind::invalid, valid.error().message};
        return to_json_line(diagnostics) + "\n" + topology_to_json(*topology);
      },
      limit_seconds, meanwhile);
  if (!text) return text.error();
  const std::string_view all = *text;
  const std::size_t line = all.find('\n');
  Result<Topology> topology = topology_from_json(all.substr(line + 1), name);
  if (!topology) return topology.error();
  return LiveNode{std::move(*topology), notes_from_json(all.substr(0, line))};
}

/// Whether CUDA_VISIBLE_DEVICES names devices by this prefix.
bool named(std::string_view form) {
  const char* mask = std::getenv("CUDA_VISIBLE_DEVICES");
  return mask != nullptr && std::string_view(mask).find(form) != std::string_view::npos;
}

/// Whether an NVIDIA device has no UUID; the driver's files in /proc usually have it.
bool lacks_uuid(const Topology& topology) {
  return std::any_of(topology.devices.begin(), topology.devices.end(), [](const Device& device) {
    return device.vendor == "nvidia" && device.uuid.empty();
  });
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
  Result<LiveNode> node = isolated(read, path, limit_seconds);
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
  return isolated(read, "<hwloc>", limit_seconds, meanwhile);
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
  const auto choose = [&](const Topology& topology) {
    return probe::vendor::libraries_to_open(topology, libraries,
                                            instances || (by_uuid && lacks_uuid(topology)));
  };
  return probe::probe_asking(choose, limit_seconds, meanwhile);
}

Result<Topology> probe_live(double limit_seconds, const std::function<void()>& meanwhile) {
  Result<LiveNode> node = probe_node(VendorLibraries::if_needed, limit_seconds, meanwhile);
  if (!node) return node.error();
  return std::move(node->topology);
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
