// A topology as JSON and back (docs/reference/topology.md).

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <charconv>
#include <limits>
#include <nlohmann/json.hpp>

#include "hpclaunch/json_reader.h"
#include "hpclaunch/topology.h"
#include "model/topology_fields.h"

namespace hpclaunch {
namespace {

using json_reader::Context;
using json_reader::Item;
using json_reader::Json;
using topology_fields::fields;
using topology_fields::How;

constexpr int kSchema = 1;

/// Above every real machine; limits memory.
constexpr std::size_t kMaxMembers = 4 * CpuSet::kCapacity;

// ---- reading ---------------------------------------------------------------------------------------

std::vector<Item> list(const Item& at, std::string_view of_what) {
  if (at->kind == Json::Kind::array && at->items.empty()) return {};
  if (at->items.size() <= kMaxMembers) return at.elements(of_what);
  at.fault(fmt::format("{} members, more than {}", at->items.size(), kMaxMembers));
  return {};
}

/// Reads one field of an object; what is missing keeps its default.
struct FieldReader {
  const Item& object;

  Item find(const char* key, How how) const {
    return how == How::required ? object.need(key) : object[key];
  }
  void operator()(const char* key, int& number, How how) const {
    const int min = how == How::required ? 0 : number;
    number = find(key, how).whole(min, std::numeric_limits<int>::max());
  }
  void operator()(const char* key, std::uint64_t& number, How how) const {
    const Item at = find(key, how);
    const char* end = at->text.data() + at->text.size();
    const bool is_number = at->kind == Json::Kind::integer || at->kind == Json::Kind::number;
    const auto [stop, error] = std::from_chars(at->text.data(), end, number);
    if (!is_number || stop != end || error != std::errc())
      at.fault(fmt::format("\"{}\" must be a whole number from 0", key));
  }
  void operator()(const char* key, std::string& text, How how) const {
    text = find(key, how).string();
  }
  void operator()(const char* key, std::vector<std::string>& texts, How how) const {
    for (const Item& item : list(find(key, how), "strings")) texts.push_back(item.string());
  }
  void operator()(const char* key, CpuSet& pus, How how) const {
    const Item at = find(key, how);
    const bool none = at->kind == Json::Kind::string && at->text.empty();
    if (!none) pus = at.cores();
  }
};

template <class Part>
void read_parts(const Item& at, std::vector<Part>& parts) {
  for (const Item& item : list(at, "objects")) fields(parts.emplace_back(), FieldReader{item});
}

Topology read_topology(const Item& document) {
  Topology topology;
  const FieldReader read{document};
  read("hostname", topology.hostname, How::written);
  read_parts(document["packages"], topology.packages);
  read_parts(document["numa_nodes"], topology.numa_nodes);
  read_parts(document["caches"], topology.caches);
  read_parts(document.need("cores"), topology.cores);
  read_parts(document["devices"], topology.devices);
  topology.no_devices = document["devices"] && topology.devices.empty();
  read_parts(document["nics"], topology.nics);
  read_parts(document["links"], topology.links);
  topology.allowed = topology.all_pus();
  if (document["allowed"]) read("allowed", topology.allowed = {}, How::required);
  return topology;
}

// ---- writing ---------------------------------------------------------------------------------------

/// A JSON string with its quotes; bytes that are not UTF-8 become U+FFFD.
std::string written(const std::string& text) {
  using nlohmann::json;
  return json(text).dump(-1, ' ', false, json::error_handler_t::replace);
}
std::string written(int number) { return std::to_string(number); }
std::string written(std::uint64_t number) { return std::to_string(number); }
std::string written(const CpuSet& pus) { return fmt::format("\"{}\"", pus.to_list()); }
std::string written(const std::vector<std::string>& texts) {
  std::vector<std::string> items;
  items.reserve(texts.size());
  for (const std::string& text : texts) items.push_back(written(text));
  return fmt::format("[{}]", fmt::join(items, ", "));
}

template <class Part>
std::string written_parts(const char* key, const std::vector<Part>& parts) {
  std::vector<std::string> defaults;
  const Part none{};
  fields(none, [&](const char*, const auto& value, How) { defaults.push_back(written(value)); });
  std::vector<std::string> lines;
  for (const Part& part : parts) {
    std::vector<std::string> members;
    auto usual = defaults.begin();
    fields(part, [&](const char* name, const auto& value, How how) {
      const std::string text = written(value);
      if (*usual++ != text || how != How::known)
        members.push_back(fmt::format("\"{}\": {}", name, text));
    });
    lines.push_back(fmt::format("    {{{}}}", fmt::join(members, ", ")));
  }
  if (lines.empty()) return fmt::format("  \"{}\": []", key);
  return fmt::format("  \"{}\": [\n{}\n  ]", key, fmt::join(lines, ",\n"));
}

}  // namespace

std::string topology_to_json(const Topology& topology) {
  std::vector<std::string> members = {
      fmt::format("  \"schema\": {}", kSchema),
      fmt::format("  \"hostname\": {}", written(topology.hostname)),
      fmt::format("  \"allowed\": \"{}\"", topology.allowed.to_list()),
      written_parts("packages", topology.packages),
      written_parts("numa_nodes", topology.numa_nodes),
      written_parts("caches", topology.caches),
      written_parts("cores", topology.cores)};
  if (!topology.devices.empty() || topology.no_devices)
    members.push_back(written_parts("devices", topology.devices));
  if (!topology.nics.empty()) members.push_back(written_parts("nics", topology.nics));
  if (!topology.links.empty()) members.push_back(written_parts("links", topology.links));
  return fmt::format("{{\n{}\n}}\n", fmt::join(members, ",\n"));
}

Topology topology_of(const Item& at) {
  json_reader::need_schema(at);
  return read_topology(at);
}

Result<Topology> topology_from_json(std::string_view text, const std::string& file) {
  Context context(text, file);
  const Item document = context.root();
  Topology topology;
  if (document && context.count() == 0 && json_reader::need_schema(document)) {
    topology = read_topology(document);
    document.finish();
  }
  std::vector<Error> problems = context.take();
  if (problems.empty()) {
    const Status good = check_topology(topology);
    if (good) return topology;
    const std::string& pointer = good.error().where->pointer;
    problems.push_back(good.error());
    problems.front().where = context.place(context.follow(pointer).mark, pointer);
  }
  // What is written wrongly says more than what is missing, which may be the same key.
  const auto written = std::ranges::find_if(
      problems, [](const Error& problem) { return !problem.message.ends_with("is missing"); });
  return written == problems.end() ? problems.front() : *written;
}

}  // namespace hpclaunch
