// Resource limits of this process, which the ranks inherit from a shell or the batch system's daemon.
#include <fmt/format.h>
#include <sys/resource.h>

#include "doctor/examination.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

struct Limit {
  __rlimit_resource resource;
  const char* title;
  rlim_t least;
  Severity severity;
  const char* id;  // "" for one that is shown only
  const char* effect;
  const char* raise;  // where the hard limit permits more
  const char* ask;    // where it does not
  bool in_bytes = true;
};

std::string value_text(const Limit& limit, rlim_t value) {
  if (value == RLIM_INFINITY) return "unlimited";
  return limit.in_bytes && value != 0 ? human_bytes(value) : std::to_string(value);
}

}  // namespace

void examine_limits(Examination& doctor, bool has_fabric) {
  const Limit limits[] = {
      {RLIMIT_MEMLOCK, "locked memory", has_fabric ? 1ull << 30 : (64u << 10) + 1,
       has_fabric ? Severity::error : Severity::warning, "memlock", "RDMA cannot register buffers",
       "ulimit -l hard",
       "ask the site for \"memlock unlimited\" on compute nodes, also for the batch system's "
       "daemon"},
      {RLIMIT_NOFILE, "open files", 1024, Severity::warning, "open-files",
       "workers of DataLoader and NCCL need more", "ulimit -n hard",
       "ask the site for a larger nofile", false},
      {RLIMIT_AS, "addresses", RLIM_INFINITY, Severity::warning, "address-space",
       "CUDA and ROCm reserve more than a node's memory", "ulimit -v hard",
       "run on a compute node: login nodes limit it"},
      {RLIMIT_NPROC, "processes and threads", 512, Severity::warning, "processes",
       "ranks and their threads need more", "ulimit -u hard", "ask the site for a larger nproc",
       false},
      // 2 MiB is what threads get where the limit is "unlimited".
      {RLIMIT_STACK, "stack", 2u << 20, Severity::warning, "stack",
       "threads have stacks of that size: OpenMP and Python crash", "ulimit -s hard",
       "ask the site for a larger stack"},
      {RLIMIT_CORE, "core", 0, Severity::note, "", "", "", ""}};
  std::string all;
  for (const Limit& limit : limits) {
    rlimit found{};
    getrlimit(limit.resource, &found);
    const std::string value = value_text(limit, found.rlim_cur);
    all += fmt::format("{}{} {}", all.empty() ? "" : ", ", limit.title, value);
    if (found.rlim_cur < limit.least)
      doctor.fault("limits", limit.severity, limit.id,
                   fmt::format("{} limited to {}: {}", limit.title, value, limit.effect),
                   found.rlim_max > found.rlim_cur ? limit.raise : limit.ask);
  }
  doctor.sound("limits", all);
}

}  // namespace hpclaunch::job
