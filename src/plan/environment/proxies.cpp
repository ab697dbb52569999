// Proxies for HTTP, which a job's own nodes must not be reached through.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"
#include "plan/environment/environment.h"

namespace hpclaunch {

namespace {

// Sources: curl and Python's urllib read both cases, gRPC the lower one only.
constexpr std::array kProxies = {"ALL_PROXY",  "HTTPS_PROXY", "HTTP_PROXY", "all_proxy",
                                 "grpc_proxy", "http_proxy",  "https_proxy"};
constexpr std::array kExceptions = {"no_proxy", "NO_PROXY"};
constexpr int kMostNames = 512;  // an environment variable has 128 KiB at most

bool has_text(const std::string* value) { return value != nullptr && !trim(*value).empty(); }

}  // namespace

bool has_proxies(const PlanInput& input) {
  EnvSettings typed(input.env, input.of_batch);
  add_typed(*input.request, typed);
  return std::ranges::any_of(kProxies,
                             [&](const char* name) { return has_text(typed.so_far(name)); });
}

void add_proxy_exceptions(const PlanInput& input, const Hosts& hosts, EnvSettings& settings) {
  const auto used = std::ranges::find_if(
      kProxies, [&](const char* name) { return has_text(settings.so_far(name)); });
  if (hosts.count() < 2 || used == kProxies.end()) return;
  std::vector<std::string> names;  // each once, in the order of the lists
  const auto add = [&](std::string_view one) {
    const std::string name(trim(one));
    if (!name.empty() && std::ranges::count(names, name) == 0) names.push_back(name);
  };
  for (const char* name : kExceptions)
    if (const std::string* value = settings.so_far(name))
      for (const std::string_view one : split(*value, ',')) add(one);
  if (std::ranges::count(names, "*") > 0) return;
  if (const std::string* address = settings.so_far("MASTER_ADDR")) add(*address);
  add(input.rendezvous.address);
  const int known = hosts.invented ? 1 : std::min(hosts.count(), kMostNames);
  for (int n = 0; n < known; ++n)
    if (const std::string name = short_host(hosts.names[n]); !name.starts_with('(')) add(name);
  for (const char* name : kExceptions)
    settings.add(name, Layer::computed, fmt::format("{}", fmt::join(names, ",")),
                 fmt::format("{} is set: the job's nodes are reached without it", *used));
}

}  // namespace hpclaunch
