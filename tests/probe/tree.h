#pragma once
// A /sys and /proc made up, for what the probe reads from them.
#include <unistd.h>

#include <filesystem>
#include <fstream>
#include <string>
#include <vector>

#include "hpclaunch/probe.h"
#include "probe/machine.h"
#include "probe/sysfs.h"
#include "support/catch.h"

namespace hpclaunch::test {

namespace fs = std::filesystem;

/// A /sys and /proc of our own, gone when the test is.
class Tree {
 public:
  Tree() {
    const bool in_memory = access("/dev/shm", W_OK) == 0;  // thousands of files
    const fs::path above = in_memory ? fs::path("/dev/shm") : fs::temp_directory_path();
    std::string name = (above / "hpclaunch-sysfs-XXXXXX").string();
    REQUIRE(mkdtemp(name.data()) != nullptr);
    root_ = name;
  }
  ~Tree() { fs::remove_all(root_); }
  Tree(const Tree&) = delete;
  Tree& operator=(const Tree&) = delete;

  std::string root() const { return root_.string(); }

  void file(const std::string& path, const std::string& text) const {
    fs::create_directories((root_ / path).parent_path());
    std::ofstream(root_ / path, std::ios::binary) << text << "\n";
  }
  /// A link that leads to `target` in this tree, as the kernel's do: by way of "..".
  void link(const std::string& path, const std::string& target) const {
    fs::create_directories((root_ / path).parent_path());
    fs::create_directories(root_ / target);
    fs::create_symlink(fs::relative(root_ / target, (root_ / path).parent_path()), root_ / path);
  }

  /// A PCI function; where it is in the tree. `way`: the folders above it, its own bus by default.
  std::string pci(const std::string& address, const std::string& class_id,
                  const std::string& vendor, const std::string& device, int numa = -1,
                  const std::string& cpus = "", const std::string& driver = "",
                  const std::string& way = "") const {
    const std::string folder =
        "sys/devices/" + (way.empty() ? "pci" + address.substr(0, 7) : way) + "/" + address;
    file(folder + "/class", "0x" + class_id);
    file(folder + "/vendor", "0x" + vendor);
    file(folder + "/device", "0x" + device);
    file(folder + "/numa_node", std::to_string(numa));
    file(folder + "/local_cpulist", cpus);
    if (!driver.empty()) link(folder + "/driver", "sys/bus/pci/drivers/" + driver);
    link("sys/bus/pci/devices/" + address, folder);
    return folder;
  }
  /// A network interface of a device in the tree.
  std::string net(const std::string& device, const std::string& name, const std::string& type = "1",
                  const std::string& state = "up", const std::string& speed = "") const {
    const std::string folder = device + "/net/" + name;
    file(folder + "/type", type);
    file(folder + "/operstate", state);
    if (!speed.empty()) file(folder + "/speed", speed);
    link(folder + "/device", device);
    link("sys/class/net/" + name, folder);
    return folder;
  }
  /// An adapter of verbs with one port.
  void verbs(const std::string& device, const std::string& name, const std::string& layer,
             const std::string& state = "4: ACTIVE",
             const std::string& rate = "100 Gb/sec (4X EDR)") const {
    const std::string folder = device + "/infiniband/" + name;
    file(folder + "/ports/1/link_layer", layer);
    file(folder + "/ports/1/state", state);
    file(folder + "/ports/1/rate", rate);
    link(folder + "/device", device);
    link("sys/class/infiniband/" + name, folder);
  }
  void kfd(int node, const std::string& properties, const std::string& memory = "") const {
    const std::string folder = "sys/class/kfd/kfd/topology/nodes/" + std::to_string(node);
    file(folder + "/properties", properties);
    if (!memory.empty()) file(folder + "/mem_banks/0/properties", memory);
  }

 private:
  fs::path root_;
};

/// The processors of a recorded machine without its devices.
inline Topology bare(const std::string& name) {
  Topology topology = machine(name);
  topology.devices.clear();
  topology.nics.clear();
  topology.links.clear();
  return topology;
}

inline Topology probed(const Tree& tree, const std::string& name,
                       const std::vector<Interface>& addresses = {}) {
  Topology topology = bare(name);
  probe::add_devices(tree.root(), topology);
  probe::add_nics(tree.root(), addresses, topology);
  return sound(topology);
}

/// "kind name fabric state" of each.
inline std::vector<std::string> names(const Topology& topology) {
  std::vector<std::string> all;
  for (const Nic& nic : topology.nics)
    all.push_back(nic.kind + " " + nic.name + " " + nic.fabric + " " + nic.state);
  return all;
}

}  // namespace hpclaunch::test
