#include <algorithm>

#include "hpclaunch/scheduler.h"

namespace hpclaunch {

namespace {

constexpr DirectiveOptions kSystems[] = {
    {"slurm", "#SBATCH", "sbatch", "sbatch plug-ins"},
    {"pbs", "#PBS", "qsub of pbs"},
    {"lsf", "#BSUB", "bsub"},
    {"flux", "#FLUX:|#flux:|# FLUX:|# flux:", "flux batch"},
    {"cobalt", "#COBALT|#Cobalt", "qsub of cobalt"},
    {"sge", "#$", "qsub of sge"},
};

}  // namespace

std::span<const DirectiveOptions> directive_options() { return kSystems; }

const DirectiveOptions* find_directive_options(std::string_view name) {
  const auto found = std::ranges::find(kSystems, name, &DirectiveOptions::name);
  return found == std::end(kSystems) ? nullptr : &*found;
}

}  // namespace hpclaunch
