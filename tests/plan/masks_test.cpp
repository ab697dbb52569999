// Masks by the rules of those who read them.
#include "plan/devices/masks.h"

#include <string>
#include <vector>

#include "plan/jobs.h"
#include "support/catch.h"

using namespace hpclaunch;

TEST_CASE("CUDA: lists are read as PyTorch's device_count() reads them", "[masks]") {
  // Numbers: what its test_env_var_parsing says of lists like these, where the node has enough.
  struct Numbers {
    const char* list;
    std::vector<int> devices;
    const char* stopped;
    const char* repeated;
  };
  std::vector<Slot> from;
  for (int d = 0; d < 8; ++d) from.push_back({d, d, -1, std::to_string(d)});
  Topology node = test::even_machine(2, 4, 2);
  test::add_devices({0, 1, 2, 3, 4, 5, 6, 7}, "nvidia", node);
  const auto devices = [](const Left& read) {
    std::vector<int> all;
    for (const Slot& slot : read.slots) all.push_back(slot.device);
    return all;
  };
  for (const Numbers& row : {
           Numbers{"1gpu2,2card", {1, 2}, "", ""},
           Numbers{"0, 1, 2, -1, 5", {0, 1, 2}, "", ""},
           Numbers{"0, 1, 2, 1", {}, "", "1"},
           Numbers{"4, +3, -0, 5", {4, 3, 0, 5}, "", ""},
           Numbers{"first,2,3", {}, "first", ""},
           Numbers{"4,3,last,0", {4, 3}, "last", ""},
           // what follows from the same rules
           Numbers{"0,0", {}, "", "0"},
           Numbers{"1,01", {}, "", "1"},
           Numbers{"-0,0", {}, "", "0"},
           Numbers{"0,1,-1,1", {0, 1}, "", ""},
           Numbers{"0,9,1", {0}, "9", ""},
           Numbers{"0,9,1,9", {}, "", "9"},
           Numbers{"0,99999999999999999999", {0}, "2147483647", ""},
           Numbers{"1,GPU-3", {1}, "GPU-3", ""},
           Numbers{"0,,1", {0}, "", ""},
           Numbers{"0,+", {0}, "+", ""},
           Numbers{"0x2", {0}, "", ""},
           Numbers{"gpu-3", {}, "gpu-3", ""},
           Numbers{" GPU-3", {}, " GPU-3", ""},
           Numbers{"", {}, "", ""},
           Numbers{"-1", {}, "", ""},
       }) {
    INFO(row.list);
    const Left read = read_mask(node, from, row.list, MaskSyntax::cuda);
    CHECK(devices(read) == row.devices);
    CHECK(read.stopped == row.stopped);
    CHECK(read.repeated == row.repeated);
  }
  // Names: what its test_partial_uuid_resolver says of beginnings.
  const std::vector<std::string> uuids = {"GPU-a0c1", "GPU-a7d2", "GPU-b401", "GPU-bcc3",
                                          "GPU-7710", "GPU-5a5e", "GPU-b5f6", "GPU-1e23"};
  for (std::size_t d = 0; d < uuids.size(); ++d) node.devices[d].uuid = uuids[d];
  for (const Numbers& row : {
           Numbers{"GPU-a7d2", {1}, "", ""},
           Numbers{"GPU-b4,GPU-a7d2", {2, 1}, "", ""},
           Numbers{"GPU-a7d2,GPU-1,GPU-5a", {1, 7, 5}, "", ""},
           Numbers{"GPU-123,GPU-a7d2", {}, "GPU-123", ""},
           Numbers{"GPU-a7d2,GPU-123,GPU-5a", {1}, "GPU-123", ""},
           Numbers{"GPU-a7d2,GPU-b,GPU-5a", {1}, "GPU-b", ""},
           Numbers{"GPU-a7d2,GPU-5a,GPU-a7", {}, "", "GPU-a7"},
           Numbers{"GPU-7,2", {4}, "2", ""},
           Numbers{"GPU-7, GPU-5a", {4}, " GPU-5a", ""},
           Numbers{"GPU-7,MIG-1", {4}, "MIG-1", ""},
           Numbers{"GPU-7,GPU-7", {}, "", "GPU-7"},
           Numbers{"GPU-7,GPU-123,GPU-7", {}, "", "GPU-7"},
           Numbers{"GPU-7,GPU-123,GPU-77", {4}, "GPU-123", ""},
           Numbers{"MIG-1,GPU-b", {-1}, "GPU-b", ""},
       }) {
    INFO(row.list);
    const Left read = read_mask(node, from, row.list, MaskSyntax::cuda);
    CHECK(devices(read) == row.devices);
    CHECK(read.stopped == row.stopped);
    CHECK(read.repeated == row.repeated);
  }
  // PyTorch heeds the case, so ranks get a name that it finds.
  CHECK(read_mask(node, from, "GPU-BC", MaskSyntax::cuda).slots.at(0).entry == uuids[3]);
  CHECK(read_mask(node, from, "GPU-bc", MaskSyntax::cuda).slots.at(0).entry == "GPU-bc");
}
