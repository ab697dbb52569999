#include "model/topology_json.h"

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

/// Above every real machine; limits memory.
constexpr std::size_t kMaxMembers = 4 * CpuSet::kCapacity;

std::string_view json_noun(const json& value) {
  if (value.is_string()) return "a string";
  if (value.is_number()) return "a number";
  if (value.is_object()) return "an object";
  if (value.is_array()) return "an array";
  return value.is_boolean() ? "true or false" : "null";
}

/// Reads values of a document and keeps the first error; after it, every value is a default.
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
      return fail((json::json_pointer(pointer) / member.key()).to_string(),
                  fmt::format("unknown key {}", json_text(member.key())),
                  meant ? fmt::format("did you mean \"{}\"?", *meant)
                        : fmt::format("known here: {}", fmt::join(keys, ", ")));
    }
  }

  /// nullptr when it is missing; an error when it is required.
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

  std::vector<std::string> strings(const json& object, const std::string& pointer,
                                   const char* key) {
    const json* value = member(object, pointer, key, false);
    std::vector<std::string> texts;
    if (value == nullptr) return texts;
    const std::string at = pointer + "/" + key;
    if (!value->is_array() || value->size() > kMaxMembers) {
      fail(at, fmt::format("\"{}\" must be an array of strings, not {}", key, json_noun(*value)));
      return texts;
    }
    for (const json& item : *value) {
      if (!item.is_string()) {
        fail(at, fmt::format("\"{}\" must have strings only, not {}", key, json_noun(item)));
        return texts;
      }
      texts.push_back(item.get<std::string>());
    }
    return texts;
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

/// Finds a repeated key, of which the library keeps the last. (Its parser callbacks need quadratic time.)
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
                {"index", "vendor", "model", "pci", "memory_bytes", "subdevices", "numa", "pus",
                 "uuid", "partition", "instances", "bridges"});
    Device device;
    device.index = reader.integer(item, at, "index", 0, std::nullopt);
    device.vendor = reader.string(item, at, "vendor");
    device.model = reader.string(item, at, "model");
    device.pci = reader.string(item, at, "pci");
    device.memory_bytes = reader.natural(item, at, "memory_bytes");
    device.subdevices = reader.integer(item, at, "subdevices", 0, 0);
    device.numa = reader.integer(item, at, "numa", -1, -1);
    if (item.is_object() && item.contains("pus")) device.pus = reader.cpus(item, at, "pus", true);
    device.uuid = reader.string(item, at, "uuid");
    device.partition = reader.string(item, at, "partition");
    device.instances = reader.strings(item, at, "instances");
    device.bridges = reader.strings(item, at, "bridges");
    topology.devices.push_back(std::move(device));
  });
  topology.no_devices = document.contains("devices") && topology.devices.empty();
  reader.each(document, "nics", false, [&](const json& item, const std::string& at) {
    reader.only(item, at,
                {"name", "fabric", "pci", "numa", "kind", "provider", "speed_mbps", "state",
                 "addresses", "bridges", "pus"});
    Nic nic;
    nic.name = reader.string(item, at, "name");
    nic.fabric = reader.string(item, at, "fabric");
    nic.pci = reader.string(item, at, "pci");
    nic.numa = reader.integer(item, at, "numa", -1, -1);
    nic.kind = reader.string(item, at, "kind");
    nic.provider = reader.string(item, at, "provider");
    nic.speed_mbps = reader.integer(item, at, "speed_mbps", 0, 0);
    nic.state = reader.string(item, at, "state");
    nic.addresses = reader.strings(item, at, "addresses");
    nic.bridges = reader.strings(item, at, "bridges");
    if (item.is_object() && item.contains("pus")) nic.pus = reader.cpus(item, at, "pus", true);
    topology.nics.push_back(std::move(nic));
  });
  reader.each(document, "links", false, [&](const json& item, const std::string& at) {
    reader.only(item, at, {"from", "to", "kind", "lanes"});
    topology.links.push_back({reader.integer(item, at, "from", 0, std::nullopt),
                              reader.integer(item, at, "to", 0, std::nullopt),
                              reader.string(item, at, "kind"),
                              reader.integer(item, at, "lanes", 1, 1)});
  });
}

void check_schema(Reader& reader, const json& document) {
  if (!document.is_object()) {
    return reader.fail("", fmt::format("a topology is an object, not {}", json_noun(document)));
  }
  const json* schema = reader.member(document, "", "schema", true);
  if (schema != nullptr && *schema != kTopologySchema) {
    reader.fail("/schema", fmt::format("\"schema\" must be {1}, not {0}",
                                       schema->dump(-1, ' ', false, json::error_handler_t::replace),
                                       kTopologySchema));
  }
}

}  // namespace

Result<Topology> topology_from_json(std::string_view text, const std::string& file) {
  const Result<json> document = parse(text, file);
  if (!document) return document.error();
  Reader reader(text, file);
  check_schema(reader, *document);
  if (reader.failed) return *reader.failed;
  reader.only(*document, "",
              {"schema", "hostname", "allowed", "packages", "numa_nodes", "caches", "cores",
               "devices", "nics", "links"});
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
