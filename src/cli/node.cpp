#include "cli/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>

#include "hpclaunch/job.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

// How many devices the batch system has given: its mask, else its count. Nothing: none.
std::size_t granted_devices(const EnvSnapshot& env) {
  for (const char* name : {"CUDA_VISIBLE_DEVICES", "ROCR_VISIBLE_DEVICES", "ZE_AFFINITY_MASK"})
    if (const std::string* mask = env.find(name); mask != nullptr && !mask->empty())
      return split(*mask, ',').size();
  return static_cast<std::size_t>(parse_natural(env.get("SLURM_GPUS_ON_NODE", "0")).value_or(0));
}

// How many hardware threads of its first node the job has; 0: nobody says.
int granted_cpus(const EnvSnapshot& env) {
  const std::string* text = env.find("SLURM_JOB_CPUS_PER_NODE");
  if (text == nullptr) return 0;
  const Result<std::vector<int>> counts = expand_tasks_per_node(*text);
  return counts && !counts->empty() ? counts->front() : 0;
}

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

// A job on a part of a node: its cores are what is here, its devices what was granted; where those are
// is not known.
Topology of_this_job(const NodeModel& model, const Topology& live, const EnvSnapshot& env) {
  Topology node = live;
  node.devices.clear();
  const std::size_t granted = std::min(granted_devices(env), model.topology.devices.size());
  for (std::size_t d = 0; d < granted; ++d) {
    Device device = model.topology.devices[d];
    device.pus = CpuSet{};
    device.numa = -1;
    node.devices.push_back(std::move(device));
  }
  return node;
}

std::string shape(const Topology& node) {
  return fmt::format("{}, {}, {}", counted(static_cast<long>(node.packages.size()), "package"),
                     counted(static_cast<long>(node.cores.size()), "core"),
                     counted(node.all_pus().count(), "hardware thread"));
}

}  // namespace

Result<const NodeModel*> choose_model(const LaunchArgs& args, const Profile* profile,
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

Node settle_node(const NodeModel* model, const std::optional<Topology>& live,
                 const EnvSnapshot& env, std::vector<Finding>& findings) {
  if (model == nullptr) return {*live, nullptr, false, true};
  const int granted = granted_cpus(env);
  if (model->live && (live || granted > 0)) {
    const Topology& base = live ? *live : model->topology;
    Node node{of_this_job(*model, base, env), nullptr, base.allowed != base.all_pus(), true};
    if (granted > 0 && granted < node.topology.allowed.count()) {
      cut_to(granted, node.topology);
      node.part = true;
      node.known = false;
    }
    return node;
  }
  if (!live) return {model->topology, model, false, true};
  Node node{model->topology, model, false, true};
  if (live->all_pus() == model->topology.all_pus()) {
    node.topology.allowed &= live->allowed;
    if (!node.topology.allowed.empty()) return node;
    node.topology.allowed = live->allowed;  // nothing but reserved cores was left to us
    return node;
  }
  findings.push_back({"node-differs", Severity::warning,
                      fmt::format("this node has {}, the profile's node \"{}\" has {}; the plan "
                                  "is for the latter, and each rank checks what it gets",
                                  shape(*live), model->name, shape(model->topology)),
                      "hpclaunch topo shows this node; --profile none plans for it"});
  return node;
}

}  // namespace hpclaunch::cli
