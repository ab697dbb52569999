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
using json_reader::Need;
using json_reader::Object;
using topology_fields::fields;
using topology_fields::How;

constexpr int kSchema = 1;

/// Above every real machine; limits memory.
constexpr std::size_t kMaxMembers = 4 * CpuSet::kCapacity;

// ---- reading ---------------------------------------------------------------------------------------

std::vector<Item> list(Context& context, const Item& at, std::string_view of_what) {
  std::vector<Item> items = context.any_elements(at, of_what);
  if (items.size() <= kMaxMembers) return items;
  context.fault(at, fmt::format("{} members, more than {}", items.size(), kMaxMembers));
  return {};
}

/// Reads one field of an object; what is missing keeps its default.
struct FieldReader {
  Object& object;

  void operator()(const char* key, int& number, How how) const {
    constexpr int kMax = std::numeric_limits<int>::max();
    const bool required = how == How::required;
    number = object.whole(key, required ? 0 : number, kMax,
                          required ? std::nullopt : std::optional(number));
  }
  void operator()(const char* key, std::uint64_t& number, How /*how*/) const {
    const Item at = object.find(key);
    if (!at) return;
    const std::string& text = at.json->text;
    const char* end = text.data() + text.size();
    const bool is_number =
        at.json->kind == Json::Kind::integer || at.json->kind == Json::Kind::number;
    const auto [stop, error] = std::from_chars(text.data(), end, number);
    if (is_number && stop == end && error == std::errc()) return;
    object.context().fault(at, fmt::format("\"{}\" must be a whole number from 0", key));
  }
  void operator()(const char* key, std::string& text, How /*how*/) const {
    text = object.context().string(object.find(key));
  }
  void operator()(const char* key, std::vector<std::string>& texts, How /*how*/) const {
    for (const Item& item : list(object.context(), object.find(key), "strings"))
      texts.push_back(object.context().string(item));
  }
  void operator()(const char* key, CpuSet& pus, How how) const {
    const Item at = object.find(key, how == How::required ? Need::required : Need::optional);
    const bool none = at.json->kind == Json::Kind::string && at.json->text.empty();
    if (!none) pus = object.context().cores(at);
  }
};

template <class Part>
void read_parts(Object& document, const char* key, Need need, std::vector<Part>& parts) {
  for (const Item& item : list(document.context(), document.find(key, need), "objects")) {
    Object object(document.context(), item);
    fields(parts.emplace_back(), FieldReader{object});
    object.finish();
    if (document.context().full()) return;
  }
}

bool read_schema(Object& document) {
  const Item schema = document.find("schema", Need::required);
  if (schema.json->kind == Json::Kind::integer && schema.json->whole == kSchema) return true;
  document.context().fault(schema, fmt::format("this program reads schema {}", kSchema),
                           fmt::format("write \"schema\": {}", kSchema));
  return false;
}

Topology read_topology(Object& document) {
  Topology topology;
  const FieldReader read{document};
  read("hostname", topology.hostname, How::written);
  read_parts(document, "packages", Need::optional, topology.packages);
  read_parts(document, "numa_nodes", Need::optional, topology.numa_nodes);
  read_parts(document, "caches", Need::optional, topology.caches);
  read_parts(document, "cores", Need::required, topology.cores);
  read_parts(document, "devices", Need::optional, topology.devices);
  topology.no_devices = document.has("devices") && topology.devices.empty();
  read_parts(document, "nics", Need::optional, topology.nics);
  read_parts(document, "links", Need::optional, topology.links);
  if (document.has("allowed")) {
    read("allowed", topology.allowed, How::required);
  } else {
    topology.allowed = topology.all_pus();
    document.find("allowed");
  }
  document.finish();
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
  std::vector<std::string> lines;
  for (const Part& part : parts) {
    std::vector<std::string> members;
    fields(part, [&]<class Value>(const char* name, const Value& value, How how) {
      if (how != How::known || value != Value())
        members.push_back(fmt::format("\"{}\": {}", name, written(value)));
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

Result<Topology> topology_from_json(std::string_view text, const std::string& file) {
  Context context(text, file);
  // What is written wrongly says more than what is missing, which may be the same key.
  const auto first = [&] {
    const std::vector<Error> problems = context.take();
    const auto written = std::find_if(problems.begin(), problems.end(), [](const Error& problem) {
      return !problem.message.ends_with("is missing");
    });
    return written == problems.end() ? problems.front() : *written;
  };
  const std::optional<Json> tree = json_reader::parse_tree(text, context);
  if (!tree) return first();
  Object document(context, {&*tree});
  if (context.count() > 0 || !read_schema(document)) return first();
  Topology topology = read_topology(document);
  if (context.count() > 0) return first();
  if (const Status good = check_topology(topology); !good) {
    const std::string pointer = good.error().where->pointer;
    context.fault({&json_reader::follow(*tree, pointer), pointer}, good.error().message);
    return first();
  }
  return topology;
}

}  // namespace hpclaunch
