// Topologies: what is read, written and read again is the same, as JSON and as bytes for another process.
#include "hpclaunch/topology.h"

#include "fuzz/expect.h"

using namespace hpclaunch;
using fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string_view text = fuzz::text_of(data, size);
  static_cast<void>(unpack_topology(text));
  const Result<Topology> node = topology_from_json(text, "node.json");
  if (!node) return expect(node.error().where.has_value(), "an error has a place"), 0;
  const std::string written = topology_to_json(*node);
  const Result<Topology> again = topology_from_json(written, "node.json");
  expect(again.has_value(), "what is written is accepted", again ? "" : again.error().message);
  expect(*again == *node, "a topology reads back from its JSON", written);

  const std::string bytes = pack_topology(*node);
  const Result<Topology> unpacked = unpack_topology(bytes);
  expect(unpacked && *unpacked == *node, "a topology reads back from its bytes", written);
  const std::size_t cut = size % bytes.size();
  expect(!unpack_topology(bytes.substr(0, cut)), "bytes that are cut off are refused");
  return 0;
}
