#pragma once
// What the probe's tests ask of a topology.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "hpclaunch/probe.h"
#include "support/catch.h"

namespace hpclaunch::test {

/// `topology`, which must be lawful and survive its own JSON.
inline Topology sound(const Topology& topology) {
  const Status lawful = check_topology(topology);
  INFO((lawful ? "" : lawful.error().message));
  CHECK(lawful);
  CHECK(*topology_from_json(topology_to_json(topology), "x") == topology);
  return topology;
}

/// A file of tests/machines.
inline Topology machine(const std::string& name) {
  constexpr double kPatience = 120;
  const auto got = read_topology(HPCLAUNCH_SOURCE_DIR "/tests/machines/" + name, kPatience);
  INFO(name << ": " << (got ? "" : got.error().message + " " + got.error().hint));
  REQUIRE(got);
  return sound(*got);
}

/// A file that is gone when the test is.
class TemporaryFile {
 public:
  explicit TemporaryFile(const std::string& text)
      : path_(std::filesystem::temp_directory_path() /
              ("hpclaunch-topology-" + std::to_string(getpid()))) {
    std::ofstream(path_, std::ios::binary) << text;
  }
  ~TemporaryFile() { std::filesystem::remove(path_); }
  TemporaryFile(const TemporaryFile&) = delete;
  TemporaryFile& operator=(const TemporaryFile&) = delete;
  std::string path() const { return path_.string(); }

 private:
  std::filesystem::path path_;
};

/// The NUMA node of each device.
inline std::vector<int> nodes(const Topology& topology) {
  std::vector<int> numbers;
  for (const Device& device : topology.devices) numbers.push_back(device.numa);
  return numbers;
}

}  // namespace hpclaunch::test
