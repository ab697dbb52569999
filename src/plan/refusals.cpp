#include <fmt/format.h>

#include "hpclaunch/text.h"
#include "plan/environment/settings.h"
#include "plan/reports.h"

namespace hpclaunch {

namespace {

// More devices than the ranks can have: what there is of them and who left so few; `fewer`: what would do.
Error too_few(const Units& units, const std::string& what, int needed, const std::string& fewer) {
  const Shortage& shortage = units.shortage;
  return {
      ErrorKind::usage,
      fmt::format("{} need {} devices, and {}", what, needed,
                  shortage.by.empty() ? fmt::format("a node has {}", units.total) : shortage.by),
      shortage.fix_for(needed, fewer), kCommandLine};
}

}  // namespace

Status check_names(const Request& options) {
  const auto bad = [](const std::string& name, const char* option) {
    return Error{ErrorKind::usage, fmt::format("{}: \"{}\" is no variable name", option, name),
                 "a name has no \"=\" and is not empty; write --set NAME=VALUE", kCommandLine};
  };
  const auto good = [](const std::string& name) {
    return !name.empty() && name.find('=') == std::string::npos &&
           name.find('\0') == std::string::npos;
  };
  for (const auto& [name, value] : options.set)
    if (!good(name)) return bad(name, "--set");
  for (const std::string& name : options.unset)
    if (!good(name)) return bad(name, "--unset");
  return Done{};
}

Status check_launcher(const PlanInput& input, int nodes) {
  if (nodes <= 1 || input.launcher.multi_node) return Done{};
  return Error{ErrorKind::unsupported,
               fmt::format("launcher {} starts ranks on this machine only, the plan has {}",
                           input.launcher.name, counted(nodes, "node")),
               "use --nodes 1, or another launcher with --launcher NAME"};
}

Status check_shared(const Request& typed, const Units& units) {
  if (!typed.ranks_per_device || !units.list.empty() || units.shortage.by.empty()) return Done{};
  return Error{ErrorKind::usage,
               fmt::format("--ranks-per-device {}: {}", *typed.ranks_per_device, units.shortage.by),
               fmt::format("{}, or use --ranks-per-node", units.shortage.fix), kCommandLine};
}

Status check_groups(const Units& units, int ranks_per_node) {
  const int count = units.count();
  const std::string ranks = counted(ranks_per_node, "rank");
  if (units.filled > 0 && ranks_per_node > units.filled * count)
    return too_few(units, fmt::format("{} at {} per device", ranks, units.filled),
                   (ranks_per_node + units.filled - 1) / units.filled,
                   fmt::format("use --ranks-per-node {} or fewer, or a larger --ranks-per-device",
                               units.filled * count));
  if (units.per_rank > 1 && ranks_per_node > count)
    return too_few(
        units, fmt::format("{} with {} devices each", ranks, units.per_rank),
        ranks_per_node * units.per_rank,
        fmt::format("use --ranks-per-node {} or fewer, or a smaller --devices-per-rank", count));
  return Done{};
}

}  // namespace hpclaunch
