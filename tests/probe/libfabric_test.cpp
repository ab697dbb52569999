#include <chrono>
#include <cstdlib>
#include <string>
#include <type_traits>
#include <vector>

#include "hpclaunch/probe.h"
#include "probe/libfabric_abi.h"
#include "probe/live.h"
#include "support/catch.h"

#if __has_include(<rdma/fabric.h>)
#include <rdma/fabric.h>
#endif

using namespace hpclaunch;
namespace ofi = probe::ofi;

namespace {

constexpr double kPatience = 120;

Topology node_with(const std::vector<Nic>& nics) {
  auto got = read_topology(HPCLAUNCH_SOURCE_DIR "/tests/machines/single-pu.xml", kPatience);
  REQUIRE(got);
  got->nics = nics;
  return *got;
}

Nic nic(const std::string& kind, const std::string& name, const std::string& fabric,
        const std::string& pci = "") {
  Nic one;
  one.kind = kind;
  one.name = name;
  one.fabric = fabric;
  one.pci = pci;
  return one;
}

Status asked(Topology& topology, const char* mode, const char* library = FAKE_LIBFABRIC,
             double limit = kPatience) {
  setenv("FAKE_LIBFABRIC", mode, 1);
  return probe::ask_libfabric(topology, library, limit);
}

}  // namespace

#if __has_include(<rdma/fabric.h>)
// The declarations by hand, held against the real ones.
static_assert(std::is_same_v<ofi::GetVersion, decltype(fi_version)>);
static_assert(sizeof(ofi::Info) == sizeof(fi_info));
static_assert(offsetof(ofi::Info, next) == offsetof(fi_info, next));
static_assert(offsetof(ofi::Info, endpoint) == offsetof(fi_info, ep_attr));
static_assert(offsetof(ofi::Info, domain) == offsetof(fi_info, domain_attr));
static_assert(offsetof(ofi::Info, fabric) == offsetof(fi_info, fabric_attr));
static_assert(offsetof(ofi::Info, nic) == offsetof(fi_info, nic));
static_assert(offsetof(ofi::EndpointAttr, type) == offsetof(fi_ep_attr, type));
static_assert(offsetof(ofi::DomainAttr, name) == offsetof(fi_domain_attr, name));
static_assert(offsetof(ofi::FabricAttr, provider) == offsetof(fi_fabric_attr, prov_name));
static_assert(offsetof(ofi::Nic, bus) == offsetof(fid_nic, bus_attr));
static_assert(offsetof(ofi::BusAttr, type) == offsetof(fi_bus_attr, bus_type));
static_assert(offsetof(ofi::BusAttr, pci_bus) ==
              offsetof(fi_bus_attr, attr) + offsetof(fi_pci_attr, bus_id));
static_assert(offsetof(ofi::BusAttr, pci_function) ==
              offsetof(fi_bus_attr, attr) + offsetof(fi_pci_attr, function_id));
static_assert(sizeof(ofi::EndpointAttr::type) == sizeof(fi_ep_attr::type));
static_assert(ofi::kEndpointRdm == static_cast<int>(FI_EP_RDM));
static_assert(ofi::kBusPci == static_cast<int>(FI_BUS_PCI));
static_assert(ofi::kVersion == FI_VERSION(1, 9));
#endif

TEST_CASE("providers are matched by domain, else by PCI address", "[probe][libfabric]") {
  Topology node = node_with({nic("slingshot", "hsn0", "cxi0", "0000:c5:00.0"),
                             nic("infiniband", "ib0", "mlx5_0"), nic("efa", "", "rdmap16s27"),
                             nic("omni-path", "", "hfi1_0", "0000:81:00.0"),
                             nic("infiniband", "ib1", "mlx5_01"), nic("ethernet", "hsn0", "")});
  REQUIRE(asked(node, "all"));
  std::vector<std::string> providers;
  for (const Nic& one : node.nics) providers.push_back(one.provider);
  CHECK(providers == std::vector<std::string>{"cxi", "verbs;ofi_rxm", "efa", "opx", "", ""});
}

TEST_CASE("where there is only Ethernet, libfabric is not asked", "[probe][libfabric]") {
  Topology node = node_with({nic("ethernet", "eth0", "")});
  const Topology before = node;
  CHECK(asked(node, "crash"));
  CHECK(node == before);
}

TEST_CASE("whatever libfabric does, the topology stays", "[probe][libfabric]") {
  Topology node = node_with({nic("slingshot", "hsn0", "cxi0")});
  const Topology before = node;
  const auto refusal = [&](const char* mode, const char* library = FAKE_LIBFABRIC,
                           double limit = kPatience) {
    const Status got = asked(node, mode, library, limit);
    INFO(mode);
    REQUIRE_FALSE(got);
    CHECK(node == before);
    return got.error();
  };
  CHECK(refusal("none").message.rfind("libfabric offers no provider: fi_getinfo returned -61", 0) ==
        0);
  CHECK(refusal("crash").message == "the probe crashed: SIGSEGV");
  CHECK(refusal("hang", FAKE_LIBFABRIC, 0.2).message.find("took longer than 0.2 seconds") !=
        std::string::npos);
  CHECK(refusal("all", "/nonexistent/libfabric.so.1").message.rfind("libfabric not found: ", 0) ==
        0);
  CHECK(refusal("all", FAKE_LIBFABRIC_WITHOUT).message.find("has no fi_getinfo") !=
        std::string::npos);
  CHECK(asked(node, "empty"));
  CHECK(node == before);
}

TEST_CASE("a libfabric has a version, and providers in its order", "[probe][libfabric]") {
  setenv("FAKE_LIBFABRIC", "all", 1);
  const auto offer = libfabric_offer(FAKE_LIBFABRIC, kPatience);
  REQUIRE(offer);
  CHECK(offer->version == "2.5");
  CHECK(offer->providers == std::vector<std::string>{"opx", "cxi", "efa", "verbs", "verbs;ofi_rxm",
                                                     "verbs;ofi_rxd", "tcp;ofi_rxm"});
  const auto missing = libfabric_offer(FAKE_LIBFABRIC_WITHOUT, kPatience);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("has no fi_version") != std::string::npos);
}

TEST_CASE("variables that the installed libfabric reads", "[probe][libfabric]") {
  const auto all = probe::libfabric_parameters(FAKE_LIBFABRIC, kPatience);
  REQUIRE(all);
  REQUIRE(all->size() == 2);
  CHECK(all->front().name == "FI_HPE_LIMIT");
  CHECK(all->front().type == "size");
  CHECK(all->front().help == "Bytes before a copy");
  CHECK(all->front().value == "4096");
  CHECK(all->back().help.empty());
  const auto missing = probe::libfabric_parameters(FAKE_LIBFABRIC_WITHOUT, kPatience);
  REQUIRE_FALSE(missing);
  CHECK(missing.error().message.find("has no fi_getparams") != std::string::npos);
}
