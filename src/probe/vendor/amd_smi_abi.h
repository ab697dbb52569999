#pragma once
#include <cstdint>
// The functions we call of AMD SMI, declared here: building needs no header of AMD's. Source: amdsmi.h of
// ROCm 6.1 to 10.1; tests/vendor/abi_amd_smi.cpp compares it with the real one where that is installed.
//
// Its structures change with every release, so only two are used, and of those only what no release
// moved: the market name at the start of the one, the UUID behind four words of the other. Both are given
// more room than any release fills.

namespace hpclaunch::probe::vendor::amd_smi {

using Status = unsigned;  ///< amdsmi_status_t
constexpr Status kSuccess = 0;
constexpr Status kInvalidArgs = 1;
constexpr Status kNotSupported = 2;
constexpr Status kNotImplemented = 3;
constexpr Status kDrmError = 6;
constexpr Status kPermission = 10;
constexpr Status kInitError = 18;
constexpr Status kNotFound = 31;
constexpr Status kNoDriver = 34;
constexpr Status kNoData = 40;
constexpr Status kUnknown = 0xFFFFFFFF;

constexpr std::uint64_t kInitGpus = 2;  ///< AMDSMI_INIT_AMD_GPUS
constexpr unsigned kVram = 0;           ///< amdsmi_memory_type_t
/// amdsmi_io_link_type_t, and amdsmi_link_type_t since it is asked for with that
constexpr unsigned kXgmi = 2;

using Handle = void*;  ///< of a socket, of a processor

struct AsicInfo {
  char market_name[256];  ///< of 64 in older releases, with a NUL
  char rest[3840];
};

struct EnumerationInfo {
  std::uint32_t drm_render;
  std::uint32_t drm_card;
  std::uint32_t hsa_id;
  std::uint32_t hip_id;
  char hip_uuid[256];  ///< "GPU-" and 16 digits: what ROCR_VISIBLE_DEVICES takes
  char rest[3824];
};

using Init = Status(std::uint64_t flags);
using GetSockets = Status(std::uint32_t* count, Handle* sockets);
using GetProcessors = Status(Handle socket, std::uint32_t* count, Handle* processors);
/// Function in bits 0 to 2, device in 3 to 7, bus in 8 to 15, domain above.
using GetBdf = Status(Handle processor, std::uint64_t* bdf);
using GetAsicInfo = Status(Handle processor, AsicInfo* info);
using GetEnumerationInfo = Status(Handle processor, EnumerationInfo* info);
using GetMemory = Status(Handle processor, unsigned type, std::uint64_t* bytes);
using GetPartition = Status(Handle processor, char* name, std::uint32_t length);
using GetLinkType = Status(Handle from, Handle to, std::uint64_t* hops, unsigned* type);
using GetLinkWeight = Status(Handle from, Handle to, std::uint64_t* weight);
using GetBandwidth = Status(Handle from, Handle to, std::uint64_t* least, std::uint64_t* most);

}  // namespace hpclaunch::probe::vendor::amd_smi
