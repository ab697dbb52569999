// Rows of profiles/programs/platforms.json, read in a world.
#include "world/platforms.h"

#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>

#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

using Texts = std::vector<std::string>;
using Tree = nlohmann::json;

constexpr std::size_t kMostOfPlatformFile = 4u << 20;
constexpr long kMostNodes = 1'000'000;

Tree as_tree(const std::string& text) { return Tree::parse(text, nullptr, false); }

Texts texts_of(const Tree& value) {
  Texts all;
  if (value.is_array())
    for (const Tree& one : value)
      all.push_back(one.is_string() ? one.get<std::string>() : one.dump());
  else if (value.is_string())
    all.push_back(value.get<std::string>());
  else if (value.is_number())
    all.push_back(value.dump());
  return all;
}

// {"cluster": {"workerpool0": ["a-0:2222"], "workerpool1": [...]}, "task": {"type": "workerpool1", "index": 0}}
struct Pools {
  Texts hosts;
  std::optional<long> own;  // nullopt: the index is beyond the pool
};

Pools pools_of(const std::string& text) {
  Pools pools;
  const Tree spec = as_tree(text);
  if (!spec.is_object() || !spec.contains("cluster") || !spec["cluster"].is_object() ||
      !spec.contains("task") || !spec["task"].is_object())
    return pools;
  const Tree& task = spec["task"];
  const Texts type = texts_of(task.value("type", Tree()));
  const Texts index = texts_of(task.value("index", Tree()));
  for (const auto& [name, hosts] : spec["cluster"].items()) {
    const Texts names = texts_of(hosts);
    const auto at = parse_natural(index.empty() ? "" : index.front());
    if (!type.empty() && name == type.front() && at && *at < std::ssize(names))
      pools.own = std::ssize(pools.hosts) + *at;
    for (const std::string& host : names) pools.hosts.push_back(host.substr(0, host.rfind(':')));
  }
  return pools;
}

Texts lines_of(const std::string& text) {
  Texts lines;
  for (const std::string_view line : split(text, '\n'))
    if (!trim(line).empty()) lines.emplace_back(trim(line));
  return lines;
}

// A host without slots has one.
Texts slots_in(const std::string& file, const World& world) {
  const Result<std::string> text = world.read_file(file, kMostOfPlatformFile);
  const Result<HostFile> hosts =
      text ? parse_host_file(*text, file) : Result<HostFile>(text.error());
  Texts all;
  if (hosts)
    for (const int slots : hosts->slots) all.push_back(std::to_string(std::max(slots, 1)));
  return all;
}

Texts values_of(std::string_view source, const World& world) {
  const std::vector<std::string_view> words = split(source, ' ');
  const std::string_view how = words.size() > 1 ? words[0] : std::string_view();
  if (how == "json") {
    const Result<std::string> text = world.read_file(std::string(words[1]), kMostOfPlatformFile);
    const Tree tree = text ? as_tree(*text) : Tree();
    const std::string key(words[2]);
    return tree.is_object() && tree.contains(key) ? texts_of(tree[key]) : Texts();
  }
  const std::string value = world.env.get(words.back());
  if (value.empty()) return {};
  if (how == "list") return texts_of(as_tree(value));
  if (how == "lines") return lines_of(value);
  if (how == "pools") return pools_of(value).hosts;
  if (how == "slots") return slots_in(value, world);
  if (how == "hostlist") {
    const Result<HostNames> names = expand_hostlist(value);
    return names ? Texts(names->begin(), names->end()) : Texts();
  }
  return {std::string(trim(value))};
}

std::optional<long> number_of(std::string_view source, const Texts& hosts, const World& world) {
  const std::vector<std::string_view> words = split(source, ' ');
  if (words.size() == 2 && words[0] == "pool") return pools_of(world.env.get(words[1])).own;
  if (words.size() == 2 && words[0] == "position") {
    const auto at = std::ranges::find(hosts, world.env.get(words[1]));
    return at == hosts.end() ? std::nullopt : std::optional<long>(at - hosts.begin());
  }
  if (words.size() == 3 && words[0] == "ratio") {
    const long all = parse_natural(world.env.get(words[1])).value_or(0);
    const long each = parse_natural(world.env.get(words[2])).value_or(0);
    return each > 0 && all > 0 && all % each == 0 ? std::optional(all / each) : std::nullopt;
  }
  const Texts values = values_of(source, world);
  if (values.size() != 1) return std::nullopt;
  const std::string& value = values.front();
  const std::size_t colon = value.find(':');  // "2:2", torchrun's least and most
  const bool same = colon != value.npos && value.substr(0, colon) == value.substr(colon + 1);
  return parse_natural(same ? value.substr(0, colon) : value, kMostNodes);
}

// Of "PET_NNODES" and "ratio A B": "PET_NNODES=2", "A=8, B=4"; of a file "container_rank of FILE".
std::string evidence(std::string_view source, const World& world) {
  const std::vector<std::string_view> words = split(source, ' ');
  if (words[0] == "json") return fmt::format("{} of {}", words[2], words[1]);
  std::string text;
  for (const std::string_view word : words)
    if (world.env.has(word))
      text += fmt::format("{}{}={}", text.empty() ? "" : ", ", word, shown(world.env.get(word)));
  return text.empty() ? fmt::format("{} is not set", words.back()) : text;
}

// "{NAME}-0.{OTHER}"; "" where one is not set.
std::string filled(std::string_view form, const World& world) {
  std::string text;
  while (true) {
    const std::size_t open = form.find('{'), close = form.find('}');
    if (open == form.npos || close == form.npos) return text + std::string(form);
    const std::string value = world.env.get(form.substr(open + 1, close - open - 1));
    if (value.empty()) return {};
    text += std::string(form.substr(0, open)) + value;
    form.remove_prefix(close + 1);
  }
}

bool is_given_here(std::string_view name, const World& world) {
  return !world.env.get(name).empty();
}

void add_ranks(const Platform& row, const World& world, EachNode& found) {
  constexpr std::string_view kWords[] = {"auto", "cpu", "gpu", "xpu"};
  for (const std::string& one : row.counts.empty() ? Texts() : values_of(row.counts, world))
    found.slots.push_back(static_cast<int>(parse_natural(one, kMostNodes).value_or(0)));
  found.slots_why = row.counts.empty() ? "" : evidence(row.counts, world);
  if (std::ssize(found.slots) != found.nodes || std::ranges::count(found.slots, 0) > 0)
    found.slots.clear();
  for (const std::string_view name : row.ranks) {
    if (!found.slots.empty() || !found.ranks_by.empty()) return;
    const std::string value(trim(world.env.get(name)));
    if (const long each = parse_natural(value, kMostNodes).value_or(0); each > 0)
      found.slots.assign(static_cast<std::size_t>(found.nodes), static_cast<int>(each));
    else if (std::ranges::count(kWords, value) > 0)
      found.ranks_by = value;
    found.slots_why = fmt::format("{}={}", name, shown(value));
  }
}

void add_meeting(const Platform& row, const World& world, EachNode& found) {
  for (const std::string_view form : row.address) {
    found.address = form.starts_with('{') ? filled(form, world) : world.env.get(form);
    found.address_why =
        form.starts_with('{') ? fmt::format("node 0 of {}", row.title) : std::string(form);
    if (!found.address.empty()) break;
  }
  const auto port = parse_natural(world.env.get(row.port), 65'535);
  found.port = port && *port > 0 ? static_cast<int>(*port) : row.default_port;
  found.port_why = port ? std::string(row.port) : fmt::format("as {} has it", row.title);
}

}  // namespace

bool holds(const Platform& row, const World& world) {
  const auto set = [&](std::string_view name) { return is_given_here(name, world); };
  const auto is = [&](std::string_view test) {
    const std::size_t equals = test.find('=');
    const std::string value = world.env.get(test.substr(0, equals));
    const std::string_view wanted = test.substr(equals + 1);
    return !value.empty() && (value == wanted || value == world.env.get(wanted));
  };
  return std::ranges::all_of(row.set, set) && std::ranges::none_of(row.unset, set) &&
         (row.any.empty() || std::ranges::any_of(row.any, set)) &&
         std::ranges::all_of(row.is, is) &&
         std::ranges::all_of(row.files, [&](std::string_view file) {
           return world.look(std::string(file)) == FileKind::file;
         });
}

bool counts_nodes(const Platform& row) { return !row.nodes.empty() || !row.hosts.empty(); }

Result<EachNode> read_platform(const Platform& row, std::optional<int> typed_nodes,
                               const World& world) {
  EachNode found;
  found.by = row.title;
  const Texts hosts = row.hosts.empty() ? Texts() : values_of(row.hosts, world);
  const auto unclear = [&](std::string_view source, const char* what) {
    return Error{
        ErrorKind::usage,
        fmt::format("started by {}: no {} in {}", row.title, what, evidence(source, world)),
        "--node-rank R --nodes N --master-addr HOST"};
  };
  const std::string_view source = row.nodes.empty() ? row.hosts : row.nodes;
  std::optional<long> nodes = row.nodes.empty() ? std::optional<long>(std::ssize(hosts))
                                                : number_of(row.nodes, hosts, world);
  const bool alone = typed_nodes == 1;  // whatever the platform has
  if (alone && nodes.value_or(0) < 1) nodes = 1;
  if (counts_nodes(row) && nodes.value_or(0) < 1) return unclear(source, "number of nodes");
  found.nodes = static_cast<int>(counts_nodes(row) ? *nodes : typed_nodes.value_or(1));
  std::optional<long> node = number_of(row.node, hosts, world);
  if (!node && (alone || (row.node.empty() && found.nodes == 1))) node = 0;
  if (!node) return unclear(row.node, "number of this node");
  found.own = static_cast<int>(*node);
  found.why = evidence(row.node, world);
  if (found.own >= found.nodes && counts_nodes(row) && !alone)
    return Error{ErrorKind::usage,
                 fmt::format("started by {}: there is no node {} among {} ({}; {})", row.title,
                             found.own, found.nodes, found.why, evidence(source, world)),
                 "--node-rank R --nodes N --master-addr HOST"};
  if (std::ssize(hosts) == found.nodes) found.names = HostNames(hosts);
  add_ranks(row, world, found);
  add_meeting(row, world, found);
  return found;
}

}  // namespace hpclaunch::job
