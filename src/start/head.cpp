// A node that somebody else starts, before the name of node 0 is known to it: a service of Kubernetes has its records
// seconds after the pods, and torch takes a look-up that fails for the end.
#include <fmt/format.h>

#include <algorithm>
#include <csignal>
#include <ctime>
#include <utility>

#include "hpclaunch/events.h"
#include "hpclaunch/hosts.h"
#include "start/steps.h"

namespace hpclaunch::job {

namespace {

constexpr int kUsualSeconds = 600;
constexpr long kFirstPause = 250, kLongestPause = 2000;  // ms

void pause_for(long ms) {
  const timespec time = {ms / 1000, ms % 1000 * 1'000'000};
  nanosleep(&time, nullptr);
}

}  // namespace

Status wait_for_head(const Prepared& prepared, const StageLines& lines) {
  const Plan& plan = prepared.plan;
  if (plan.hosts.own <= 0) return Done{};
  const std::string* name = everywhere(plan, prepared.env, "MASTER_ADDR");
  if (name == nullptr || is_address(*name)) return Done{};
  const int seconds = plan.supervision.output.start_seconds.value_or(kUsualSeconds);
  const double begun = sys::wall_clock();
  bool told = false;
  sys::hold({SIGINT, SIGTERM, SIGHUP});
  for (long pause = kFirstPause;; pause = std::min(2 * pause, kLongestPause)) {
    const Result<std::vector<std::string>> found = sys::resolve(*name);
    if (found && !found->empty()) return Done{};
    const double waited = sys::wall_clock() - begun;
    if (seconds > 0 && waited >= seconds)
      return Error{ErrorKind::system,
                   fmt::format("MASTER_ADDR {} does not resolve here after {} s: {}", *name,
                               seconds, found ? "it has no address" : found.error().message),
                   "--master-addr with an address of node 0, or a longer --start-timeout"};
    if (sys::held_signal() != 0) return Done{};
    if (!std::exchange(told, true))
      lines(fmt::format("waiting for {} (MASTER_ADDR), which does not resolve yet", *name), true);
    pause_for(pause);
  }
}

}  // namespace hpclaunch::job
