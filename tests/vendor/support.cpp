#include "vendor/support.h"

#include <unistd.h>

#include <algorithm>
#include <cstdlib>
#include <filesystem>
#include <fstream>
#include <iterator>

#include "support/catch.h"

namespace hpclaunch::test {

Behaviour::Behaviour(const std::map<std::string, std::string>& variables) {
  for (const auto& [name, value] : variables) {
    setenv(name.c_str(), value.c_str(), 1);
    names_.push_back(name);
  }
}

Behaviour::~Behaviour() {
  for (const std::string& name : names_) unsetenv(name.c_str());
}

RuntimeFolder::RuntimeFolder() : path_("/tmp/hpclaunch-runtime-XXXXXX") {
  REQUIRE(mkdtemp(path_.data()) != nullptr);
  setenv("XDG_RUNTIME_DIR", path_.c_str(), 1);
}

RuntimeFolder::~RuntimeFolder() {
  std::filesystem::remove_all(path_);
  unsetenv("XDG_RUNTIME_DIR");
}

Topology machine(const std::string& vendor, const std::vector<std::string>& addresses) {
  Topology topology;
  for (int i = 0; i < 8; ++i) {
    Core core;
    core.package = core.numa = i / 4;
    core.pus.add(i);
    topology.allowed.add(i);
    topology.cores.push_back(core);
  }
  for (int i = 0; i < 2; ++i) {
    const CpuSet pus = *CpuSet::parse(i == 0 ? "0-3" : "4-7");
    topology.packages.push_back({i, "Fake", pus});
    topology.numa_nodes.push_back({i, 1U << 30, pus});
  }
  for (const std::string& address : addresses) {
    Device device;
    device.index = static_cast<int>(topology.devices.size());
    device.vendor = vendor;
    device.pci = address;
    device.model = "from /sys";
    device.numa = device.index % 2;
    device.pus = topology.numa_nodes[static_cast<std::size_t>(device.numa)].pus;
    topology.devices.push_back(device);
  }
  return topology;
}

std::string Enriched::said() const {
  std::string all;
  for (const Diagnostic& note : notes) all += note.message + '\n';
  return all;
}

Enriched enriched(const Topology& base, const Libraries& which,
                  const std::map<std::string, std::string>& behaviour) {
  REQUIRE(check_topology(base));
  const Behaviour set(behaviour);
  const RuntimeFolder forgetful;
  Enriched result{base, {}};
  result.notes = probe::vendor::enrich(result.topology, which);
  const Status lawful = check_topology(result.topology);
  if (!lawful) FAIL_CHECK(lawful.error().message);
  return result;
}

Without::Without(const std::string& library, const std::vector<std::string>& names)
    : path_("/tmp/hpclaunch-fake-XXXXXX") {
  std::ifstream in(library, std::ios::binary);
  std::string bytes{std::istreambuf_iterator<char>(in), std::istreambuf_iterator<char>()};
  REQUIRE_FALSE(bytes.empty());
  for (const std::string& name : names) {
    const std::string whole = '\0' + name + '\0';
    std::size_t at = bytes.find(whole);
    REQUIRE(at != std::string::npos);
    for (; at != std::string::npos; at = bytes.find(whole, at + 1)) bytes[at + 1] = '_';
  }
  const int file = mkstemp(path_.data());
  REQUIRE(file >= 0);
  REQUIRE(write(file, bytes.data(), bytes.size()) == static_cast<ssize_t>(bytes.size()));
  close(file);
}

Without::~Without() { unlink(path_.c_str()); }

namespace {

bool has(const std::vector<std::string>& names, const std::string& name) {
  return std::find(names.begin(), names.end(), name) != names.end();
}

// "nvmlInit_v2" is asked for as "nvmlInit".
std::string plain(const std::string& name) {
  const std::size_t end = name.rfind("_v");
  return end != std::string::npos && end + 3 == name.size() ? name.substr(0, end) : name;
}

/// The library gave nothing usable, and a diagnostic says so.
void check_unchanged(const Enriched& got, const Topology& base, const std::string& why) {
  CHECK(got.topology == base);
  REQUIRE(got.notes.size() == 1);
  CHECK_THAT(got.notes[0].message, ContainsSubstring(why));
}

void try_broken(const Case& vendor, const Enriched& whole, const std::string& name,
                const std::string& how, double limit, const std::string& why) {
  Libraries which = vendor.libraries(vendor.file);
  which.limit_seconds = limit;
  const Enriched got = enriched(vendor.base, which, {{how, name}});
  if (got.notes.size() == whole.notes.size() && got.topology == whole.topology)
    return;  // not called
  check_unchanged(got, vendor.base, why);
}

}  // namespace

void try_each_call(const Case& vendor, const std::vector<std::string>& required,
                   const std::vector<std::string>& spare) {
  const Enriched whole = enriched(vendor.base, vendor.libraries(vendor.file));
  REQUIRE(whole.said() == "");
  REQUIRE_FALSE(whole.topology == vendor.base);
  int broken = 0;
  for (const std::string& name : vendor.names) {
    INFO(name);
    const Enriched failed =
        enriched(vendor.base, vendor.libraries(vendor.file), {{"FAKE_FAIL", name}});
    INFO(failed.said());
    CHECK(failed.topology.devices.size() == vendor.base.devices.size());
    if (failed.topology == whole.topology && failed.notes.empty()) {
      CHECK(has(spare, name));
    } else {
      CHECK_THAT(failed.said(), ContainsSubstring(plain(name)));
      CHECK((failed.topology == vendor.base) == has(required, name));
      ++broken;
    }
    const Without without(vendor.file, {name});
    const Enriched absent = enriched(vendor.base, vendor.libraries(without.path()));
    CHECK(absent.topology.devices.size() == vendor.base.devices.size());
    if (has(spare, name)) {
      CHECK(absent.topology == whole.topology);
      CHECK(absent.said() == "");
    } else if (has(required, name)) {
      check_unchanged(absent, vendor.base, "functions that list devices are missing");
    } else {
      CHECK(absent.said() == "");
    }
    try_broken(vendor, whole, name, "FAKE_CRASH", kPatience, "SIGSEGV");
    try_broken(vendor, whole, name, "FAKE_EXIT", kPatience, "without a result");
    try_broken(vendor, whole, name, "FAKE_HANG", 0.1, "longer than");
  }
  CHECK(broken > 0);
}

}  // namespace hpclaunch::test
