// What measures the start of the ranks.
#include <fmt/format.h>

#include "plan/environment/environment.h"

namespace hpclaunch {

void add_start_profile(const PlanInput& input, Plan& plan, EnvSettings& settings) {
  if (!input.request.profile_start) return;
  const auto add = [&](const char* name, Value value) {
    settings.add(name, Layer::command_line, std::move(value), "--profile-start");
  };
  const std::string folder = "/tmp/hpclaunch-start-" + input.launch_key;
  plan.make_dirs.push_back(folder);
  add(kStartFolder, folder);
  add(kStartRank, RankFact::rank);
  const std::string* path = settings.so_far("PYTHONPATH");
  const bool others = path != nullptr && !path->empty();
  add("PYTHONPATH", others ? fmt::format("{}:{}", input.start_hook, *path) : input.start_hook);
}

}  // namespace hpclaunch
