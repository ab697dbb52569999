#pragma once
// The part of libfabric's binary interface that is read here, declared by hand: the library is opened at
// run time and its header need not be there. Source: rdma/fabric.h of libfabric 1.17; every release since
// 1.7 (2019) has these members at these places. tests/probe/libfabric_test.cpp compares them with the real
// header where there is one.
#include <cstddef>
#include <cstdint>

namespace hpclaunch::probe::ofi {

constexpr std::uint32_t kVersion = 1U << 16 | 9U;  ///< FI_VERSION(1, 9): the version we use
constexpr int kEndpointRdm = 3;                    ///< FI_EP_RDM: reliable, without connections
constexpr int kBusPci = 1;                         ///< FI_BUS_PCI

struct EndpointAttr {
  int type;
};

struct DomainAttr {
  void* domain;
  const char* name;
};

struct FabricAttr {
  void* fabric;
  const char* name;
  const char* provider;
};

struct BusAttr {
  int type;
  std::uint16_t pci_domain;
  std::uint8_t pci_bus, pci_device, pci_function;
};

struct Nic {
  std::size_t fid_class;
  void* fid_context;
  void* fid_ops;
  void* device;
  BusAttr* bus;
  void* link;
};

struct Info {
  Info* next;
  std::uint64_t caps;
  std::uint64_t mode;
  std::uint32_t address_format;
  std::size_t source_length;
  std::size_t destination_length;
  void* source;
  void* destination;
  void* handle;
  void* transmit;
  void* receive;
  EndpointAttr* endpoint;
  DomainAttr* domain;
  FabricAttr* fabric;
  Nic* nic;
};

using GetVersion = std::uint32_t();  ///< fi_version: the major version in the upper half

using GetInfo = int(std::uint32_t version, const char* node, const char* service,
                    std::uint64_t flags, const Info* hints, Info** answer);

struct Parameter {  ///< fi_param
  const char* name;
  int type;  ///< FI_PARAM_STRING, _INT, _BOOL, _SIZE_T
  const char* help;
  const char* value;
};
using GetParameters = int(Parameter** parameters, int* count);

}  // namespace hpclaunch::probe::ofi
