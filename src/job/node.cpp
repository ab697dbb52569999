#include "job/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

// Leaves as many hardware threads as were granted, by whole cores from the first on: which ones they
// really are is the batch system's secret.
void cut_to(int granted, Topology& node) {
  CpuSet left;
  for (const Core& core : node.cores) {
    if (left.count() >= granted) break;
    left |= core.pus & node.allowed;
  }
  node.allowed = left;
}

bool says_which(const EnvSnapshot& env) {
  const auto is_set = [&](std::string_view name) { return !env.get(name).empty(); };
  return std::any_of(device_masks().begin(), device_masks().end(), is_set) ||
         std::any_of(std::begin(kSlurmGpuLists), std::end(kSlurmGpuLists), is_set);
}

// A job on a part of a node: its cores are what is here. Of its devices the plan takes what was granted;
// where those of a model are is not known.
Topology of_this_job(const NodeModel& model, const Topology& live, const EnvSnapshot& env) {
  Topology node = live;
  const std::size_t granted = granted_devices(env);
  if (granted == 0) {
    node.devices.clear();
    node.links.clear();
    return node;
  }
  if (!node.devices.empty() && &live != &model.topology) return node;
  node.devices = model.topology.devices;
  node.no_devices = false;
  if (!says_which(env)) node.devices.resize(std::min(granted, node.devices.size()));
  for (Device& device : node.devices) {
    device.pus = CpuSet{};
    device.numa = -1;
  }
  node.links.clear();
  return node;
}

}  // namespace

int granted_cpus(const EnvSnapshot& env) {
  const std::string* text = env.find("SLURM_JOB_CPUS_PER_NODE");
  if (text == nullptr) return 0;
  const Result<std::vector<int>> counts = expand_tasks_per_node(*text);
  return counts && !counts->empty() ? counts->front() : 0;
}

Grants settle_grants(const std::vector<int>& counts, int whole, const Topology& node) {
  Grants grants;
  const bool part =
      std::any_of(counts.begin(), counts.end(), [&](int count) { return count < whole; });
  if (!part) return grants;
  const bool threads = std::any_of(node.cores.begin(), node.cores.end(),
                                   [](const Core& core) { return core.pus.count() > 1; });
  const bool alike =
      std::all_of(counts.begin(), counts.end(), [&](int count) { return count == counts.front(); });
  if (threads && alike) return grants;
  grants.each = counts;
  return grants;
}

Result<const NodeModel*> choose_model(const Request& args, const Profile* profile,
                                      const EnvSnapshot& env, const JobFacts& job) {
  if (profile == nullptr || profile->nodes.empty()) {
    if (args.node_type.empty()) return nullptr;
    return Error{ErrorKind::usage,
                 fmt::format("--node-type {}: no profile in use has nodes", args.node_type),
                 "leave it out, or name a profile with --profile"};
  }
  if (!args.node_type.empty()) {
    if (const NodeModel* model = profile->find_node(args.node_type)) return model;
    std::vector<std::string> names;
    for (const NodeModel& model : profile->nodes) names.push_back(model.name);
    const auto near = nearest(args.node_type, names);
    return Error{ErrorKind::usage,
                 fmt::format("{} has no node type \"{}\"", profile->name, args.node_type),
                 near ? fmt::format("did you mean --node-type {}?", *near)
                      : fmt::format("one of {}", fmt::join(names, ", "))};
  }
  Facts facts;
  facts.env = &env;
  facts.modules = loaded_modules(env);
  facts.job["scheduler"] = job.scheduler;
  facts.job["in_job"] = job.scheduler == "none" ? "no" : "yes";
  for (const NodeModel& model : profile->nodes)
    if (!model.when.empty() && holds(model.when, facts)) return &model;
  for (const NodeModel& model : profile->nodes)
    if (model.when.empty()) return &model;
  return &profile->nodes.front();
}

Node settle_node(const NodeModel* model, const std::optional<Topology>& live, int granted,
                 const EnvSnapshot& env, OnDrift how, std::vector<Diagnostic>& diagnostics) {
  if (model == nullptr) return {*live, nullptr, false, true, live->all_pus().count()};
  if (model->live && (live || granted > 0)) {
    const Topology& base = live ? *live : model->topology;
    Node node{of_this_job(*model, base, env), nullptr, base.allowed != base.all_pus(), true,
              base.all_pus().count()};
    if (granted > 0 && granted < node.topology.allowed.count()) {
      cut_to(granted, node.topology);
      node.part = true;
      node.known = false;
    }
    return node;
  }
  const int whole = model->topology.allowed.count();
  if (!live) return {model->topology, model, false, true, whole};
  const std::string name = fmt::format("the profile's node \"{}\"", model->name);
  const std::size_t before = diagnostics.size();
  if (judge_drift(model->topology, *live, name, granted, env, how, diagnostics)) {
    Node node{replanned(*live, model->topology), model, false, true, 0};
    const CpuSet free = node.topology.allowed - model->reserved;
    if (!free.empty()) node.topology.allowed = free;
    node.whole = (live->all_pus() - model->reserved).count();
    return node;
  }
  Node node{model->topology, model, false, true, whole};
  const bool differs = diagnostics.size() > before;
  if (differs && !live->all_pus().contains(model->topology.all_pus())) return node;
  node.topology.allowed &= live->allowed;
  if (node.topology.allowed.empty())  // nothing but reserved cores was left to us
    node.topology.allowed = live->allowed & model->topology.all_pus();
  if (node.topology.allowed.empty()) node.topology.allowed = model->topology.allowed;
  return node;
}

Node settle_file(Topology file, const std::string& name, const std::optional<Topology>& live,
                 const EnvSnapshot& env, OnDrift how, std::vector<Diagnostic>& diagnostics) {
  const int whole = file.allowed.count();
  if (!live || !judge_drift(file, *live, "the node of " + name, 0, env, how, diagnostics))
    return {std::move(file), nullptr, false, true, whole};
  return {replanned(*live, file), nullptr, false, true, live->allowed.count()};
}

}  // namespace hpclaunch::cli
