#include "job/preflight.h"

#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/rank_report.h"
#include "job/reports.h"

namespace hpclaunch::cli {

namespace {

constexpr std::size_t kRowsPerKind = 8;

bool is_here(const std::string& host) { return same_host(host, sys::host_name()); }

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

Result<std::vector<Diagnostic>> preflight(const Prepared& prepared, const Session& session,
                                          double limit_seconds) {
  Plan plan = one_rank_per_node(prepared.plan);
  Question question;
  if (!plan.command.empty()) question.program = plan.command.front();
  plan.command = report_command(question);
  Result<Collected> collected = collect_reports(std::move(plan), prepared, session, limit_seconds);
  if (!collected) return collected.error();
  if (collected->ended.interrupted_by != 0)
    return Error{ErrorKind::system,
                 fmt::format("preflight: signal {}", collected->ended.interrupted_by), ""};
  if (collected->seen.reports.empty())
    return Error{ErrorKind::system,
                 fmt::format("preflight: no node reported; the launcher ended with status {}",
                             collected->ended.status),
                 "its messages are above; hpclaunch run --dry-run shows what is started"};
  collected->seen.one_per_node = true;
  look_up_hosts(prepared.plan, collected->seen);
  const Comparison comparison = compare(prepared.plan, prepared.node, collected->seen);
  std::vector<Diagnostic> diagnostics;
  for (const Difference& one : condense(comparison.differences, kRowsPerKind))
    diagnostics.push_back(
        {"preflight-" + one.kind, one.severity,
         fmt::format("{}: planned {}, found {}: {}", where_text(prepared.plan, one), one.planned,
                     one.found, one.cause),
         one.fix});
  return diagnostics;
}

void check_address(const Plan& plan, std::vector<Diagnostic>& diagnostics) {
  const Setting* setting = plan.find_env("MASTER_ADDR");
  const auto* name = setting == nullptr ? nullptr : std::get_if<std::string>(&setting->value());
  if (plan.nodes() < 2 || name == nullptr) return;
  const auto say = [&](const char* rule, std::string message, std::string fix) {
    diagnostics.push_back({rule, Severity::warning, std::move(message), std::move(fix)});
  };
  const std::string& first = plan.hosts.front();
  const Result<std::vector<std::string>> found = sys::resolve(*name);
  const bool here_in_job = std::any_of(plan.hosts.begin(), plan.hosts.end(), is_here);
  // Beside the job, a name of its own list may well be known to its nodes only.
  if (!found && *name == first && !here_in_job) return;
  if (!found) {
    say("address-unknown",
        fmt::format("MASTER_ADDR {} does not resolve here: {}", *name, found.error().message),
        "--master-addr with a name or an address that every node knows");
    return;
  }
  if (!found->empty() && std::all_of(found->begin(), found->end(), sys::is_loopback)) {
    say("address-loopback",
        fmt::format(
            "MASTER_ADDR {} is {} here, and the job has {} nodes: each would wait for itself",
            *name, found->front(), plan.nodes()),
        "--master-addr with the address of an interface that all nodes reach");
    return;
  }
  if (same_host(*name, first)) return;
  const Result<std::vector<std::string>> of_first = sys::resolve(first);
  if (of_first && share(*found, *of_first)) return;
  if (is_here(first) && share(*found, own_addresses())) return;
  if (!here_in_job && share(*found, own_addresses()))
    say("address-here",
        fmt::format("MASTER_ADDR {} is this machine, which is no node of the job", *name),
        fmt::format("unset MASTER_ADDR; rank 0 runs on {}", first));
  else if (of_first)
    say("address-elsewhere",
        fmt::format("MASTER_ADDR {} is {}, and rank 0 runs on {}, which is {}", *name,
                    fmt::join(*found, ", "), first, fmt::join(*of_first, ", ")),
        fmt::format("unset MASTER_ADDR, which may be another job's; rank 0 runs on {}", first));
}

}  // namespace hpclaunch::cli
