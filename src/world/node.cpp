// The model of the profile, this machine, or both: which one is planned for.

#include "world/node.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <set>

#include "hpclaunch/probe.h"
#include "hpclaunch/session.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

// Leaves as many hardware threads as were granted, by whole cores from the first on: the batch
// system does not say which.
void cut_to(int granted, Topology& node) {
  CpuSet left;
  for (const Core& core : node.cores) {
    if (left.count() >= granted) break;
    left |= core.pus & node.allowed;
  }
  node.allowed = left;
}

// A job on a part of a node has the cores found here and the devices granted to it; the locality of
// a model's devices is unknown.
Topology of_this_job(const NodeModel& model, const Topology& live, GrantedDevices granted) {
  Topology node = live;
  if (granted.count == 0) {
    node.devices.clear();
    node.links.clear();
    return node;
  }
  if (!node.devices.empty() && &live != &model.topology) return node;
  node.devices = model.topology.devices;
  node.no_devices = false;
  if (!granted.listed) node.devices.resize(std::min(granted.count, node.devices.size()));
  for (Device& device : node.devices) {
    device.pus = CpuSet{};
    device.numa = -1;
  }
  node.links.clear();
  return node;
}

Topology with_devices_of(const std::string& vendor, const Topology& node) {
  Topology some = node;
  std::erase_if(some.devices, [&](const Device& device) { return device.vendor != vendor; });
  return some;
}

// In a job a control group may refuse to open device files; otherwise their existence is enough.
// Each vendor apart: this machine may have devices that the planned node lacks.
void find_reachable(const Site& site, const World& world, JobNode& job) {
  if (!job.live || !site.is_here || job.topology.devices.empty()) return;
  const std::vector<DeviceFile> files = world.device_files(site.batch.scheduler != nullptr);
  std::set<std::string> vendors;
  for (const Device& device : job.topology.devices) vendors.insert(device.vendor);
  std::vector<int> reachable;
  for (const std::string& vendor : vendors) {
    const std::vector<Device> planned = with_devices_of(vendor, job.topology).devices;
    const Topology here = with_devices_of(vendor, *job.live);
    if (here.devices.size() != planned.size()) return;
    const std::optional<std::vector<int>> found = reachable_devices(here, files);
    if (!found) return;
    for (std::size_t d = 0; d < planned.size(); ++d)
      if (std::ranges::count(*found, here.devices[d].index) > 0)
        reachable.push_back(planned[d].index);
  }
  std::ranges::sort(reachable);
  job.reachable = std::move(reachable);
}

// A file of this very machine, under a caller's narrower mask.
void keep_to_own_mask(const World& world, Topology& node) {
  constexpr std::size_t kMost = 4096;
  const Result<std::string> online = world.read_file("/sys/devices/system/cpu/online", kMost);
  const Result<CpuSet> all = CpuSet::parse(online ? trim(*online) : "");
  const Result<CpuSet> mask = CpuSet::parse(world.affinity());
  if (all && mask && all->contains(node.all_pus()) && node.allowed.intersects(*mask))
    node.allowed &= *mask;
}

int most_threads(const Topology& node) {
  int threads = 1;
  for (const Core& core : node.cores) threads = std::max(threads, core.pus.count());
  return threads;
}

// What a batch system counts as one CPU, in hardware threads: Slurm counts these or cores, as the site configures it.
// `whole`: of a job with all of a node; `here`: what this machine, the first host, allows.
// More than there are cores are threads. Equal counts of as many may be whole nodes, and are taken for that.
int threads_per_cpu(const HostList& hosts, const Topology& node, const CpuSet& whole,
                    const CpuSet& here) {
  const int threads = most_threads(node);
  const int cores = cores_of(node, whole).count();
  const auto [fewest, most] =
      std::ranges::minmax(hosts.granted_in_all.empty() ? hosts.granted : hosts.granted_in_all);
  const int first = hosts.granted.front();
  const bool by_thread = threads == 1 || most > cores || here.count() == first;
  const bool by_core = cores_of(node, here).count() == first || fewest == cores;
  return !by_thread && by_core ? threads : 1;
}

// Hardware threads of each host; empty: the job has all of each node.
std::vector<int> partial_grants(const HostList& hosts, const JobNode& job, const CpuSet& here) {
  std::vector<int> counts = hosts.granted;
  if (counts.empty()) return counts;
  const int threads = threads_per_cpu(hosts, job.topology, job.whole, here);
  for (int& count : counts) count *= threads;
  const bool part =
      std::ranges::any_of(counts, [&](int count) { return count < job.whole.count(); });
  return part ? counts : std::vector<int>();
}

// As much as here, or as slots say that are as many as the CPUs or the cores here.
std::vector<int> assumed_grants(const HostList& hosts, const Topology& here) {
  const int mine = here.allowed.count();
  std::vector<int> granted(hosts.names.size(), mine);
  if (!hosts.slots_are_cores || hosts.slots.size() != granted.size()) return granted;
  const int each = mine / hosts.slots.front();
  if (mine % hosts.slots.front() != 0 || (each != 1 && each != most_threads(here))) return granted;
  for (std::size_t n = 0; n < granted.size(); ++n) granted[n] = hosts.slots[n] * each;
  return granted;
}

}  // namespace

Result<const NodeModel*> choose_model(const Request& request, const Profile* profile,
                                      const EnvSnapshot& env, const JobFacts& job) {
  if (profile == nullptr || profile->nodes.empty()) {
    if (request.node_type.empty()) return nullptr;
    return Error{
        ErrorKind::usage,
        fmt::format("--node-type {}: the profile in use has no node models", request.node_type),
        "omit it, or choose a profile with --profile"};
  }
  if (!request.node_type.empty()) {
    if (const NodeModel* model = profile->find_node(request.node_type)) return model;
    const std::vector<std::string> names = names_of(profile->nodes);
    const auto near = nearest(request.node_type, names);
    return Error{ErrorKind::usage,
                 fmt::format("unknown node type \"{1}\" for {0}", profile->name, request.node_type),
                 near ? fmt::format("--node-type {}", *near)
                      : fmt::format("--node-type with one of {}", fmt::join(names, ", "))};
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

JobNode settle_node(const NodeModel* model, const std::optional<Topology>& live, int granted,
                    GrantedDevices devices, OnDrift how, Diagnostics& diagnostics) {
  if (model == nullptr) return {*live, nullptr, false, true, live->all_pus()};
  if (model->live && (live || granted > 0)) {
    const Topology& base = live ? *live : model->topology;
    JobNode node{of_this_job(*model, base, devices), nullptr, base.allowed != base.all_pus(), true,
                 base.all_pus()};
    if (granted > 0 && granted < node.topology.allowed.count()) {
      cut_to(granted, node.topology);
      node.part = true;
      node.known = false;
    }
    return node;
  }
  const CpuSet& whole = model->topology.allowed;
  if (!live) return {model->topology, model, false, true, whole};
  const std::string name = fmt::format("the profile's node \"{}\"", model->name);
  const std::size_t before = diagnostics.size();
  if (judge_drift(model->topology, *live, name, granted, devices, how, diagnostics)) {
    JobNode node{replanned(*live, model->topology), model, false, true};
    const CpuSet free = node.topology.allowed - model->reserved;
    if (!free.empty()) node.topology.allowed = free;
    node.whole = live->all_pus() - model->reserved;
    return node;
  }
  JobNode node{model->topology, model, false, true, whole};
  const bool differs = diagnostics.size() > before;
  if (differs && !live->all_pus().contains(model->topology.all_pus())) return node;
  node.topology.allowed &= live->allowed;
  if (node.topology.allowed.empty())  // only reserved cores are granted
    node.topology.allowed = live->allowed & model->topology.all_pus();
  if (node.topology.allowed.empty()) node.topology.allowed = model->topology.allowed;
  return node;
}

Result<JobNode> find_node(const Request& request, const World& world, const Site& site,
                          const std::function<void()>& meanwhile, Diagnostics& diagnostics) {
  constexpr double kProbeSeconds = 20;
  const GrantedDevices devices = granted_devices(world.env, site.batch);
  const OnDrift how = on_drift(request);
  const bool by_file = !request.topology.empty();
  std::optional<Topology> live;
  if (world.made_up() && site.model == nullptr)
    return Error{ErrorKind::usage, fmt::format("{} has no node model", world.profile->name),
                 "describe its nodes under \"nodes\""};
  // A file plans for another node than this one: compared only when requested.
  if (by_file ? request.on_drift && site.is_here : site.model == nullptr || site.is_here) {
    Result<LiveNode> probed = world.probe_node(kProbeSeconds, meanwhile);
    if (!probed) return probed.error();
    live = std::move(probed->topology);
    diagnostics.insert(diagnostics.end(), probed->diagnostics.begin(), probed->diagnostics.end());
  } else {
    meanwhile();
  }
  JobNode node;
  if (by_file) {
    Result<Topology> file = world.read_topology(request.topology, kProbeSeconds);
    if (!file) return file.error();
    if (site.is_here && !live) keep_to_own_mask(world, *file);
    const std::string name = "the node of " + request.topology;
    if (live && judge_drift(*file, *live, name, 0, devices, how, diagnostics))
      node = {replanned(*live, *file), nullptr, false, true, live->all_pus()};
    else
      node = {*file, nullptr, false, true, file->allowed};
  } else {
    const std::vector<int>& granted = site.hosts.granted;
    const int first = granted.empty() ? site.batch.cpus : granted.front();
    node = settle_node(site.model, live, first, devices, how, diagnostics);
  }
  if (live && !by_file) {
    node.quota = cpu_quota(world, diagnostics);
    if (!world.env.has("HPCLAUNCH_CPU_QUOTA"))
      if (CpuQuota counted = counted_cpus(world, site, *live);
          counted.cpus > 0 && (node.quota.cpus == 0 || counted.cpus < node.quota.cpus))
        node.quota = std::move(counted);
  }
  node.live = std::move(live);
  // CPUs of this machine that are not allowed may be another job's; reserved ones of a model are no
  // job's.
  node.granted_why = site.hosts.granted_why;
  const bool first = node.live && first_is_here(site.hosts, world);
  const CpuSet here = first ? node.live->allowed : CpuSet{};
  node.granted = partial_grants(site.hosts, node, here);
  if (name_grants(site, world.env, here, node)) {
    node.part = false;
  } else if (!node.granted.empty()) {
    node.part = true;
    node.known = here.count() == node.granted.front();
  } else if (request.started_by.empty() && site.hosts.granted.empty() && first &&
             site.batch.scheduler != nullptr && site.hosts.names.size() > 1 &&
             !here.contains(node.whole)) {
    // Other nodes may have the same CPUs, where the system keeps some everywhere, or others.
    node.part = node.known = true;
    node.assumed = !count_others(site, here, node);
    if (node.assumed) {
      node.granted = assumed_grants(site.hosts, node.topology);
      node.granted_why = fmt::format("this node allows {} of {} CPUs",
                                     node.topology.allowed.count(), node.whole.count());
    }
  }
  find_reachable(site, world, node);
  return node;
}

Result<Topology> known_node(const std::string& file, Session& session) {
  if (!file.empty()) return read_topology(file);
  Result<LiveNode> live = probe_node(VendorLibraries::all);
  if (!live) return live.error();
  Diagnostics diagnostics = std::move(live->diagnostics);
  if (const Status asked = ask_libfabric(live->topology); !asked)
    diagnostics.push_back({"libfabric-silent", Severity::note,
                           "no libfabric providers: " + asked.error().message, asked.error().hint});
  report(session, diagnostics);
  return std::move(live->topology);
}

Result<std::string> known_xml(const std::string& file) { return topology_xml(file); }

}  // namespace hpclaunch::job
