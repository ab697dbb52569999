#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "hpclaunch/text.h"
#include "hpclaunch/topology.h"
#include "model/json_position.h"

namespace hpclaunch {
namespace {

using nlohmann::json;

constexpr int kSchema = 1;
/// More members than any array of a real machine has; stops a file that only wants our memory.
constexpr std::size_t kMaxMembers = 4 * CpuSet::kCapacity;

std::string json_text(std::string_view text) {
  return json(std::string(text)).dump(-1, ' ', false, json::error_handler_t::replace);
}

std::string_view json_noun(const json& value) {
  if (value.is_string()) return "a string";
  if (value.is_number()) return "a number";
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  return value.is_boolean() ? "true or false" : "null";
}

/// Takes values out of a document and keeps the first complaint; after one, every value is a
/// default.
class Reader {
 public:
  Reader(std::string_view text, const std::string& file) : text_(text), file_(file) {}

  std::optional<Error> failed;

  void fail(const std::string& pointer, std::string message, std::string hint = {}) {
    if (failed) return;
    const TextPosition at = position_of_pointer(text_, pointer);
    failed = Error{ErrorKind::invalid, std::move(message), std::move(hint),
                   SourceRef{file_, at.line, at.column, pointer}};
  }

  /// The object has no key but these.
  void only(const json& object, const std::string& pointer, const std::vector<std::string>& keys) {
    if (!object.is_object()) {
      return fail(pointer, fmt::format("expected an object, found {}", json_noun(object)));
    }
    for (const auto& member : object.items()) {
      if (std::find(keys.begin(), keys.end(), member.key()) != keys.end()) continue;
      const auto meant = nearest(member.key(), keys);
      return fail(pointer + "/" + pointer_token(member.key()),
                  fmt::format("unknown key {}", json_text(member.key())),
                  meant ? fmt::format("did you mean \"{}\"?", *meant)
                        : fmt::format("known here: {}", fmt::join(keys, ", ")));
    }
  }

  /// nullptr when it is not there; a complaint when it is required.
  const json* member(const json& object, const std::string& pointer, const char* key,
                     bool required) {
    if (failed || !object.is_object()) return nullptr;
    const auto found = object.find(key);
    if (found != object.end()) return &*found;
    if (required) fail(pointer, fmt::format("key \"{}\" is missing", key));
    return nullptr;
  }

  std::uint64_t natural(const json& object, const std::string& pointer, const char* key) {
    const json* value = member(object, pointer, key, false);
    if (value == nullptr) return 0;
    if (value->is_number_unsigned()) return value->get<std::uint64_t>();
    fail(pointer + "/" + key, fmt::format("\"{}\" must be a whole number from 0", key));
    return 0;
  }

  int integer(const json& object, const std::string& pointer, const char* key, int min,
              std::optional<int> otherwise) {
    constexpr int kMax = 2'147'483'647;
    const json* value = member(object, pointer, key, !otherwise);
    if (value == nullptr) return otherwise.value_or(min);
    if (value->is_number_unsigned() && value->get<std::uint64_t>() <= kMax &&
        value->get<int>() >= min) {
      return value->get<int>();
    }
    if (value->is_number_integer() && !value->is_number_unsigned() &&
        value->get<std::int64_t>() >= min) {
      return value->get<int>();
    }
    fail(pointer + "/" + key,
         fmt::format("\"{}\" must be a whole number from {} to {}", key, min, kMax));
    return min;
  }

  std::string string(const json& object, const std::string& pointer, const char* key) {
    const json* value = member(object, pointer, key, false);
    if (value == nullptr) return {};
    if (value->is_string()) return value->get<std::string>();
    fail(pointer + "/" + key,
         fmt::format("\"{}\" must be a string, not {}", key, json_noun(*value)));
    return {};
  }

  CpuSet cpus(const json& object, const std::string& pointer, const char* key, bool may_be_empty) {
    const json* value = member(object, pointer, key, true);
    if (value == nullptr) return {};
    const std::string at = pointer + "/" + key;
    if (!value->is_string()) {
      fail(at, fmt::format("\"{}\" must be a list in a string, not {}", key, json_noun(*value)),
           "write it like \"0-3,8\"");
      return {};
    }
    const std::string list = value->get<std::string>();
    if (list.empty() && may_be_empty) return {};
    Result<CpuSet> set = CpuSet::parse(list);
    if (!set) {
      fail(at, set.error().message, set.error().hint);
      return {};
    }
    return *set;
  }

  /// Calls `read(element, pointer)` for each element of an array that may be missing.
  template <class Read>
  void each(const json& object, const char* key, bool required, Read read) {
    const json* array = member(object, "", key, required);
    if (array == nullptr) return;
    const std::string pointer = fmt::format("/{}", key);
    if (!array->is_array()) {
      return fail(pointer, fmt::format("\"{}\" must be an array, not {}", key, json_noun(*array)));
    }
    if (array->size() > kMaxMembers) {
      return fail(pointer, fmt::format("\"{}\" has {} members, more than {}", key, array->size(),
                                       kMaxMembers));
    }
    for (std::size_t i = 0; i < array->size() && !failed; ++i) {
      read((*array)[i], fmt::format("{}/{}", pointer, i));
    }
  }

 private:
  std::string_view text_;
  std::string file_;
};

Error broken(std::string_view text, const std::string& file, std::size_t byte, std::string what) {
  const std::size_t detail = what.find("syntax error");
  if (detail != std::string::npos) what.erase(0, detail);
  const TextPosition at = position_of(text, byte > 0 ? byte - 1 : 0);
  return Error{ErrorKind::invalid, "not JSON: " + what, {}, SourceRef{file, at.line, at.column}};
}

/// Finds a key that occurs twice in one object, of which the library's documents keep only the
/// last. (Its parser callbacks could tell too, in time quadratic in the length of an array.)
class KeyWatch {
 public:
  std::optional<std::string> twice;

  bool null() { return true; }
  bool boolean(bool) { return true; }
  bool number_integer(json::number_integer_t) { return true; }
  bool number_unsigned(json::number_unsigned_t) { return true; }
  bool number_float(json::number_float_t, const json::string_t&) { return true; }
  bool string(json::string_t&) { return true; }
  bool binary(json::binary_t&) { return true; }
  bool start_array(std::size_t) { return true; }
  bool end_array() { return true; }
  bool parse_error(std::size_t, const std::string&, const json::exception&) { return false; }
  bool start_object(std::size_t) {
    open_.emplace_back();
    return true;
  }
  bool end_object() {
    open_.pop_back();
    return true;
  }
  bool key(json::string_t& name) {
    if (!open_.back().insert(name).second) twice = name;
    return !twice;
  }

 private:
  std::vector<std::set<std::string>> open_;
};

/// The document, its keys unique in each object.
Result<json> parse(std::string_view text, const std::string& file) {
  try {
    json document = json::parse(text.begin(), text.end());
    KeyWatch watch;
    json::sax_parse(text.begin(), text.end(), &watch);
    if (!watch.twice) return document;
    return Error{ErrorKind::invalid,
                 fmt::format("key {} occurs twice in one object", json_text(*watch.twice)),
                 {},
                 SourceRef{file}};
  } catch (const json::parse_error& error) {
    return broken(text, file, error.byte, error.what());
  } catch (const json::exception& error) {
    return broken(text, file, 0, error.what());
  }
}

void read_groups(Reader& reader, const json& document, Topology& topology) {
  reader.each(document, "packages", false, [&](const json& item, const std::string& at) {
    reader.only(item, at, {"os_index", "model", "pus"});
    topology.packages.push_back({reader.integer(item, at, "os_index", 0, std::nullopt),
                                 reader.string(item, at, "model"),
                                 reader.cpus(item, at, "pus", false)});
  });
  reader.each(document, "numa_nodes", false, [&](const json& item, const std::string& at) {
    reader.only(item, at, {"os_index", "memory_bytes", "pus"});
    topology.numa_nodes.push_back({reader.integer(item, at, "os_index", 0, std::nullopt),
                                   reader.natural(item, at, "memory_bytes"),
                                   reader.cpus(item, at, "pus", true)});
  });
  reader.each(document, "caches", false, [&](const json& item, const std::string& at) {
    reader.only(item, at, {"level", "size_bytes", "pus"});
    topology.caches.push_back({reader.integer(item, at, "level", 2, std::nullopt),
                               reader.natural(item, at, "size_bytes"),
                               reader.cpus(item, at, "pus", false)});
  });
  reader.each(document, "cores", true, [&](const json& item, const std::string& at) {
    reader.only(item, at, {"package", "numa", "pus"});
    topology.cores.push_back({reader.integer(item, at, "package", -1, -1),
                              reader.integer(item, at, "numa", -1, -1),
                              reader.cpus(item, at, "pus", false)});
  });
}

void read_devices(Reader& reader, const json& document, Topology& topology) {
  reader.each(document, "devices", false, [&](const json& item, const std::string& at) {
    reader.only(item, at,
                {"index", "vendor", "model", "pci", "memory_bytes", "subdevices", "numa", "pus"});
    Device device;
    device.index = reader.integer(item, at, "index", 0, std::nullopt);
    device.vendor = reader.string(item, at, "vendor");
    device.model = reader.string(item, at, "model");
    device.pci = reader.string(item, at, "pci");
    device.memory_bytes = reader.natural(item, at, "memory_bytes");
    device.subdevices = reader.integer(item, at, "subdevices", 0, 0);
    device.numa = reader.integer(item, at, "numa", -1, -1);
    if (item.is_object() && item.contains("pus")) device.pus = reader.cpus(item, at, "pus", true);
    topology.devices.push_back(std::move(device));
  });
  reader.each(document, "nics", false, [&](const json& item, const std::string& at) {
    reader.only(item, at, {"name", "fabric", "pci", "numa"});
    topology.nics.push_back({reader.string(item, at, "name"), reader.string(item, at, "fabric"),
                             reader.string(item, at, "pci"),
                             reader.integer(item, at, "numa", -1, -1)});
  });
}

void check_schema(Reader& reader, const json& document) {
  if (!document.is_object()) {
    return reader.fail("", fmt::format("a topology is an object, not {}", json_noun(document)));
  }
  const json* schema = reader.member(document, "", "schema", true);
  if (schema != nullptr && *schema != kSchema) {
    reader.fail("/schema",
                fmt::format("\"schema\" is {}, and this program reads {}",
                            schema->dump(-1, ' ', false, json::error_handler_t::replace), kSchema));
  }
}

template <class Item, class Line>
void append_array(std::string& out, const char* key, const std::vector<Item>& items, bool last,
                  Line line) {
  out += fmt::format("  \"{}\": [", key);
  const char* separator = "\n";
  for (const Item& item : items) {
    out += separator;
    out += "    {" + line(item) + "}";
    separator = ",\n";
  }
  out += items.empty() ? "]" : "\n  ]";
  out += last ? "\n" : ",\n";
}

std::string device_line(const Device& device) {
  return fmt::format(
      R"("index": {}, "vendor": {}, "model": {}, "pci": {}, "memory_bytes": {}, "subdevices": {}, )"
      R"("numa": {}, "pus": "{}")",
      device.index, json_text(device.vendor), json_text(device.model), json_text(device.pci),
      device.memory_bytes, device.subdevices, device.numa, device.pus.to_list());
}

std::string nic_line(const Nic& nic) {
  return fmt::format(R"("name": {}, "fabric": {}, "pci": {}, "numa": {})", json_text(nic.name),
                     json_text(nic.fabric), json_text(nic.pci), nic.numa);
}

}  // namespace

std::string topology_to_json(const Topology& topology) {
  std::string out =
      fmt::format("{{\n  \"schema\": {},\n  \"hostname\": {},\n  \"allowed\": \"{}\",\n", kSchema,
                  json_text(topology.hostname), topology.allowed.to_list());
  append_array(out, "packages", topology.packages, false, [](const Package& package) {
    return fmt::format(R"("os_index": {}, "model": {}, "pus": "{}")", package.os_index,
                       json_text(package.model), package.pus.to_list());
  });
  append_array(out, "numa_nodes", topology.numa_nodes, false, [](const NumaNode& node) {
    return fmt::format(R"("os_index": {}, "memory_bytes": {}, "pus": "{}")", node.os_index,
                       node.memory_bytes, node.pus.to_list());
  });
  append_array(out, "caches", topology.caches, false, [](const Cache& cache) {
    return fmt::format(R"("level": {}, "size_bytes": {}, "pus": "{}")", cache.level,
                       cache.size_bytes, cache.pus.to_list());
  });
  const bool nics = !topology.nics.empty();
  const bool devices = !topology.devices.empty();
  append_array(out, "cores", topology.cores, !devices && !nics, [](const Core& core) {
    return fmt::format(R"("package": {}, "numa": {}, "pus": "{}")", core.package, core.numa,
                       core.pus.to_list());
  });
  if (devices) append_array(out, "devices", topology.devices, !nics, device_line);
  if (nics) append_array(out, "nics", topology.nics, true, nic_line);
  return out + "}\n";
}

Result<Topology> topology_from_json(std::string_view text, const std::string& file) {
  const Result<json> document = parse(text, file);
  if (!document) return document.error();
  Reader reader(text, file);
  check_schema(reader, *document);
  if (reader.failed) return *reader.failed;
  reader.only(*document, "",
              {"schema", "hostname", "allowed", "packages", "numa_nodes", "caches", "cores",
               "devices", "nics"});
  Topology topology;
  topology.hostname = reader.string(*document, "", "hostname");
  read_groups(reader, *document, topology);
  read_devices(reader, *document, topology);
  topology.allowed = document->contains("allowed") ? reader.cpus(*document, "", "allowed", false)
                                                   : topology.all_pus();
  if (reader.failed) return *reader.failed;
  if (const Status lawful = check_topology(topology); !lawful) {
    reader.fail(lawful.error().where->pointer, lawful.error().message);
    return *reader.failed;
  }
  return topology;
}

}  // namespace hpclaunch
