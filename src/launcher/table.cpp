#include <array>

#include "launcher/rows.h"

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

constexpr std::array kLaunchers = {
    Launcher{"flux", kFluxPrograms, flux::traits, flux::render},
    Launcher{"hydra", kHydraPrograms, hydra::traits, hydra::render, true},
    Launcher{"intelmpi", kIntelPrograms, intelmpi::traits, intelmpi::render, true},
    Launcher{"jsrun", kJsrunPrograms, jsrun::traits, jsrun::render},
    Launcher{"local", {}, local::traits, local::render},
    Launcher{"openmpi", kOpenMpiPrograms, openmpi::traits, openmpi::render, true, true},
    Launcher{"pals", kPalsPrograms, pals::traits, pals::render, true},
    Launcher{"prrte", kPrrtePrograms, prrte::traits, prrte::render, true},
    Launcher{"slurm", kSlurmPrograms, slurm::traits, slurm::render},
};

}  // namespace

std::span<const Launcher> launchers() { return kLaunchers; }

const Launcher* find_launcher(std::string_view name) {
  for (const Launcher& launcher : kLaunchers)
    if (launcher.name == name) return &launcher;
  return nullptr;
}

}  // namespace hpclaunch
