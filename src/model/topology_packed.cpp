// A topology as bytes for a pipe between two processes of one program: numbers of eight bytes, lengths before texts.
#include <algorithm>
#include <array>
#include <cstring>

#include "hpclaunch/topology.h"
#include "model/topology_fields.h"

namespace hpclaunch {
namespace {

/// Writes values behind `bytes`, or reads them from its beginning. After a fault, `good` is false.
struct Pipe {
  const bool reads;
  std::string bytes = {};
  std::size_t at = 0;  ///< where reading has come
  bool good = true;

  static constexpr std::uint64_t kMostMembers = 4 * CpuSet::kCapacity;  ///< limits memory

  void pass(void* data, std::size_t size) {
    if (!reads) bytes.append(static_cast<const char*>(data), size);
    if (!reads || size == 0) return;
    good = good && size <= bytes.size() - at;
    if (!good) return;
    std::memcpy(data, bytes.data() + at, size);
    at += size;
  }
  void pass(std::uint64_t& number) { pass(&number, sizeof number); }
  void pass(int& number) { pass(&number, sizeof number); }
  /// How many follow, up to `most`; 0 after a fault.
  std::uint64_t pass_count(std::uint64_t count, std::uint64_t most) {
    pass(count);
    good = good && count <= most;
    return good ? count : 0;
  }
  void pass(bool& truth) { truth = pass_count(truth ? 1 : 0, 1) == 1; }
  void pass(std::string& text) {
    text.resize(pass_count(text.size(), reads ? bytes.size() - at : text.size()));
    pass(text.data(), text.size());
  }
  void pass(CpuSet& pus) {
    std::array<std::uint64_t, CpuSet::kCapacity / 64> words{};
    std::ranges::copy(pus.words(), words.begin());
    const std::uint64_t used = pass_count(pus.words().size(), words.size());
    pass(words.data(), used * sizeof words[0]);
    pus = CpuSet::of_words({words.data(), used});
  }
  template <class Part>
  void pass(std::vector<Part>& parts) {
    const std::uint64_t count = pass_count(parts.size(), kMostMembers);
    for (std::size_t i = 0; i < count && good; ++i) pass(reads ? parts.emplace_back() : parts[i]);
  }
  void pass(auto& part) {
    topology_fields::fields(part, [&](const char*, auto& value, auto) { pass(value); });
  }
  void pass(Topology& all) {
    const auto each = [&](auto&... members) { (pass(members), ...); };
    each(all.hostname, all.packages, all.numa_nodes, all.caches, all.cores, all.devices, all.nics,
         all.links, all.allowed, all.no_devices);
  }
};

}  // namespace

std::string pack_topology(const Topology& topology) {
  Pipe pipe{false};
  Topology copy = topology;  // one list of fields for both directions
  pipe.pass(copy);
  return std::move(pipe.bytes);
}

Result<Topology> unpack_topology(std::string_view bytes) {
  Topology topology;
  Pipe pipe{true, std::string(bytes)};
  pipe.pass(topology);
  if (!pipe.good || pipe.at != bytes.size())
    return Error{ErrorKind::system, "malformed topology bytes"};
  if (const Status good = check_topology(topology); !good) return good.error();
  return topology;
}

}  // namespace hpclaunch
