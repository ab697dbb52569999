#include <array>

#include "dialect/rows.h"

namespace hpclaunch {

namespace {

// mpiexec is a name that five launchers share: whoever finds one asks identify_launcher.
constexpr std::array<std::string_view, 3> kHydraPrograms = {"mpiexec.hydra", "mpiexec.mpich",
                                                            "mpiexec"};
constexpr std::array<std::string_view, 3> kIntelPrograms = {"mpiexec.hydra", "mpiexec", "mpirun"};
constexpr std::array<std::string_view, 5> kOpenMpiPrograms = {"mpirun", "mpiexec", "mpirun.openmpi",
                                                              "mpiexec.openmpi", "orterun"};
constexpr std::array<std::string_view, 2> kPalsPrograms = {"mpiexec", "mpirun"};
constexpr std::array<std::string_view, 1> kPrrtePrograms = {"prterun"};
constexpr std::array<std::string_view, 1> kSlurmPrograms = {"srun"};
constexpr std::array<std::string_view, 1> kFluxPrograms = {"flux"};
constexpr std::array<std::string_view, 1> kJsrunPrograms = {"jsrun"};

constexpr std::array kDialects = {
    Dialect{"flux", kFluxPrograms, flux::traits, flux::render},
    Dialect{"hydra", kHydraPrograms, hydra::traits, hydra::render, true},
    Dialect{"intelmpi", kIntelPrograms, intelmpi::traits, intelmpi::render, true},
    Dialect{"jsrun", kJsrunPrograms, jsrun::traits, jsrun::render},
    Dialect{"local", {}, local::traits, local::render},
    Dialect{"openmpi", kOpenMpiPrograms, openmpi::traits, openmpi::render, true, true},
    Dialect{"pals", kPalsPrograms, pals::traits, pals::render, true},
    Dialect{"prrte", kPrrtePrograms, prrte::traits, prrte::render, true},
    Dialect{"slurm", kSlurmPrograms, slurm::traits, slurm::render},
};

}  // namespace

std::span<const Dialect> dialects() { return kDialects; }

const Dialect* find_dialect(std::string_view name) {
  for (const Dialect& dialect : kDialects)
    if (dialect.name == name) return &dialect;
  return nullptr;
}

}  // namespace hpclaunch
