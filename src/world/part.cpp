// Before a job: how much of shared nodes it is to be asked for.
#include <fmt/format.h>

#include <algorithm>
#include <set>
#include <utility>

#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"
#include "world/node.h"

namespace hpclaunch::job {

namespace {

// Of each node.
struct Part {
  int devices = 0;
  int cores = 0;
};

// By the ranks of the fullest node; nullopt: all of it. A launch that cannot be planned is refused with its reason later.
std::optional<Part> used_part(const PlanInput& input, const Share& share, int all, int cores) {
  const Request& request = *input.request;
  const Result<Plan> plan = make_plan(input);
  if (!plan) return std::nullopt;
  Part part;
  for (const NodeClass& node : plan->placement.classes) {
    std::set<int> devices;
    for (const RankPlan& rank : node.ranks)
      for (const Slot& unit : rank.slots) devices.insert(unit.device);
    part.devices = std::max(part.devices, static_cast<int>(devices.size()));
  }
  part.devices = request.job_devices.value_or(part.devices);
  part.cores = plan->max_local_size() * request.cores_per_rank.value_or(0);
  if (share.cores > 0 && share.exact && part.cores > 0)  // cores come with devices alone
    part.devices = std::max(part.devices, (part.cores + share.cores - 1) / share.cores);
  const bool counted = share.counts.empty() || std::ranges::count(share.counts, part.devices) > 0;
  if (part.devices > 0 && (part.devices >= all || share.cores == 0 || !counted))
    return std::nullopt;
  if (part.devices > 0 && (part.cores == 0 || share.exact)) part.cores = part.devices * share.cores;
  const bool takes_cores = part.devices > 0 || share.core_memory_mb > 0;
  return takes_cores && part.cores > 0 && part.cores < cores ? std::optional(part) : std::nullopt;
}

void keep_devices(int count, Topology& node) {
  node.devices.resize(static_cast<std::size_t>(count));
  std::erase_if(node.links,
                [&](const Link& link) { return link.from >= count || link.to >= count; });
}

std::string memory_text(long mebibytes) {
  return mebibytes % 1024 == 0 ? fmt::format("{}G", mebibytes / 1024)
                               : fmt::format("{}M", mebibytes);
}

// Of the queue that was typed, else of the node.
const Share* share_of(const PlanInput& input) {
  const std::string& typed = input.request->job_queue;
  for (const Queue& queue : input.profile->job.queues)
    if (queue.share && queue.name == typed) return &*queue.share;
  return input.model->share ? &*input.model->share : nullptr;
}

Status check_devices(const PlanInput& input, const Share* share, int wanted, int all) {
  const std::string of = fmt::format("a node \"{}\"", input.model->name);
  const std::string option = fmt::format("--gpus {}", wanted);
  if (wanted > all)
    return Error{ErrorKind::usage, fmt::format("{}: {} has {}", option, of, counted(all, "device")),
                 all > 0 ? fmt::format("--gpus {}", all) : "omit --gpus, or choose a --node-type"};
  const bool parts = share != nullptr && share->cores > 0 &&
                     (share->counts.empty() || std::ranges::count(share->counts, wanted) > 0);
  if (wanted == all || parts) return Done{};
  const std::vector<Queue>& queues = input.profile->job.queues;
  const auto shared = std::ranges::find_if(
      queues, [](const std::optional<Share>& one) { return one.has_value(); }, &Queue::share);
  return Error{ErrorKind::usage, fmt::format("{}: jobs have all {} devices of {}", option, all, of),
               shared == queues.end() ? fmt::format("--ppn {} uses as many", wanted)
                                      : fmt::format("-q {}, where jobs share nodes", shared->name)};
}

}  // namespace

Status ask_for_part(bool made_up, PlanInput& input) {
  const NodeModel* model = input.model;
  const bool before = (made_up || input.job.invented_hosts) && input.request->hostfile.empty();
  if (model == nullptr || !before || input.job.scheduler != "none") return Done{};
  const int all = static_cast<int>(input.node.devices.size());
  const Share* const share = share_of(input);
  if (const auto wanted = input.request->job_devices)
    if (const Status good = check_devices(input, share, *wanted, all); !good) return good.error();
  if (share == nullptr) return Done{};
  PlanInput tried = input;
  if (const auto wanted = input.request->job_devices) keep_devices(*wanted, tried.node);
  int cores = 0;
  for (const Core& core : input.node.cores) cores += core.pus.intersects(input.node.allowed);
  const std::optional<Part> part = used_part(tried, *share, all, cores);
  if (!part) return Done{};
  input.job_part = true;
  const long memory =
      part->devices > 0 ? part->devices * share->memory_mb : part->cores * share->core_memory_mb;
  input.job_memory = memory > 0 ? memory_text(memory) : "";
  CpuSet left;
  int taken = 0;
  for (const Core& core : input.node.cores)
    if (core.pus.intersects(input.node.allowed) && taken++ < part->cores)
      left |= core.pus & input.node.allowed;
  input.whole_node = std::exchange(input.node.allowed, left);
  keep_devices(part->devices, input.node);
  input.part_of_node = true;
  input.cores_known = false;
  input.granted.assign(input.hosts.size(), left.count());
  input.granted_why = fmt::format("a job with {} of each node", counted(part->cores, "core"));
  return Done{};
}

}  // namespace hpclaunch::job
