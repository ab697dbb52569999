// A topology as bytes for a pipe between two processes of one program: numbers of eight bytes, lengths before texts.
#include <algorithm>
#include <bit>
#include <cstring>

#include "hpclaunch/topology.h"
#include "model/topology_fields.h"

namespace hpclaunch {
namespace {

using Words = std::array<std::uint64_t, CpuSet::kCapacity / 64>;

using topology_fields::fields;

void fields(topology_fields::Same<Topology> auto& all, auto visit) {
  const auto each = [&](auto&... members) { (visit("", members, nullptr), ...); };
  each(all.hostname, all.packages, all.numa_nodes, all.caches, all.cores, all.devices, all.nics,
       all.links, all.allowed, all.no_devices);
}

struct Packer {
  std::string bytes;

  void add(std::uint64_t number) {
    bytes.append(reinterpret_cast<const char*>(&number), sizeof number);
  }
  void add(int number) { add(static_cast<std::uint64_t>(number)); }
  void add(bool truth) { add(truth ? 1 : 0); }
  void add(const std::string& text) {
    add(text.size());
    bytes += text;
  }
  void add(const CpuSet& pus) {
    const auto words = std::bit_cast<Words>(pus);
    const int count = pus.last() / 64 + 1;
    add(count);
    for (int i = 0; i < count; ++i) add(words[static_cast<std::size_t>(i)]);
  }
  template <class Part>
  void add(const std::vector<Part>& parts) {
    add(parts.size());
    for (const Part& part : parts) add(part);
  }
  void add(const auto& part) {
    fields(part, [&](const char*, const auto& value, auto) { add(value); });
  }
};

/// After a fault, `good` is false and every value is a default.
struct Unpacker {
  std::string_view bytes;
  bool good = true;

  static constexpr std::uint64_t kMostMembers = 4 * CpuSet::kCapacity;  ///< limits memory

  std::string_view take(std::uint64_t size) {
    good = good && size <= bytes.size();
    const std::string_view taken = bytes.substr(0, good ? size : 0);
    bytes.remove_prefix(taken.size());
    return taken;
  }
  void get(std::uint64_t& number) {
    if (const std::string_view taken = take(sizeof number); good)
      std::memcpy(&number, taken.data(), sizeof number);
  }
  void get(int& number) {
    std::uint64_t wide = 0;
    get(wide);
    number = static_cast<int>(wide);
  }
  void get(bool& truth) { truth = count(1) == 1; }
  std::uint64_t count(std::uint64_t most) {
    std::uint64_t number = 0;
    get(number);
    good = good && number <= most;
    return good ? number : 0;
  }
  void get(std::string& text) { text = take(count(bytes.size())); }
  void get(CpuSet& pus) {
    Words words{};
    const std::uint64_t size = count(words.size());
    for (std::uint64_t i = 0; i < size; ++i) get(words[i]);
    pus = std::bit_cast<CpuSet>(words);
  }
  template <class Part>
  void get(std::vector<Part>& parts) {
    for (std::uint64_t left = count(kMostMembers); left > 0 && good; --left)
      get(parts.emplace_back());
  }
  void get(auto& part) {
    fields(part, [&](const char*, auto& value, auto) { get(value); });
  }
};

}  // namespace

std::string pack_topology(const Topology& topology) {
  Packer packer;
  packer.add(topology);
  return std::move(packer.bytes);
}

Result<Topology> unpack_topology(std::string_view bytes) {
  Topology topology;
  Unpacker unpacker{bytes};
  unpacker.get(topology);
  if (!unpacker.good || !unpacker.bytes.empty())
    return Error{ErrorKind::system, "malformed topology bytes"};
  if (const Status good = check_topology(topology); !good) return good.error();
  return topology;
}

}  // namespace hpclaunch
