// /dev/shm of a container: 64 MB unless somebody asked for more, which NCCL and workers of a DataLoader fill at once.
//
// Source: opencontainers/runtime-tools and containerd, default mounts ("size=65536k"); proc(5), /proc/self/mounts.
#include <fmt/format.h>

#include <optional>

#include "hpclaunch/text.h"
#include "world/node.h"

namespace hpclaunch::job {

namespace {

constexpr std::size_t kMostOfMounts = 1u << 20;
constexpr unsigned long long kKiB = 1024;
constexpr unsigned long long kTooSmall = 128 * kKiB * kKiB;

// "rw,nosuid,size=65536k" in bytes; nullopt: no size, which is half of the memory.
std::optional<unsigned long long> size_in(std::string_view options) {
  for (const std::string_view option : split(options, ',')) {
    constexpr std::string_view kSize = "size=";
    if (!option.starts_with(kSize) || !option.ends_with('k')) continue;
    const auto number = parse_natural(option.substr(kSize.size(), option.size() - kSize.size() - 1),
                                      1'000'000'000'000L);
    if (number) return static_cast<unsigned long long>(*number) * kKiB;
  }
  return std::nullopt;
}

}  // namespace

void check_shared_memory(const World& world, Diagnostics& diagnostics) {
  const Result<std::string> mounts = world.read_file("/proc/self/mounts", kMostOfMounts);
  if (!mounts) return;
  std::optional<unsigned long long> size;  // of the last mount, which hides those before
  for (const std::string_view line : split(*mounts, '\n')) {
    const std::vector<std::string_view> fields = split(line, ' ');
    if (fields.size() > 3 && fields[1] == "/dev/shm") size = size_in(fields[3]);
  }
  if (!size || *size > kTooSmall) return;
  diagnostics.push_back(
      {"shm-small", Severity::warning,
       fmt::format("/dev/shm has {}: NCCL and workers of a DataLoader end there with a bus error",
                   human_bytes(*size)),
       "in a pod: an emptyDir with medium: Memory, mounted on /dev/shm; in a container: --shm-size "
       "8g"});
}

}  // namespace hpclaunch::job
