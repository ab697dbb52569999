#include <array>

#include "dialect/rows.h"

namespace hpclaunch {

namespace {

// mpiexec is a name that five launchers share: whoever finds one asks identify_launcher.
constexpr std::array<std::string_view, 3> kHydraPrograms = {"mpiexec.hydra", "mpiexec.mpich",
                                                            "mpiexec"};

constexpr std::array kDialects = {
    Dialect{"hydra", kHydraPrograms, hydra::traits, hydra::render},
    Dialect{"local", {}, local::traits, local::render},
};

}  // namespace

std::span<const Dialect> dialects() { return kDialects; }

const Dialect* find_dialect(std::string_view name) {
  for (const Dialect& dialect : kDialects)
    if (dialect.name == name) return &dialect;
  return nullptr;
}

}  // namespace hpclaunch
