// The plan of a node for ranks that run already, and its text.
#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/make_plan.h"
#include "hpclaunch/scheduler.h"
#include "hpclaunch/text.h"
#include "hpclaunch/wire.h"
#include "start/bind.h"

namespace hpclaunch::job {

namespace {

constexpr std::string_view kFormat = "hpclaunch-bind-2";

constexpr std::array kOfPyTorch = {"RANK",        "WORLD_SIZE",  "LOCAL_RANK", "LOCAL_WORLD_SIZE",
                                   "MASTER_ADDR", "MASTER_PORT", "GROUP_RANK", "GROUP_WORLD_SIZE",
                                   "NODE_RANK",   "NNODES",      "ROLE_RANK",  "ROLE_WORLD_SIZE",
                                   "ROLE_NAME",   "LOCAL_SIZE",  "CROSS_RANK", "CROSS_SIZE"};

bool is_mask(const std::string& name) { return std::ranges::count(device_masks(), name) > 0; }

// Without what is another process's own, and what would be taken for a rendezvous of this plan.
EnvSnapshot planning_env(const EnvSnapshot& env, bool own_device) {
  std::map<std::string, std::optional<std::string>> changes;
  for (const auto& [name, value] : env.values())
    if (is_bind_identity(name) || (own_device && is_mask(name))) changes[name] = {};
  return env.with(changes);
}

Request planned_request(const BindRequest& asked, const BindPlace& place, bool own_device) {
  Request request = asked.launch;
  request.nodes = place.nodes;
  request.ranks_per_node = place.size;
  request.started_by = place.launcher;
  request.force = request.oversubscribe = true;
  if (own_device && request.gpu_view.empty()) {
    request.gpu_view = "own";
    request.view_is_implied = true;
  }
  return request;
}

// The constants and names that a rank's own process sets; what differs by rank stays for the shim.
void take_settings(Plan& plan, const BindBasis& basis, NodePlan& made) {
  const Setting* const leader = plan.find_env("OMP_NUM_THREADS");
  const bool counts = leader != nullptr && leader->history.back().layer == Layer::builtin;
  std::vector<Setting> left;
  for (Setting& one : plan.environment.settings) {
    const Decision& last = one.history.back();
    const auto* text = std::get_if<std::string>(&last.value);
    const auto* fact = std::get_if<RankFact>(&last.value);
    if (basis.own_device && is_mask(one.name)) continue;
    if (counts && last.layer == Layer::builtin && one.name.ends_with("_THREADS"))
      made.threads.push_back(one.name);
    else if (fact != nullptr && *fact == RankFact::rank)
      made.rank.push_back(one.name);
    else if (fact != nullptr && *fact == RankFact::node)
      made.node.push_back(one.name);
    else if (one.name == "WORLD_SIZE" || one.name == "ROLE_WORLD_SIZE")
      made.ranks.push_back(one.name);
    else if (one.name == "NNODES" || one.name == "GROUP_WORLD_SIZE")
      made.nodes.push_back(one.name);
    else if (one.name == "MASTER_ADDR" && text != nullptr)
      made.address = *text;
    else if (one.name == "MASTER_PORT" && text != nullptr)
      made.port = *text;
    else if (is_exported(last))
      continue;
    else if (text != nullptr)
      made.set[one.name] = *text;
    else if (std::holds_alternative<Unset>(last.value))
      made.set[one.name] = std::nullopt;
    else
      left.push_back(std::move(one));
  }
  plan.environment.settings = std::move(left);
}

// Rank 0 may be on another node: each process has to come to the same place by itself.
void find_rendezvous(const World& world, int nodes, NodePlan& made) {
  if (nodes == 1) return;
  made.address = first_host(world, nodes);
  const auto [low, high] = world.ephemeral_ports();
  made.port = std::to_string(candidate_ports(world.port_key, low, high).front());
}

void describe_node(const Topology& node, const Plan& plan, const std::vector<DeviceFile>& files,
                   NodePlan& made) {
  const bool binds = plan.placement.bind_via != BindVia::none;
  for (const RankPlan& rank : plan.placement.classes.front().ranks) {
    made.cpus.push_back(binds ? rank.cpus : CpuSet());
    made.each.push_back(rank.cores);
    std::vector<int>& units = made.units.emplace_back();
    for (const Slot& slot : rank.slots)
      if (slot.device >= 0) units.push_back(slot.device);
  }
  if (const Setting* via = plan.find_choice("bind-via"); !binds && via != nullptr)
    made.unbound = via->history.back().why;
  for (const Core& core : node.cores) made.cores.push_back(core.pus);
  for (const NumaNode& numa : node.numa_nodes) made.numas.emplace_back(numa.os_index, numa.pus);
  for (const Device& device : node.devices) {
    BindDevice& one = made.devices.emplace_back(
        BindDevice{device.index, device.uuid, device.pci, device.instances, node.near(device)});
    const auto file = std::ranges::find(files, device.pci, &DeviceFile::pci);
    if (file != files.end()) one.file = file->path;
  }
}

// ---- text ---------------------------------------------------------------------------------------

std::string bind_escape(std::string_view text) {
  std::string out;
  for (const char c : text)
    out += c == '%' || static_cast<unsigned char>(c) <= ' '
               ? fmt::format("%{:02X}", static_cast<unsigned char>(c))
               : std::string(1, c);
  return out;
}

std::string bind_unescape(std::string_view text) {
  constexpr std::string_view kDigits = "0123456789ABCDEF";
  std::string out;
  for (std::size_t i = 0; i < text.size(); ++i)
    if (text[i] == '%' && i + 2 < text.size()) {
      out += static_cast<char>(kDigits.find(text[i + 1]) * 16 + kDigits.find(text[i + 2]));
      i += 2;
    } else {
      out += text[i];
    }
  return out;
}

using Words = std::vector<std::string>;

std::string set_text(const CpuSet& cpus) { return cpus.empty() ? "-" : cpus.to_list(); }
CpuSet set_from(const std::string& text) {
  const Result<CpuSet> cpus = CpuSet::parse(text);
  return cpus ? *cpus : CpuSet();
}
int int_from(const std::string& text) { return static_cast<int>(parse_natural(text).value_or(0)); }

// One line of the file: key and words. {"cpus", {"0-3", "4-7"}}
bool read_line(const std::string& key, const Words& words, NodePlan& plan) {
  const std::pair<std::string_view, std::string*> kTexts[] = {
      {"shim", &plan.shim},       {"program", &plan.program}, {"wire", &plan.wire},
      {"address", &plan.address}, {"port", &plan.port},       {"unbound", &plan.unbound}};
  for (const auto& [name, text] : kTexts)
    if (key == name && words.size() == 1) return *text = words[0], true;
  const std::pair<std::string_view, Words*> kLists[] = {{"rank", &plan.rank},
                                                        {"node", &plan.node},
                                                        {"ranks", &plan.ranks},
                                                        {"nodes", &plan.nodes},
                                                        {"threads", &plan.threads}};
  for (const auto& [name, list] : kLists)
    if (key == name) return *list = words, true;
  if (key == "inserted") return plan.inserted = true;
  if (key == "set" && words.size() == 2) return plan.set[words[0]] = words[1], true;
  if (key == "file" && words.size() == 2) return plan.files[words[0]] = words[1], true;
  if (key == "unset" && words.size() == 1) return plan.set[words[0]] = std::nullopt, true;
  if (key == "core" && words.size() == 1) return plan.cores.push_back(set_from(words[0])), true;
  if (key == "numa" && words.size() == 2)
    return plan.numas.emplace_back(int_from(words[0]), set_from(words[1])), true;
  if (key == "cpus" && words.size() >= 2) {
    plan.cpus.push_back(set_from(words[0]));
    plan.each.push_back(int_from(words[1]));
    std::vector<int>& units = plan.units.emplace_back();
    for (std::size_t i = 2; i < words.size(); ++i) units.push_back(int_from(words[i]));
    return true;
  }
  if (key == "device" && words.size() >= 5) {
    plan.devices.push_back({int_from(words[0]),
                            words[1],
                            words[2],
                            {words.begin() + 5, words.end()},
                            set_from(words[3]),
                            words[4]});
    return true;
  }
  return false;
}

}  // namespace

bool is_bind_identity(std::string_view name) {
  return std::ranges::find(kOfPyTorch, name) != kOfPyTorch.end() ||
         name.starts_with("TORCHELASTIC_");
}

Result<NodePlan> plan_node(const BindRequest& asked, const BindBasis& basis,
                           const EnvSnapshot& env) {
  World world = this_world(planning_env(env, basis.own_device));
  world.hosts = {world.host};
  world.port_key = basis.port_key;
  // A control group may leave each rank its own device, and the plan is for all of them.
  std::vector<DeviceFile> files;
  if (basis.own_device) {
    files = world.device_files(false);
    world.device_files = [](bool) { return std::vector<DeviceFile>(); };
  }
  const Request request = planned_request(asked, basis.place, basis.own_device);
  Result<Prepared> prepared = prepare(request, world, Purpose::start);
  if (!prepared) return prepared.error();
  Plan& plan = prepared->plan;
  NodePlan made;
  describe_node(prepared->node, plan, files, made);
  const std::vector<std::string>& words = plan.launch.command;
  made.program = words.front();
  made.inserted = words.size() > asked.launch.command.size();
  made.shim = prepared->shim;
  for (const std::string& file : {made.program, request.profile, request.topology})
    if (file.starts_with('/')) made.files[file] = world.stamp(file);
  made.port_lock = prepared->port_lock;
  take_settings(plan, basis, made);
  world.hosts.clear();
  find_rendezvous(world, basis.place.nodes, made);
  plan.hosts.names = {world.host};
  plan.placement.layout = {NodeRun{}};
  plan.placement.classes.resize(1);
  plan.placement.bind_via = BindVia::none;
  plan.supervision.verify = Verify::off;
  plan.supervision.supervise = false;
  std::erase_if(plan.environment.removed, is_bind_identity);
  Result<std::string> wire =
      encode_wire(plan, {std::string(find_launcher(kLocalLauncher)->traits.rank_var), "", false});
  if (!wire) return wire.error();
  made.wire = *std::move(wire);
  made.diagnostics = std::move(prepared->diagnostics);
  if (basis.place.nodes > 1 && made.address.empty() && !env.has("MASTER_ADDR"))
    made.diagnostics.push_back(
        {"no-address", Severity::warning,
         "nothing says on which host rank 0 is: MASTER_ADDR is not set, and PyTorch needs it",
         "export MASTER_ADDR=HOST on all ranks, with the host of rank 0"});
  std::erase_if(made.diagnostics, [](const Diagnostic& one) { return one.id == "inside-a-rank"; });
  return made;
}

std::string node_plan_text(const NodePlan& plan) {
  std::string text = fmt::format("{}\n", kFormat);
  const auto add = [&](std::string_view key, const Words& words) {
    text += key;
    for (const std::string& word : words) text += " " + bind_escape(word);
    text += "\n";
  };
  add("shim", {plan.shim});
  add("program", {plan.program});
  if (plan.inserted) add("inserted", {});
  add("wire", {plan.wire});
  for (const auto& [name, value] : plan.set)
    value ? add("set", {name, *value}) : add("unset", {name});
  for (const auto& [path, stamp] : plan.files) add("file", {path, stamp});
  add("address", {plan.address});
  add("port", {plan.port});
  add("rank", plan.rank);
  add("node", plan.node);
  add("ranks", plan.ranks);
  add("nodes", plan.nodes);
  add("threads", plan.threads);
  for (std::size_t r = 0; r < plan.cpus.size(); ++r) {
    Words words = {set_text(plan.cpus[r]), std::to_string(plan.each[r])};
    for (const int unit : plan.units[r]) words.push_back(std::to_string(unit));
    add("cpus", words);
  }
  for (const BindDevice& one : plan.devices) {
    Words words = {std::to_string(one.index), one.uuid, one.pci, set_text(one.near), one.file};
    words.insert(words.end(), one.instances.begin(), one.instances.end());
    add("device", words);
  }
  for (const CpuSet& core : plan.cores) add("core", {set_text(core)});
  for (const auto& [index, cpus] : plan.numas) add("numa", {std::to_string(index), set_text(cpus)});
  add("unbound", {plan.unbound});
  return text + "end\n";
}

std::optional<NodePlan> read_node_plan(std::string_view text) {
  NodePlan plan;
  if (!text.starts_with(fmt::format("{}\n", kFormat)) || !text.ends_with("\nend\n"))
    return std::nullopt;
  text.remove_suffix(5);
  for (std::string_view line : split(text.substr(kFormat.size() + 1), '\n')) {
    Words words;
    for (const std::string_view word : split(line, ' ')) words.push_back(bind_unescape(word));
    const std::string key = words.front();
    words.erase(words.begin());
    if (!read_line(key, words, plan)) return std::nullopt;
  }
  return plan;
}

}  // namespace hpclaunch::job
