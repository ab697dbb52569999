// What the constants of a library say: its version, and which versions of NCCL's network interface it has or looks for. NCCL and RCCL try
// the symbols ncclNetPlugin_vN from the newest that they know, and use sockets where the plug-in has none of them.
// Source: NVIDIA/nccl src/plugin/net.cc.
#include <elf.h>
#include <fcntl.h>
#include <sys/mman.h>
#include <sys/stat.h>
#include <unistd.h>

#include <cstring>

#include "doctor/examination.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

constexpr std::string_view kSymbol = "ncclNetPlugin_v";

class Mapped {
 public:
  explicit Mapped(const std::string& path) {
    const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC);
    struct stat about = {};
    if (file >= 0 && fstat(file, &about) == 0 && about.st_size > 0) {
      size_ = static_cast<std::size_t>(about.st_size);
      void* const place = mmap(nullptr, size_, PROT_READ, MAP_PRIVATE, file, 0);
      if (place != MAP_FAILED) bytes_ = static_cast<const char*>(place);
    }
    if (file >= 0) close(file);
  }
  ~Mapped() {
    if (bytes_ != nullptr) munmap(const_cast<char*>(bytes_), size_);
  }
  Mapped(const Mapped&) = delete;
  Mapped& operator=(const Mapped&) = delete;

  /// "" where the range is not inside of the file.
  std::string_view range(std::uint64_t begin, std::uint64_t size) const {
    if (bytes_ == nullptr || begin > size_ || size > size_ - begin) return {};
    return {bytes_ + begin, size};
  }

  template <class Record>
  bool read(std::uint64_t begin, Record& record) const {
    const std::string_view bytes = range(begin, sizeof record);
    if (bytes.empty()) return false;
    std::memcpy(&record, bytes.data(), sizeof record);
    return true;
  }

 private:
  const char* bytes_ = nullptr;
  std::size_t size_ = 0;
};

// Gives `use` each part of the file that holds constants or names of symbols; device code, which is most of a collective
// library, is neither.
template <class Use>
void in_constants(const std::string& library, Use use) {
  const Mapped file(library);
  Elf64_Ehdr head;
  if (!file.read(0, head) || std::memcmp(head.e_ident, ELFMAG, SELFMAG) != 0) return;
  const auto section_at = [&](int i) {
    Elf64_Shdr section = {};
    file.read(head.e_shoff + static_cast<std::uint64_t>(i) * head.e_shentsize, section);
    return section;
  };
  const Elf64_Shdr names = section_at(head.e_shstrndx);
  for (int i = 0; i < head.e_shnum; ++i) {
    const Elf64_Shdr section = section_at(i);
    constexpr std::string_view kConstants = ".rodata";
    const bool constants =
        section.sh_name < names.sh_size &&
        file.range(names.sh_offset + section.sh_name, kConstants.size()) == kConstants;
    if (constants || section.sh_type == SHT_STRTAB)
      use(file.range(section.sh_offset, section.sh_size));
  }
}

}  // namespace

std::set<long> network_interfaces(const std::string& library) {
  std::set<long> versions;
  in_constants(library, [&](std::string_view bytes) {
    for (std::size_t at = 0; (at = bytes.find(kSymbol, at)) != bytes.npos;) {
      at += kSymbol.size();
      const std::string_view rest = bytes.substr(at, 4);
      const std::size_t end = std::min(rest.find_first_not_of("0123456789"), rest.size());
      if (const auto version = parse_natural(rest.substr(0, end))) versions.insert(*version);
    }
  });
  return versions;
}

std::string version_behind(const std::string& library, std::string_view name) {
  std::string version;
  in_constants(library, [&](std::string_view bytes) {
    for (std::size_t at = 0; version.empty() && (at = bytes.find(name, at)) != bytes.npos;) {
      at += name.size();
      const std::string_view rest = bytes.substr(at, 24);
      const std::string_view digits = rest.substr(0, rest.find_first_not_of("0123456789."));
      if (digits.find('.') != digits.npos && digits.front() != '.') version = digits;
    }
  });
  return version;
}

}  // namespace hpclaunch::job
