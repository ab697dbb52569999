// Sources: those of the launchers, named at the top of their files.
#include "launcher/flag_table.h"

#include <array>

namespace hpclaunch {

namespace {

using enum Decides;

constexpr Flag kPals[] = {{"n", ranks},
                          {"np", ranks},
                          {"ppn", per_node},
                          {"hosts", hosts},
                          {"host", hosts},
                          {"hostlist", hosts},
                          {"hostfile", host_file},
                          {"f", host_file},
                          {"cpu-bind", binding},
                          {"d", binding},
                          {"depth", binding},
                          {"gpu-bind", devices, 1, "none"},
                          {"envnone", no_env, 0},
                          {"genvnone", no_env, 0},
                          {"envlist", some_env},
                          {"genvlist", some_env},
                          {"env", one_env},
                          {"genv", one_env},
                          {"no-abort-on-failure", failure, 0}};

constexpr Flag kSlurm[] = {{"--ntasks", ranks},
                           {"-n", ranks},
                           {"--ntasks-per-node", per_node},
                           {"--nodes", nodes},
                           {"-N", nodes},
                           {"--nodelist", hosts},
                           {"-w", hosts},
                           {"--nodefile", host_file},
                           {"-F", host_file},
                           {"--exclude", host_file},
                           {"-x", host_file},
                           {"--output", errors},
                           {"-o", errors},
                           {"--error", errors},
                           {"-e", errors},
                           {"--relative", order},
                           {"-r", order},
                           {"--cpu-bind", binding},
                           {"--cpu_bind", binding},
                           {"--cpus-per-task", step},
                           {"-c", step},
                           {"--exact", step, 0},
                           {"--exclusive", step, 0},
                           {"--hint", step},
                           {"--threads-per-core", step},
                           {"--distribution", order, 1, "block"},
                           {"-m", order, 1, "block"},
                           {"--gpu-bind", devices, 1, "none"},
                           {"--tres-bind", devices, 1, "none"},
                           {"--gpus-per-task", devices},
                           {"--gpus", nothing},
                           {"--gpus-per-node", devices},
                           {"--gres", devices},
                           {"--export", some_env},
                           {"--kill-on-bad-exit", failure, 1, "1"},
                           {"-K", failure, 1, "1"},
                           {"--wait", failure, 1, "0"},
                           {"-W", failure, 1, "0"}};

constexpr Flag kFlux[] = {{"--ntasks", ranks},
                          {"-n", ranks},
                          {"--tasks-per-node", per_node},
                          {"--nodes", nodes},
                          {"-N", nodes},
                          {"--requires", host_file},
                          {"--taskmap", order, 1, "block"},
                          {"--env-remove", no_env},
                          {"--env", one_env},
                          {"--cores-per-task", step},
                          {"-c", step},
                          {"-o", binding, 1, {}, "cpu-affinity"},
                          {"--setopt", binding, 1, {}, "cpu-affinity"},
                          {"-o", devices, 1, "off", "gpu-affinity"},
                          {"--setopt", devices, 1, "off", "gpu-affinity"},
                          {"-o", failure, 1, "none", "exit-timeout"},
                          {"--setopt", failure, 1, "none", "exit-timeout"}};

// MPICH's mpiexec and Intel's have one ancestor.
constexpr Flag kHydraFamily[] = {{"n", ranks},
                                 {"np", ranks},
                                 {"ppn", per_node},
                                 {"hosts", hosts},
                                 {"host", hosts},
                                 {"f", host_file},
                                 {"hostfile", host_file},
                                 {"machinefile", host_file},
                                 {"genvnone", no_env, 0},
                                 {"envnone", no_env, 0},
                                 {"genvlist", some_env},
                                 {"envlist", some_env},
                                 {"genv", one_env, 2},
                                 {"env", one_env, 2},
                                 {"disable-auto-cleanup", failure, 0},
                                 {"errfile-pattern", errors},
                                 {"errfile", errors}};

constexpr Flag kHydra[] = {{"hostlist", hosts},
                           {"machine", hosts},
                           {"machines", hosts},
                           {"machinelist", hosts},
                           {"skip-launch-node", host_file, 0},
                           {"bind-to", binding},
                           {"map-by", order},
                           {"gpus-per-proc", devices}};

constexpr Flag kIntel[] = {
    {"perhost", per_node}, {"rr", order, 0}, {"machine", host_file}, {"hosts-group", host_file}};

constexpr Flag kOpenMpi[] = {{"n", ranks},
                             {"np", ranks},
                             {"c", ranks},
                             {"N", per_node},
                             {"npernode", per_node},
                             {"host", hosts},
                             {"H", hosts},
                             {"hostfile", host_file},
                             {"machinefile", host_file},
                             {"default-hostfile", host_file},
                             {"nolocal", host_file, 0},
                             {"bind-to", binding},
                             {"bind-to-core", binding, 0},
                             {"bind-to-socket", binding, 0},
                             {"cpu-set", binding},
                             {"map-by", order, 1, "seq"},
                             {"rank-by", order, 1, "slot"},
                             {"rankfile", order},
                             {"rf", order},
                             {"bynode", order, 0},
                             {"pernode", order, 0},
                             {"x", one_env},
                             {"enable-recovery", failure, 0},
                             {"continuous", failure, 0},
                             {"output-filename", errors}};

constexpr Flag kJsrun[] = {{"--np", ranks},
                           {"-p", ranks},
                           {"--tasks_per_rs", per_node},
                           {"-a", per_node},
                           {"--nrs", nodes},
                           {"-n", nodes},
                           {"--rs_per_host", order, 1, "1"},
                           {"-r", order, 1, "1"},
                           {"--erf_input", host_file},
                           {"-U", host_file},
                           {"--cpu_per_rs", step, 1, "ALL_CPUS"},
                           {"-c", step, 1, "ALL_CPUS"},
                           {"--gpu_per_rs", devices, 1, "ALL_GPUS"},
                           {"-g", devices, 1, "ALL_GPUS"},
                           {"--bind", binding},
                           {"-b", binding},
                           {"--launch_distribution", order, 1, "packed"},
                           {"-d", order, 1, "packed"},
                           {"--env", one_env},
                           {"-E", one_env},
                           {"--exit_on_error", failure, 1, "1"},
                           {"-X", failure, 1, "1"}};

constexpr std::array kTables = {FlagTable{"flux", false, kFlux},
                                FlagTable{"hydra", true, kHydra, kHydraFamily},
                                FlagTable{"intelmpi", true, kIntel, kHydraFamily},
                                FlagTable{"jsrun", false, kJsrun},
                                FlagTable{"openmpi", true, kOpenMpi},
                                FlagTable{"pals", true, kPals},
                                FlagTable{"prrte", true, kOpenMpi},
                                FlagTable{"slurm", false, kSlurm, {}, "EHOQVXZhklsuv"}};

}  // namespace

const FlagTable* find_flags(std::string_view launcher) {
  for (const FlagTable& table : kTables)
    if (table.launcher == launcher) return &table;
  return nullptr;
}

}  // namespace hpclaunch
