// MASTER_ADDR: that it leads to the host of rank 0, as far as can be told from here.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/late.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "world/site.h"

namespace hpclaunch::job {

namespace {

using Addresses = std::vector<std::string>;

bool share(const Addresses& a, const Addresses& b) {
  return std::ranges::find_first_of(a, b) != a.end();
}

bool is_loopback_name(const std::string& name) {
  return is_loopback(name) || name == "localhost" || name == "0.0.0.0" || name == "::";
}

// One of them is this machine's, or one that every machine has.
bool are_here(const Addresses& addresses, const World& world) {
  return share(addresses, world.own_addresses()) ||
         std::ranges::any_of(addresses, is_loopback_name);
}

class Check {
 public:
  Check(const Plan& plan, const World& world, const std::string& name, Diagnostics& diagnostics)
      : plan_(plan),
        world_(world),
        name_(name),
        first_(plan.hosts.names.front()),
        diagnostics_(diagnostics) {}

  // By the text alone. False: nothing more can be said.
  bool text() {
    const std::string again = fix("unset MASTER_ADDR");
    if (name_.empty()) return add("address-empty", Severity::error, "MASTER_ADDR is empty", again);
    if (const auto strange = strange_in_host(name_); strange && !has_late(name_))
      return add("address-invalid", Severity::error,
                 fmt::format("MASTER_ADDR \"{}\" is not a host: {}", shown(name_), *strange),
                 "--master-addr HOST with a host name or an address");
    if (plan_.nodes() < 2) return true;
    if (is_loopback_name(name_)) return loopback(name_);
    if (is_link_local(name_))
      return add("address-link-local", Severity::error,
                 fmt::format("MASTER_ADDR {} is link-local, but the job has {} nodes", name_,
                             plan_.nodes()),
                 "--master-addr with an address that all nodes reach");
    if (plan_.hosts.invented || same_host(name_, first_)) return true;
    if (plan_.hosts.names.contains(name_))
      return add("address-elsewhere", Severity::error,
                 fmt::format("MASTER_ADDR {} is another node of the job, but rank 0 runs on {}",
                             name_, first_),
                 again);
    return true;
  }

  void resolved() {
    const Result<Addresses> found = world_.resolve(name_);
    const bool in_job = plan_.hosts.names.contains(world_.host);
    // Outside the job, a name of its host list may be known to its nodes only.
    if (!found && name_ == first_ && !in_job) return;
    if (!found) {
      add("address-unknown", in_job ? Severity::error : Severity::warning,
          fmt::format("MASTER_ADDR {} does not resolve here: {}", name_, found.error().message),
          "--master-addr with a name or an address that every node can resolve");
      return;
    }
    if (plan_.nodes() > 1 && !found->empty() && std::ranges::all_of(*found, is_loopback)) {
      loopback(found->front());
      return;
    }
    compare(*found, in_job);
  }

 private:
  bool add(const char* rule, Severity severity, std::string message, std::string fix) {
    // One rank may never look at it.
    if (plan_.world_size() == 1) severity = Severity::warning;
    diagnostics_.push_back({rule, severity, std::move(message), std::move(fix)});
    return false;
  }

  // Nobody exported it where it was typed, or where a platform says it.
  std::string fix(std::string_view exported) const {
    if (plan_.hosts.own >= 0) return "--master-addr HOST, with node 0's name or address";
    const Setting* setting = plan_.find_env("MASTER_ADDR");
    const bool typed = setting != nullptr && setting->history.back().layer == Layer::command_line;
    return fmt::format("{}; rank 0 runs on {}", typed ? "omit the typed address" : exported,
                       first_);
  }

  bool loopback(const std::string& address) {
    // A node's own name is often loopback on that node alone.
    const bool own =
        (plan_.hosts.first_is_here && same_host(name_, first_)) || plan_.hosts.own >= 0;
    return add("address-loopback", own ? Severity::warning : Severity::error,
               fmt::format("MASTER_ADDR {} is loopback here ({}), but the job has {} nodes", name_,
                           address, plan_.nodes()),
               "--master-addr with an address that all nodes reach");
  }

  void compare(const Addresses& found, bool in_job) {
    if (same_host(name_, first_)) return;
    const bool here = plan_.hosts.first_is_here;
    if (here && are_here(found, world_)) return;
    const Result<Addresses> of_first = world_.resolve(first_);
    if (of_first && share(found, *of_first)) return;
    if (!in_job && are_here(found, world_))
      add("address-here", Severity::warning,
          fmt::format("MASTER_ADDR {} is this machine, which is not a node of the job", name_),
          fix("unset MASTER_ADDR"));
    else if (here || of_first)  // rank 0 listens here, or on a host that may have more addresses
      add("address-elsewhere", here && plan_.hosts.own < 0 ? Severity::error : Severity::warning,
          fmt::format("MASTER_ADDR {} is {}, but rank 0 runs on {}, which is {}", name_,
                      fmt::join(found, ", "), first_,
                      here ? "this machine" : fmt::format("{}", fmt::join(*of_first, ", "))),
          fix("unset MASTER_ADDR (maybe of another job)"));
  }

  const Plan& plan_;
  const World& world_;
  const std::string& name_;
  const std::string first_;
  Diagnostics& diagnostics_;
};

}  // namespace

void check_address(const Plan& plan, const Request& request, const World& world, Purpose purpose,
                   Diagnostics& diagnostics) {
  const Setting* setting = plan.find_env("MASTER_ADDR");
  const auto* name = setting == nullptr ? nullptr : std::get_if<std::string>(&setting->value());
  if (name == nullptr) return;
  const bool given = setting->history.back().layer != Layer::builtin;
  if (plan.nodes() < 2 && !given) return;
  Check check(plan, world, *name, diagnostics);
  if (!check.text() || plan.hosts.invented) return;
  if (plan.hosts.own > 0) return;  // it may not resolve yet, and is waited for
  const bool of_this_machine = given && plan.hosts.first_is_here && request.topology.empty();
  if (purpose == Purpose::start || of_this_machine) check.resolved();
}

std::optional<Diagnostic> endpoint_elsewhere(const Plan& plan, const World& world,
                                             const std::string& host) {
  const std::string first = plan.hosts.names.front();
  const auto holds = [&](const char* what, Severity severity) {
    return Diagnostic{
        "torchrun-endpoint", severity,
        fmt::format("the endpoint {} {}: ranks meet on {}, where rank 0 runs", host, what, first),
        severity == Severity::error ? "omit the endpoint" : ""};
  };
  if (same_host(host, first) || plan.hosts.invented) return std::nullopt;
  if (is_loopback_name(host)) {
    if (plan.nodes() == 1) return std::nullopt;
    return holds("is loopback", Severity::note);
  }
  if (plan.hosts.names.contains(host)) return holds("is not the first node", Severity::note);
  const Result<Addresses> found = world.resolve(host);
  if (!found) return holds("does not resolve here", Severity::warning);
  if (plan.hosts.first_is_here && are_here(*found, world)) return std::nullopt;
  const Result<Addresses> of_first = world.resolve(first);
  if (of_first && share(*found, *of_first)) return std::nullopt;
  return holds("is no node of the job",
               plan.hosts.first_is_here && of_first ? Severity::error : Severity::warning);
}

}  // namespace hpclaunch::job
