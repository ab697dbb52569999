// What --stall needs of the libraries that know how far each rank is in its collectives.
#include <fmt/format.h>

#include "hpclaunch/text.h"
#include "plan/environment/environment.h"

namespace hpclaunch {

namespace {

// NCCL, RCCL: pytorch/torch/csrc/distributed/c10d/ProcessGroupNCCL.cpp, XCCL: intel/torch-xpu-ops. A release of PyTorch
// reads one name of a pair or both.
struct Preset {
  const char* name;
  const char* old_name;  // "" for none
  bool nccl;             // read by ProcessGroupNCCL alone
  const char* value;     // "{}": the folder
  const char* why;
};

constexpr Preset kPresets[] = {
    {"TORCH_FR_BUFFER_SIZE", "TORCH_NCCL_TRACE_BUFFER_SIZE", false, "2000",
     "collectives that PyTorch's flight recorder keeps; older releases keep none"},
    {"TORCH_FR_DUMP_TEMP_FILE", "TORCH_NCCL_DEBUG_INFO_TEMP_FILE", false, "{}/flight-recorder-",
     "dumps of the flight recorder, one per rank: on the node, and none of another launch"},
    {"TORCH_FR_DUMP_ON_TIMEOUT", "TORCH_NCCL_DUMP_ON_TIMEOUT", true, "1",
     "also after a time-out; the pipe is read every second with it, else every 8 minutes"},
};

constexpr const char* kRas = "NCCL_RAS_ADDR";

// Beside the rendezvous, so that each launch has its own; "" where the plan does not know that.
std::string ras_address(const PlanInput& input, const EnvSettings& settings) {
  constexpr long kLastPort = 65535;
  const std::string* typed = settings.so_far("MASTER_PORT");
  const long port =
      typed == nullptr ? input.rendezvous.port : parse_natural(*typed, kLastPort).value_or(0);
  if (port == 0) return "";
  return fmt::format("localhost:{}", ras_port(static_cast<int>(port)));
}

}  // namespace

std::string add_stall(const PlanInput& input, const Slots& slots, EnvSettings& settings) {
  const MaskSyntax syntax = slots.vendor->syntax;
  if (syntax == MaskSyntax::none || slots.hidden) return "";
  const bool nccl = syntax != MaskSyntax::level_zero;
  std::string folder = "/tmp/hpclaunch-stall-" + input.launch_key;
  const auto add = [&](const char* name, const std::string& value, const char* why) {
    settings.add(name, Layer::builtin, value, fmt::format("--stall: {}", why));
  };
  for (const Preset& one : kPresets) {
    if (one.nccl && !nccl) continue;
    if (settings.has(one.name) || settings.has(one.old_name)) continue;  // of the user, or a site
    const std::string value = fmt::format(fmt::runtime(one.value), folder);
    add(one.name, value, one.why);
    if (nccl) add(one.old_name, value, one.why);
  }
  add(nccl ? "TORCH_NCCL_DEBUG_INFO_PIPE_FILE" : "TORCH_FR_DEBUG_INFO_PIPE_FILE", folder + "/pipe-",
      "a byte written to the pipe of a rank makes it dump, and go on");
  if (const std::string address = nccl ? ras_address(input, settings) : ""; !address.empty())
    add(kRas, address, "a port of this launch alone: NCCL's RAS tells how far each rank is");
  return folder;
}

}  // namespace hpclaunch
