// The environment of one rank.
#include <fmt/format.h>

#include "differences.h"

namespace hpclaunch::check {

namespace {

// Removed for the launcher only; ranks may have it: srun describes each step with the variables that
// preset its options.
bool is_for_launcher(const Setting& setting) {
  return setting.history.back().layer == Layer::computed && !is_placement_variable(setting.name);
}

std::string of_fact(RankFact fact, const Seat& seat, int rank) {
  switch (fact) {
    case RankFact::rank:
      return fmt::format("{}", rank);
    case RankFact::local_rank:
      return fmt::format("{}", seat.local);
    case RankFact::node:
      return fmt::format("{}", seat.node);
    case RankFact::local_size:
      return fmt::format("{}", seat.local_size);
  }
  return "";
}

std::string wanted_value(const Setting& setting, const Seat& seat, int rank) {
  if (const auto* text = std::get_if<std::string>(&setting.value())) return *text;
  if (const auto* fact = std::get_if<RankFact>(&setting.value())) return of_fact(*fact, seat, rank);
  if (const auto* items = std::get_if<PerRank>(&setting.value()))
    return items
        ->items[static_cast<std::size_t>(seat.node_class)][static_cast<std::size_t>(seat.local)];
  return "";
}

}  // namespace

Variables::Variables(const Plan& plan, const Observed& seen) : plan_(plan) {
  for (const std::string& name : seen.names) {
    Wanted wanted;
    wanted.name = name;
    wanted.setting = plan_.find_env(name);
    if (wanted.setting != nullptr) {
      const Value& value = wanted.setting->value();
      wanted.removed = std::holds_alternative<Unset>(value);
      wanted.ignored = wanted.removed && is_for_launcher(*wanted.setting);
      if (const auto* text = std::get_if<std::string>(&value)) wanted.constant = fingerprint(*text);
    }
    wanted_.push_back(std::move(wanted));
  }
}

void Variables::compare(const Seat& seat, const RankReport& report, Differences& out) const {
  // Variables after an import are compared in compare_import.
  const std::string& all =
      report.fingerprints_before.empty() ? report.fingerprints : report.fingerprints_before;
  if (all.size() != wanted_.size() * kFingerprint) {
    out.of_rank(report.rank, seat.node,
                different("variable", "a report of this version", "another one",
                          "hpclaunch on that node has another version",
                          "install the same version everywhere"));
    return;
  }
  for (std::size_t i = 0; i < wanted_.size(); ++i) {
    const Wanted& wanted = wanted_[i];
    if (wanted.ignored) continue;
    const std::string_view found = std::string_view(all).substr(i * kFingerprint, kFingerprint);
    const bool there = found != kNoFingerprint;
    if (wanted.setting == nullptr ? there : (wanted.removed && !there)) continue;
    std::string value;
    if (wanted.setting != nullptr && !wanted.removed) {
      if (!wanted.constant.empty() && found == wanted.constant) continue;
      value = wanted_value(*wanted.setting, seat, report.rank);
      if (found == fingerprint(value)) continue;
    }
    const bool open = is_placement_variable(wanted.name) && !is_secret(wanted.name);
    const auto at = report.values.find(wanted.name);
    const std::string shown = at == report.values.end() ? "" : at->second;
    std::string planned = wanted.removed              ? wanted.name + " not set"
                          : wanted.setting == nullptr ? wanted.name + " as exported"
                          : open                      ? fmt::format("{}={}", wanted.name, value)
                                                      : wanted.name + " as planned";
    std::string got = !there ? wanted.name + " not set"
                      : open ? fmt::format("{}={}", wanted.name, shown)
                             : wanted.name + " has another value";
    std::string cause = "the launcher, a start-up file of the node or the batch system changes it";
    std::string fix = fmt::format("check the node's start-up files for {}", wanted.name);
    if (!there) {
      cause = "the launcher does not pass this variable on to its ranks";
      fix = "name it to the launcher with --launcher-arg";
    } else if (wanted.removed) {
      cause = "the launcher, or a start-up file of the node, sets it again";
      fix = "remove it there, or set your value with --set";
    }
    out.of_rank(report.rank, seat.node,
                different("variable", std::move(planned), std::move(got), std::move(cause),
                          std::move(fix)));
  }
}

}  // namespace hpclaunch::check
