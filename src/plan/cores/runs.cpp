// How the operating system numbers the hardware threads of a node's cores, in a few numbers: ranks that find out which
// cores they were granted count through them by it.
#include <algorithm>
#include <functional>
#include <numeric>

#include "plan/cores/cores.h"

namespace hpclaunch {

namespace {

// With some threads switched off, those between the others count as the core's, too.
CoreRun run_of(const Core& core) {
  const std::vector<int> pus = core.pus.to_vector();
  CoreRun run{pus.front()};
  if (pus.size() == 1) return run;
  run.stride = 0;
  for (const int pu : pus) run.stride = std::gcd(run.stride, pu - run.first);
  run.threads = (pus.back() - run.first) / run.stride + 1;
  return run;
}

CpuSet pus_of(const CoreRun& run) {
  CpuSet pus;
  for (int t = 0; t < run.threads; ++t) pus.add(run.first + t * run.stride);
  return pus;
}

bool continues(const CoreRun& run, const CoreRun& next) {
  const int step = run.cores == 1 ? next.first - run.first : run.step;
  return step > 0 && next.first == run.first + run.cores * step && next.threads == run.threads &&
         (run.threads == 1 || next.stride == run.stride);
}

}  // namespace

std::optional<std::vector<CoreRun>> core_runs(const Topology& node) {
  std::vector<CoreRun> runs;
  const CpuSet exist = node.all_pus();
  CpuSet all;
  for (const Core& core : node.cores) {
    const CoreRun next = run_of(core);
    const CpuSet pus = pus_of(next);
    if (pus.intersects(all) || (exist - core.pus).intersects(pus)) return std::nullopt;
    all |= pus;
    if (runs.empty() || !continues(runs.back(), next)) {
      runs.push_back(next);
      continue;
    }
    if (runs.back().cores == 1) runs.back().step = next.first - runs.back().first;
    ++runs.back().cores;
  }
  const auto ascending = [](const CoreRun& a, const CoreRun& b) {
    return a.first + (a.cores - 1) * a.step < b.first;
  };
  const bool plain = std::ranges::all_of(
                         runs, [](int threads) { return threads == 1; }, &CoreRun::threads) &&
                     std::ranges::adjacent_find(runs, std::not_fn(ascending)) == runs.end();
  return plain ? std::vector<CoreRun>{} : runs;
}

}  // namespace hpclaunch
