#pragma once
#include <cstddef>
#include <cstdint>
// The functions we call of ROCm SMI, declared here: building needs no header of AMD's. Source: rocm_smi.h
// of ROCm 5.2 to 7.0; tests/vendor/abi_rocm_smi.cpp compares it with the real one where that is installed.

namespace hpclaunch::probe::vendor::rocm_smi {

using Status = unsigned;  ///< rsmi_status_t
constexpr Status kSuccess = 0;
constexpr Status kInvalidArgs = 1;
constexpr Status kNotSupported = 2;
constexpr Status kFileError = 3;
constexpr Status kPermission = 4;
constexpr Status kInitError = 8;
constexpr Status kNotImplemented = 9;
constexpr Status kNotFound = 10;
constexpr Status kNoData = 14;
constexpr Status kBusy = 16;
constexpr Status kUnknown = 0xFFFFFFFF;

constexpr unsigned kVram = 0;  ///< rsmi_memory_type_t
constexpr unsigned kXgmi = 2;  ///< RSMI_IO_LINK_TYPE

using Init = Status(std::uint64_t flags);
using GetCount = Status(std::uint32_t* count);
/// Domain in bits 32 up, bus in 8 to 15, device in 3 to 7, function in 0 to 2. In bits 28 to 31 (or, with
/// older kernels, as the function) the number of a partition.
using GetNumber = Status(std::uint32_t device, std::uint64_t* number);
using GetName = Status(std::uint32_t device, char* name, std::size_t length);
using GetPartition = Status(std::uint32_t device, char* name, std::uint32_t length);
using GetMemory = Status(std::uint32_t device, unsigned type, std::uint64_t* bytes);
using GetLinkType = Status(std::uint32_t from, std::uint32_t to, std::uint64_t* hops,
                           unsigned* type);
using GetLinkWeight = Status(std::uint32_t from, std::uint32_t to, std::uint64_t* weight);
using GetBandwidth = Status(std::uint32_t from, std::uint32_t to, std::uint64_t* least,
                            std::uint64_t* most);

}  // namespace hpclaunch::probe::vendor::rocm_smi
