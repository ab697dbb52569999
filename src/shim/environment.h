#pragma once
// The environment that comes in and the one that goes out.

#include "task.h"

namespace hpclaunch::shim {

constexpr Text kChannel = "HPCLAUNCH_CHANNEL";  ///< where hpclaunch listens
constexpr int kMaxEnvironment = 16384;          // entries handed to the program

/// True when `entry` is "NAME=...".
constexpr bool has_name(const char* entry, Text name) {
  for (int i = 0; i < name.size; ++i) {
    if (entry[i] == '\0' || entry[i] != name.at[i]) return false;
  }
  return entry[name.size] == '=';
}

/// The value of a variable, of its first entry as getenv(3) has it; `at` is null when it is not
/// set.
constexpr Text find(const char* const* environment, Text name) {
  for (; *environment != nullptr; ++environment) {
    if (has_name(*environment, name)) return Text(*environment).from(name.size + 1);
  }
  return {};
}

/// Has `entry` one of the names in "A/B/C"?
constexpr bool is_listed(const char* entry, Text names) {
  bool listed = false;
  each_piece(names, [&](Text name) { listed |= has_name(entry, name); });
  return listed;
}

/// The environment for the program: `old` without what is meant for the shim, without what must be
/// absent and without any entry of a name that is set, all else as it was and in its order, then what is
/// set. False: `out` has no room.
constexpr bool compose(char* const* old, const Task& task, char** out, int capacity) {
  int total = 0;
  for (; *old != nullptr; ++old) {
    bool keep = !has_name(*old, "HPCLAUNCH_PLAN") && !has_name(*old, kChannel) &&
                !is_listed(*old, task.absent);
    for (int i = 0; i < task.count && keep; ++i) {
      keep = !has_name(*old, {task.set[i], task.name_size[i]});
    }
    if (!keep) continue;
    if (total + 1 >= capacity) return false;
    out[total++] = *old;
  }
  for (int i = 0; i < task.count; ++i) {
    bool last = true;  // a name that the plan has twice: the later one holds
    for (int k = i + 1; k < task.count && last; ++k) {
      last = !has_name(task.set[k], {task.set[i], task.name_size[i]});
    }
    if (!last) continue;
    if (total + 1 >= capacity) return false;
    out[total++] = task.set[i];
  }
  out[total] = nullptr;
  return true;
}

/// 0 when one of the variables holds 0, the number of another one that does, -1 when none holds any.
constexpr int number_in(const char* const* environment, const Text* names, int count) {
  int found = -1;
  for (int i = 0; i < count && found != 0; ++i) {
    int number = 0;
    const Text value = find(environment, names[i]);
    if (value.at != nullptr && is_number(value, number)) found = number;
  }
  return found;
}

/// Shall this rank report a fault that all ranks share? Rank 0 does. Where the plan does not say what a rank is
/// called, the first rank of each node does by launchers' usual variables, because other nodes may have got the
/// plan; everybody where there are none.
constexpr bool reports(const char* const* environment, Text rank_name) {
  if (rank_name.size > 0) {
    const int rank = number_in(environment, &rank_name, 1);
    if (rank >= 0) return rank == 0;
  }
  constexpr Text kLocal[] = {
      "MPI_LOCALRANKID",         "SLURM_LOCALID",      "OMPI_COMM_WORLD_LOCAL_RANK",
      "PALS_LOCAL_RANKID",       "FLUX_TASK_LOCAL_ID", "JSM_NAMESPACE_LOCAL_RANK",
      "HPCLAUNCH_SSH_LOCAL_RANK"};
  const int local = number_in(environment, kLocal, 7);
  if (local >= 0) return local == 0;
  constexpr Text kRank[] = {"PMI_RANK",       "SLURM_PROCID", "OMPI_COMM_WORLD_RANK", "PALS_RANKID",
                            "FLUX_TASK_RANK", "PMIX_RANK",    "HPCLAUNCH_SSH_RANK"};
  return number_in(environment, kRank, 7) <= 0;
}

}  // namespace hpclaunch::shim
