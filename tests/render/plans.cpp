#include "plans.h"

#include <fmt/format.h>

namespace hpclaunch::test {

namespace {

CpuSet set_of(const std::string& list) { return *CpuSet::parse(list); }

/// `packages` packages of `cores` cores, one NUMA node each, siblings numbered after all cores.
Topology machine(int packages, int cores, int threads) {
  Topology node;
  const int all = packages * cores;
  for (int p = 0; p < packages; ++p) {
    CpuSet pus;
    for (int c = 0; c < cores; ++c) {
      Core core{p, p, {}};
      for (int t = 0; t < threads; ++t) core.pus.add(p * cores + c + t * all);
      pus |= core.pus;
      node.cores.push_back(core);
    }
    node.packages.push_back({p, "", pus});
    node.numa_nodes.push_back({p, 1ull << 36, pus});
  }
  node.allowed = node.all_pus();
  return node;
}

Setting setting(const std::string& name, std::vector<Decision> history) {
  return {name, std::move(history)};
}

const SourceRef kTyped{"<command line>"};
const SourceRef kExported{"<environment>"};
const SourceRef kPlacement{"<placement>"};

}  // namespace

Sample two_ranks() {
  Sample out;
  out.node = machine(1, 4, 1);
  Plan& plan = out.plan;
  plan.hosts.names = {"laptop"};
  plan.placement.classes = {{{{set_of("0-1"), 2, 0, 0}, {set_of("2-3"), 2, 0, 0}}}};
  plan.placement.layout = {{0, 1}};
  plan.launch.launcher = "local";
  plan.explanation.choices = {
      setting("launcher",
              {{Layer::builtin, "local", {"<launcher search>"}, "no other launcher on PATH"}}),
      setting("cpu-bind", {{Layer::computed, PerRank{{{"0-1", "2-3"}}}, kPlacement,
                            "an even share of 4 cores for each of 2 ranks"}})};
  plan.environment.settings = {
      setting("GREETING",
              {{Layer::command_line, "it's\n\x1b[31m caf\xc3\xa9 \xff", kTyped, "typed"}}),
      setting("HF_TOKEN", {{Layer::environment, "hf_abcdef", kExported, "exported"}}),
      setting("LOCAL_RANK",
              {{Layer::computed, RankFact::local_rank, kPlacement, "place on the node"}}),
      setting("OMP_NUM_THREADS",
              {{Layer::computed, "2", kPlacement, "as many threads as each rank has cores"},
               {Layer::command_line, "1", kTyped, "typed"}}),
      setting("OMP_PLACES", {{Layer::environment, "", kExported, "exported"},
                             {Layer::profile_require,
                              Unset{},
                              {"site.json", 12, 3},
                              "would move threads out of the rank's cores"}}),
      setting("RANK", {{Layer::computed, RankFact::rank, kPlacement, ""}})};
  plan.environment.wire = "hl2.Q_jBS:rank=PMI_RANK";
  plan.launch.command = {"/usr/bin/python3", "train.py", "--name", "it's mine", "--lr", "-3e-4"};
  return out;
}

Sample two_nodes() {
  Sample out;
  out.node = machine(2, 52, 2);
  Plan& plan = out.plan;
  plan.hosts.names = {"node01", "node02"};
  NodeClass node;
  PerRank masks{{{}}};
  PerRank threads{{{}}};
  for (int r = 0; r < 12; ++r) {
    const int package = r / 6;
    const int first = package * 52 + 1 + (r % 6) * 8;
    node.ranks.push_back(
        {set_of(fmt::format("{}-{},{}-{}", first, first + 7, first + 104, first + 111)), 8, package,
         package});
    masks.items[0].push_back(fmt::format("{}.{}", r / 2, r % 2));
    threads.items[0].push_back(r < 6 ? "a-rather-long-domain-name/0"
                                     : "a-rather-long-domain-name/1");
  }
  plan.placement.classes = {node};
  plan.placement.layout = {{0, 2}};
  plan.launch.launcher = "hydra";
  plan.placement.bind_via = BindVia::launcher;
  plan.supervision.verify = Verify::strict;
  plan.explanation.choices = {
      setting("ranks-per-node",
              {{Layer::builtin, "104", kPlacement, "one rank per core where nothing else is said"},
               {Layer::profile_default,
                "12",
                {"site.json", 0, 0, "/placement/ranks_per_node"},
                "one rank per device"}})};
  plan.environment.settings = {
      setting("DEVICE_MASK",
              {{Layer::computed, masks, kPlacement,
                "the device nearest to the rank's cores, so that no transfer crosses the "
                "link between the packages"}}),
      setting("DOMAIN",
              {{Layer::profile_require, threads, {"site.json", 44, 5}, "one per package"}}),
      setting("MASTER_ADDR", {{Layer::computed, "node01", {"<rendezvous>"}, "host of rank 0"}}),
      setting("RANK", {{Layer::computed, RankFact::rank, kPlacement, "global rank"}})};
  out.argv = {"/usr/bin/mpiexec.hydra", "-n", "24", "-ppn", "12", "-hosts", "node01,node02"};
  std::string user = "user:";
  for (const RankPlan& rank : node.ranks)
    user += (user.size() > 5 ? "," : "") + rank.cpus.to_list();
  for (const char* word : {"-bind-to", user.c_str(), "-genvall", "/opt/libexec/hpclaunch-shim"})
    out.argv.emplace_back(word);
  plan.launch.command = {"/usr/bin/python3", "-u",         "train.py", "--epochs", "3",
                         "--fast",           "--out=a b;c"};
  out.argv.insert(out.argv.end(), plan.launch.command.begin(), plan.launch.command.end());
  return out;
}

Sample uneven() {
  Sample out;
  out.node = machine(2, 4, 2);
  Plan& plan = out.plan;
  for (int i = 1; i <= 6; ++i) plan.hosts.names.push_back(fmt::format("n{}", i));
  const RankPlan whole{set_of("0-15"), 8, -1, -1};
  const RankPlan left{set_of("0-3,8-11"), 4, 0, 0};
  const RankPlan right{set_of("4-7,12-15"), 4, 1, 1};
  plan.placement.classes = {{{left, right}}, {{whole}}};
  plan.placement.layout = {{0, 3}, {1, 2}, {0, 1}};
  plan.launch.launcher = "hydra";
  plan.placement.bind_via = BindVia::shim;
  plan.supervision.verify = Verify::off;
  plan.environment.settings = {
      setting("OMP_NUM_THREADS", {{Layer::computed, PerRank{{{"4", "4"}, {"8"}}}, kPlacement,
                                   "as many threads as the rank has cores"}})};
  plan.launch.command = {"/bin/true"};
  out.argv = {"/usr/bin/mpiexec.hydra", "-n", "10", "/bin/true"};
  return out;
}

}  // namespace hpclaunch::test
