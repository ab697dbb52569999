#pragma once
// Plans by hand, and the launch lines that launchers make of them.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>
#include <random>
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/launcher.h"
#include "support/catch.h"

namespace lines {

using namespace hpclaunch;

inline CpuSet cpus(const std::string& list) { return *CpuSet::parse(list); }

inline NodeClass ranks_on(const std::vector<std::string>& lists) {
  NodeClass result;
  for (const std::string& list : lists) {
    RankPlan rank;
    rank.cpus = cpus(list);
    result.ranks.push_back(rank);
  }
  return result;
}

inline NodeClass so_many(int ranks) {
  return ranks_on(std::vector<std::string>(static_cast<std::size_t>(ranks), "0"));
}

inline Plan two_nodes() {
  Plan plan;
  plan.hosts.names = {"node1", "node2"};
  plan.placement.classes = {ranks_on({"0-6", "8-14,40", "16-22", "24-30"})};
  plan.placement.layout = {NodeRun{0, 2}};
  plan.placement.bind_via = BindVia::launcher;
  plan.placement.gpu_view = "all";
  plan.launch.command = {"/usr/bin/python3", "-c", "print('a b;c')", "", "--", "$HOME\n*", "\xff"};
  return plan;
}

/// 1 to 12 ranks with one to four runs of CPUs each, which may touch or overlap.
inline NodeClass random_ranks(std::mt19937& engine) {
  NodeClass ranks;
  for (unsigned r = 0; r <= engine() % 12; ++r) {
    RankPlan rank;
    for (auto runs = engine() % 4 + 1; runs > 0; --runs) {
      const int first = static_cast<int>(engine() % 600);
      for (int i = 0; i <= static_cast<int>(engine() % 9); ++i) rank.cpus.add(first + i);
    }
    ranks.ranks.push_back(rank);
  }
  return ranks;
}

/// Nodes with so many ranks each, bound by the shim.
inline Plan uneven(const std::vector<int>& ranks) {
  Plan plan;
  plan.launch.command = {"/bin/true"};
  for (std::size_t i = 0; i < ranks.size(); ++i) {
    plan.hosts.names.push_back(fmt::format("n{}", i));
    plan.placement.classes.push_back(so_many(ranks[i]));
    plan.placement.layout.push_back({static_cast<int>(i), 1});
  }
  return plan;
}

/// `launcher` may have a version: "openmpi 4.1.4".
inline Result<Argv> render(const std::string& launcher, const Plan& plan) {
  const std::string name = launcher.substr(0, launcher.find(' '));
  const std::string version = name == launcher ? "" : launcher.substr(name.size() + 1);
  return find_launcher(name)->render(plan, {"/opt/bin/" + name, version}, "/opt/shim");
}

/// The line up to the shim, one argument per line; what follows must be the program as it stands.
inline std::string head(const std::string& launcher, const Plan& plan) {
  const auto argv = render(launcher, plan);
  if (!argv) FAIL(argv.error().message);
  const std::size_t tail = plan.launch.command.size() + 1;
  REQUIRE(argv->size() > tail);
  const auto at = argv->end() - static_cast<std::ptrdiff_t>(tail);
  REQUIRE(*at == "/opt/shim");
  REQUIRE(std::equal(at + 1, argv->end(), plan.launch.command.begin(), plan.launch.command.end()));
  return fmt::format("{}", fmt::join(argv->begin(), at, "\n"));
}

/// What the path alone says of a program; "" where it says nothing.
inline std::string evident(std::string_view real_path) {
  const auto nothing = [](const std::string&) { return false; };
  const auto identity = identify_launcher_by_path(real_path, nothing);
  return identity ? identity->name : "";
}

inline Error refusal(const std::string& launcher, const Plan& plan) {
  const auto argv = render(launcher, plan);
  REQUIRE_FALSE(argv);
  CHECK(argv.error().kind == ErrorKind::unsupported);
  CHECK_FALSE(argv.error().hint.empty());
  return argv.error();
}

inline std::string without(std::string text, const std::string& piece) {
  const auto at = text.find(piece);
  REQUIRE(at != std::string::npos);
  return text.erase(at, piece.size());
}

}  // namespace lines
