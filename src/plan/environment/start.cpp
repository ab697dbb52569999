// What is started beside the ranks, or measures their start.
#include <fmt/format.h>

#include "plan/environment/environment.h"

namespace hpclaunch {

namespace {

constexpr const char* kPipe = "CUDA_MPS_PIPE_DIRECTORY";

}  // namespace

std::optional<Setting> mps_choice(const PlanInput& input, const Slots& slots,
                                  const Placement& placement, std::vector<Diagnostic>& reports) {
  const std::string& typed = input.request->mps;
  const bool on = typed == "on";
  const auto note = [&](std::string message, const char* fix) {
    reports.push_back({"mps", Severity::note, std::move(message), fix});
    return std::nullopt;
  };
  const bool shared =
      slots.vendor->syntax == MaskSyntax::cuda && two_have_the_same(placement, &RankPlan::unit);
  if (!shared && on) return note("--mps on: no two ranks share a GPU of NVIDIA's", "omit it");
  if (!shared) return std::nullopt;
  if (slots.instances()) {
    if (!on) return std::nullopt;
    return note("--mps on: each MIG instance would need a daemon of its own; none is started",
                "start them in the batch script, or give each rank an instance");
  }
  if (typed == "off") return choice("mps", Layer::command_line, std::string("off"), "--mps off");
  if (on) return choice("mps", Layer::command_line, std::string("on"), "--mps on");
  if (const std::string own = input.env.get(kPipe); !own.empty())
    return choice("mps", Layer::environment, std::string("off"),
                  fmt::format("{} names a daemon of yours: {}", kPipe, own));
  if (input.profile != nullptr && !input.profile->mps.empty())
    return choice("mps", Layer::profile_default, input.profile->mps,
                  "ranks share a GPU, and the profile of " + input.profile->name + " says so");
  return note("ranks share a GPU: they take turns without MPS, and NCCL refuses two of them",
              "--mps on, with gloo or MPI between ranks of a GPU; or one rank per GPU");
}

// The path of a socket has 107 bytes at most.
std::string add_mps(const PlanInput& input, EnvSettings& settings) {
  const std::string folder = "/dev/shm/hpclaunch-mps-" + input.launch_key;
  const char* kWhy = "the ranks of a GPU find each other's MPS daemon through it";
  settings.add(kPipe, Layer::computed, folder, kWhy);
  settings.add("CUDA_MPS_LOG_DIRECTORY", Layer::computed, folder + "/log", "logs of MPS");
  return folder;
}

std::string add_start_profile(const PlanInput& input, EnvSettings& settings) {
  const auto add = [&](const char* name, Value value) {
    settings.add(name, Layer::command_line, std::move(value), "--profile-start");
  };
  const std::string folder = "/dev/shm/hpclaunch-start-" + input.launch_key;
  add(kStartFolder, folder);
  add(kStartRank, RankFact::rank);
  const std::string* path = settings.so_far("PYTHONPATH");
  const bool others = path != nullptr && !path->empty();
  add("PYTHONPATH", others ? fmt::format("{}:{}", input.start_hook, *path) : input.start_hook);
  return folder;
}

}  // namespace hpclaunch
