// MASTER_ADDR as it resolves here, before a start on several nodes.

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/sys.h"
#include "job/steps.h"

namespace hpclaunch::job {

namespace {

bool share(const std::vector<std::string>& a, const std::vector<std::string>& b) {
  return std::any_of(a.begin(), a.end(), [&](const std::string& one) {
    return std::find(b.begin(), b.end(), one) != b.end();
  });
}

std::vector<std::string> own_addresses() {
  std::vector<std::string> all;
  for (const Interface& one : sys::interfaces())
    all.insert(all.end(), one.addresses.begin(), one.addresses.end());
  return all;
}

}  // namespace

void check_address(const Plan& plan, Diagnostics& diagnostics) {
  const Setting* setting = plan.find_env("MASTER_ADDR");
  const auto* name = setting == nullptr ? nullptr : std::get_if<std::string>(&setting->value());
  if (plan.nodes() < 2 || name == nullptr) return;
  const auto add = [&](const char* rule, std::string message, std::string fix) {
    diagnostics.push_back({rule, Severity::warning, std::move(message), std::move(fix)});
  };
  const std::string& first = plan.hosts.front();
  const Result<std::vector<std::string>> found = sys::resolve(*name);
  const bool here_in_job = std::any_of(plan.hosts.begin(), plan.hosts.end(), is_here);
  // Outside the job, a name of its host list may be known to its nodes only.
  if (!found && *name == first && !here_in_job) return;
  if (!found) {
    add("address-unknown",
        fmt::format("MASTER_ADDR {} does not resolve here: {}", *name, found.error().message),
        "--master-addr with a name or an address that every node can resolve");
    return;
  }
  if (!found->empty() && std::all_of(found->begin(), found->end(), sys::is_loopback)) {
    add("address-loopback",
        fmt::format("MASTER_ADDR {} is loopback here ({}), but the job has {} nodes", *name,
                    found->front(), plan.nodes()),
        "--master-addr with an address that all nodes reach");
    return;
  }
  if (same_host(*name, first)) return;
  const Result<std::vector<std::string>> of_first = sys::resolve(first);
  if (of_first && share(*found, *of_first)) return;
  if (is_here(first) && share(*found, own_addresses())) return;
  if (!here_in_job && share(*found, own_addresses()))
    add("address-here",
        fmt::format("MASTER_ADDR {} is this machine, which is not a node of the job", *name),
        fmt::format("unset MASTER_ADDR; rank 0 runs on {}", first));
  else if (of_first)
    add("address-elsewhere",
        fmt::format("MASTER_ADDR {} is {}, but rank 0 runs on {}, which is {}", *name,
                    fmt::join(*found, ", "), first, fmt::join(*of_first, ", ")),
        fmt::format("unset MASTER_ADDR (maybe of another job); rank 0 runs on {}", first));
}

}  // namespace hpclaunch::job
