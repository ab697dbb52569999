// A rank that another launcher has started gets what `run` would give it, and becomes its program.
#include "start/bind.h"

#include <fmt/format.h>
#include <sched.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <tuple>

#include "hpclaunch/device_vendor.h"
#include "hpclaunch/hosts.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

CpuSet mask_of(pid_t pid) {
  std::array<std::uint64_t, CpuSet::kCapacity / 64> words{};
  const long bytes = syscall(SYS_sched_getaffinity, pid, sizeof words, words.data());
  if (bytes <= 0) return {};
  return CpuSet::of_words({words.data(), static_cast<std::size_t>(bytes) / sizeof words[0]});
}

bool set_mask(const CpuSet& cpus) {
  return syscall(SYS_sched_setaffinity, 0, cpus.words().size_bytes(), cpus.words().data()) == 0;
}

// All that the control group allows, whatever the mask is now.
CpuSet widest(const CpuSet& now) {
  std::array<std::uint64_t, CpuSet::kCapacity / 64> all{};
  all.fill(~0ULL);
  if (syscall(SYS_sched_setaffinity, 0, sizeof all, all.data()) != 0) return now;
  CpuSet wide = mask_of(0);
  set_mask(now);
  return wide;
}

// Where this process stands among the ranks of its node.
struct Standing {
  BindBasis basis;
  CpuSet given;        // its mask
  bool bound = false;  // by the launcher, apart from the other ranks
  std::string device;  // the launcher's mask for this rank alone: "CUDA_VISIBLE_DEVICES"
};

std::string single_mask(const EnvSnapshot& env) {
  for (const std::string_view name : device_masks())
    if (const std::string value = env.get(name);
        !value.empty() && value.find(',') == std::string::npos && value != "-1")
      return std::string(name);
  return {};
}

// A batch system that says which devices a step has; without a word of that the user has exported the mask for all.
bool gives_devices(const BindPlace& place, const EnvSnapshot& env) {
  const bool says = env.has(kSlurmGpuCount) ||
                    std::ranges::any_of(kSlurmGpuLists, [&](auto* name) { return env.has(name); });
  return says || find_launcher(place.launcher)->traits.step_var.empty();
}

// What is the same in the launcher's own process, or in a shell that starts all ranks, is for all of them.
Standing standing_of(BindPlace place, pid_t ancestor, const EnvSnapshot& env) {
  Standing found;
  found.given = mask_of(0);
  const CpuSet wide = widest(found.given);
  std::string device = place.size > 1 ? single_mask(env) : "";
  const bool narrow = !(found.given == wide);
  bool common = false;
  if (place.size > 1 && (narrow || !device.empty())) {
    const EnvSnapshot above = environment_of(ancestor);
    common = ancestor > 0 && mask_of(ancestor) == found.given;
    const bool exported = above.has(device) && above.get(device) == env.get(device);
    if (exported || !gives_devices(place, env)) device.clear();
  }
  found.bound = narrow && place.size > 1 && !common;
  found.device = std::move(device);
  found.basis = {std::move(place), found.bound ? wide : found.given, !found.device.empty()};
  return found;
}

// The device that the rank will use, as far as it is known.
const BindDevice* device_of(const NodePlan& plan, const Standing& standing,
                            const EnvSnapshot& env) {
  const auto by_index = [&](int index) -> const BindDevice* {
    const auto found = std::ranges::find(plan.devices, index, &BindDevice::index);
    return found == plan.devices.end() ? nullptr : &*found;
  };
  const auto local = static_cast<std::size_t>(standing.basis.place.local);
  if (standing.device.empty())
    return local < plan.units.size() && !plan.units[local].empty() ? by_index(plan.units[local][0])
                                                                   : nullptr;
  const std::string entry = env.get(standing.device);
  // Where a control group hides the others, each rank's own one has the number 0.
  std::vector<const BindDevice*> open;
  for (const BindDevice& one : plan.devices)
    if (!one.file.empty() && access(one.file.c_str(), R_OK | W_OK) == 0) open.push_back(&one);
  if (open.size() == 1) return open.front();
  if (const auto number = parse_natural(entry.substr(0, entry.find('.'))))
    return by_index(static_cast<int>(*number));
  const auto named = std::ranges::find_if(plan.devices, [&](const BindDevice& one) {
    const auto is = [&](const std::string& name) { return name.starts_with(entry); };
    return is(one.uuid) || std::ranges::any_of(one.instances, is);
  });
  return named == plan.devices.end() ? nullptr : &*named;
}

// Whose CPUs in the plan: those of the rank with the device that the launcher has given to this one; beyond all ranks
// where none has it.
std::size_t planned_as(const NodePlan& plan, const Standing& standing, const BindDevice* device) {
  const auto local = static_cast<std::size_t>(standing.basis.place.local);
  if (standing.device.empty() || device == nullptr) return local;
  std::vector<std::size_t> with;
  for (std::size_t r = 0; r < plan.units.size(); ++r)
    if (std::ranges::count(plan.units[r], device->index) > 0) with.push_back(r);
  if (with.empty()) return plan.units.size();
  return with.size() == 1 ? with.front() : local;
}

struct Wanted {
  CpuSet cpus;      // empty: as they are
  std::string why;  // of what is not as planned
};

Wanted wanted_cpus(const NodePlan& plan, const Standing& standing, const BindDevice* device) {
  const std::size_t rank = planned_as(plan, standing, device);
  CpuSet planned = rank < plan.cpus.size() ? plan.cpus[rank] : CpuSet();
  if (planned.empty() && device != nullptr && !device->near.empty())
    planned = device->near & standing.given;
  if (!standing.bound) return {planned, plan.unbound};
  const auto inside = [&](const auto& numa) { return numa.second.contains(standing.given); };
  if (std::ranges::any_of(plan.numas, inside))
    return {{}, "bound by the launcher inside of one NUMA node"};
  if (!planned.empty() && !planned.intersects(standing.given))
    return {{}, fmt::format("the launcher's CPUs have none of the planned {}", planned.to_list())};
  return {planned & standing.given, "kept inside of the launcher's CPUs"};
}

// Of Linux; libnuma's header may be missing.
constexpr int kPolicyPreferred = 1;
constexpr int kPolicyBind = 2;

// What was done: "bind", "preferred", "none". `kernel`: allowed at all.
std::string place_memory(const std::string& asked, const std::vector<int>& nodes) {
  std::array<std::uint64_t, 16> mask{};
  for (const int node : nodes)
    if (node < static_cast<int>(mask.size() * 64))
      mask[static_cast<std::size_t>(node) / 64] |= 1ULL << (node % 64);
  const auto set = [&](int policy) {
    return syscall(SYS_set_mempolicy, policy, mask.data(), mask.size() * 64) == 0;
  };
  if (nodes.empty()) return "none";
  if (asked == "bind" && set(kPolicyBind)) return "bind";
  mask = {};
  mask[static_cast<std::size_t>(nodes.front()) / 64 % mask.size()] = 1ULL << (nodes.front() % 64);
  return set(kPolicyPreferred) ? "preferred" : "none";
}

class Binder {
 public:
  Binder(const BindRequest& request, Session& session, Standing standing, NodePlan plan)
      : request_(request),
        session_(session),
        standing_(std::move(standing)),
        plan_(std::move(plan)),
        device_(device_of(plan_, standing_, session.env)) {}

  Status bind_cpus() {
    const Wanted wanted = wanted_cpus(plan_, standing_, device_);
    why_ = wanted.why;
    cpus_ = standing_.given;
    if (wanted.cpus.empty() || wanted.cpus == standing_.given) return Done{};
    const CpuSet own = wanted.cpus & standing_.given;  // it is never widened
    if (!own.empty() && set_mask(own)) cpus_ = mask_of(0);
    if (cpus_ == wanted.cpus) return Done{};
    return complain(
        fmt::format("planned {}, the rank has {}", cpus_text(wanted.cpus), cpus_text(cpus_)),
        "hpclaunch topo shows the CPUs of this node");
  }

  Status bind_memory() {
    if (request_.memory == "none") return Done{};
    std::vector<int> nodes;
    for (const auto& [index, cpus] : plan_.numas)
      if (cpus.intersects(cpus_)) nodes.push_back(index);
    const std::string done = place_memory(request_.memory, nodes);
    if (done == request_.memory) return Done{};
    return complain(fmt::format("--mem {}: the kernel refuses it, memory is {}", request_.memory,
                                done == "none" ? "where the rank first touches it" : done),
                    done == "none" ? "add the capability SYS_NICE to the container, or --mem none"
                                   : "--mem preferred");
  }

  EnvSnapshot environment() const {
    const BindPlace& place = standing_.basis.place;
    std::map<std::string, std::optional<std::string>> changes;
    const auto stays = [&](const std::string& name) {
      const bool counts_pods = place.pods && (name == "RANK" || name == "WORLD_SIZE");
      return is_bind_identity(name) && name != "LOCAL_RANK" && !counts_pods &&
             session_.env.has(name);
    };
    const auto set = [&](const std::string& name, const std::optional<std::string>& value) {
      if (!stays(name)) changes[name] = value;
    };
    const auto number = [&](const std::vector<std::string>& names, std::optional<int> value) {
      if (!value) return;
      for (const std::string& name : names) set(name, std::to_string(*value));
    };
    // Ranks of other nodes may be there, where somebody else has named the place to meet.
    const std::string given = session_.env.get("MASTER_ADDR");
    const bool elsewhere = !given.empty() && given != "localhost" && !is_loopback(given);
    for (const auto& [name, value] : plan_.set)
      if (!(elsewhere && value == "lo" && name == "GLOO_SOCKET_IFNAME")) set(name, value);
    number(plan_.rank, place.rank);
    number(plan_.ranks, place.ranks);
    number(plan_.node, place.node);
    number(plan_.nodes, place.nodes_known ? std::optional(place.nodes) : std::nullopt);
    number(plan_.threads, threads());
    if (!plan_.address.empty() && place.ranks) set("MASTER_ADDR", plan_.address);
    if (!plan_.port.empty() && place.ranks) set("MASTER_PORT", plan_.port);
    changes["HPCLAUNCH_LOCAL_RANK"] = std::to_string(place.local);
    changes["HPCLAUNCH_PLAN"] = plan_.wire;
    return session_.env.with(changes);
  }

  std::vector<std::string> words(std::size_t skipped) const {
    const std::vector<std::string>& typed = request_.launch.command;
    std::vector<std::string> line = {plan_.shim, plan_.program};
    line.insert(line.end(), typed.begin() + static_cast<std::ptrdiff_t>(skipped), typed.end());
    return line;
  }

  int start() {
    if (request_.verbose) show();
    std::vector<int> keep;
    if (plan_.port_lock >= 0) keep.push_back(plan_.port_lock);
    return report(session_, sys::exec(words(plan_.inserted ? 0 : 1), environment(), keep));
  }

 private:
  // As planned; of a rank that the launcher has bound as many as its CPUs have cores.
  int threads() const {
    const std::size_t rank = planned_as(plan_, standing_, device_);
    const auto local = static_cast<std::size_t>(standing_.basis.place.local);
    if (!standing_.bound) return plan_.each[rank < plan_.each.size() ? rank : local];
    const auto cores = std::ranges::count_if(
        plan_.cores, [&](const CpuSet& core) { return core.intersects(cpus_); });
    return std::max(1, static_cast<int>(cores));
  }

  Status complain(const std::string& what, const std::string& fix) {
    const std::string text = fmt::format("local rank {}: {}", standing_.basis.place.local, what);
    if (request_.strict) return Error{ErrorKind::system, text, "omit --strict, or " + fix};
    report(session_, {{"bind-differs", Severity::warning, text, fix}});
    return Done{};
  }

  void show() {
    const BindPlace& place = standing_.basis.place;
    std::string line = fmt::format("local rank {} of {} ({}): {}", place.local, place.size,
                                   place.by, cpus_text(cpus_));
    std::string nodes;
    for (const auto& [index, cpus] : plan_.numas)
      if (cpus.intersects(cpus_)) nodes += fmt::format("{}{}", nodes.empty() ? "" : ",", index);
    if (!nodes.empty()) line += fmt::format("; NUMA {}", nodes);
    if (device_ != nullptr)
      line += fmt::format("; device {}{}", device_->index,
                          device_->pci.empty() ? "" : fmt::format(" ({})", device_->pci));
    if (!why_.empty()) line += "; " + why_;
    fmt::print(session_.err, "hpclaunch: {}\n", line);
  }

  const BindRequest& request_;
  Session& session_;
  Standing standing_;
  NodePlan plan_;
  const BindDevice* device_;
  CpuSet cpus_;
  std::string why_;
};

// Programs and libraries that bind once more, by their own variables.
std::vector<Diagnostic> competitors(const EnvSnapshot& env) {
  constexpr std::pair<const char*, const char*> kNames[] = {
      {"ACCELERATE_CPU_AFFINITY", "Accelerate binds the process"},
      {"GOMP_CPU_AFFINITY", "GNU OpenMP binds its threads"},
      {"KMP_AFFINITY", "Intel's and LLVM's OpenMP bind their threads"},
      {"TLLM_NUMA_AWARE_WORKER_AFFINITY", "TensorRT-LLM binds its workers"}};
  constexpr std::string_view kOff[] = {"", "0", "false", "no", "none", "disabled"};
  std::vector<Diagnostic> found;
  for (const auto& [name, what] : kNames)
    if (const std::string value = env.get(name);
        std::ranges::find(kOff, to_lower(value)) == std::end(kOff))
      found.push_back({"binds-again", Severity::warning,
                       fmt::format("{}={}: {} after hpclaunch", name, shown(value), what),
                       fmt::format("unset {}", name)});
  return found;
}

// Where the launcher does not say how many nodes there are, and they may have unequal numbers of ranks.
void find_node(const World& world, BindPlace& place) {
  if (place.nodes_told || place.nodes < 2 || !place.rank || !place.ranks) return;
  const auto listed = listed_node(world, *place.rank - place.local, place.size, *place.ranks);
  const bool even = *place.ranks % place.size == 0;
  place.nodes_known = listed || even;
  if (listed) std::tie(place.node, place.nodes) = *listed;
}

int start_as_it_is(const BindRequest& request, Session& session) {
  const Result<std::vector<std::string>> words =
      program_words(request.launch, this_world(session.env));
  if (!words) return report(session, words.error());
  return report(session, sys::exec(*words, session.env));
}

}  // namespace

int bind(const BindRequest& request, Session& session) {
  const Placed placed = placed_by_hpclaunch(request, session.env);
  if (placed == Placed::above) session.env = without_place(session.env);
  if (placed == Placed::here) {
    if (request.verbose || session.env.get("HPCLAUNCH_LOCAL_RANK") == "0")
      fmt::print(session.err, "hpclaunch: bound already, by hpclaunch: bind changes nothing\n");
    return start_as_it_is(request, session);
  }
  Result<BindPlace> place = bind_place(request, session.env);
  if (!place) return report(session, place.error());
  find_node(this_world(session.env), *place);
  const pid_t ancestor = common_ancestor(*place);
  const LaunchKeys launch = launch_keys(*place, ancestor, request, session.env);
  Standing standing = standing_of(*std::move(place), ancestor, session.env);
  standing.basis.port_key = launch.port;
  const std::size_t options = session.words.size() - request.launch.command.size();
  std::vector<Diagnostic> found;
  const auto make = [&] {
    set_mask(standing.basis.cpus);
    Result<NodePlan> made = plan_node(request, standing.basis, session.env);
    set_mask(standing.given);
    if (made) found = made->diagnostics;
    for (Diagnostic& one : competitors(session.env)) found.push_back(std::move(one));
    std::erase_if(found, [](const Diagnostic& one) { return one.severity == Severity::note; });
    report(session, found);
    // Such a plan is not left for others: each rank finds the errors, and does not start.
    if (made && request.strict && any_from(Severity::error, found))
      made = Error{ErrorKind::usage, "not started: --strict",
                   "fix the errors above, or omit --strict"};
    return made;
  };
  Result<NodePlan> plan = shared_node_plan(
      {launch.node, plan_key(standing.basis, session, options), standing.basis.place.local}, make);
  if (!plan) {
    const ErrorKind kind = plan.error().kind;
    const int status = report(session, plan.error());
    const bool odd = kind == ErrorKind::system || kind == ErrorKind::unsupported;
    return odd && !request.strict ? start_as_it_is(request, session) : status;
  }
  Binder binder(request, session, standing, *std::move(plan));
  for (const auto step : {&Binder::bind_cpus, &Binder::bind_memory})
    if (const Status done = (binder.*step)(); !done) return report(session, done.error());
  return binder.start();
}

}  // namespace hpclaunch::job
