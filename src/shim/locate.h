#pragma once
// Where a process has CPython: the program or a libpython in /proc/PID/maps, and _PyRuntime in it. Symbols are read from
// the process's memory, so that a file system that does not answer holds nothing up; sections only a file has.
#include <elf.h>

#include "record.h"
#include "threads.h"

namespace hpclaunch::shim {

/// Gives `use` each line of a file of /proc, of any length up to the room; until `use` is false. 0, or -errno.
template <class Use>
long each_line(const char* path, Use use) {
  constinit static char bytes[65536];
  const int fd = open_file(path, O_RDONLY);
  if (fd < 0) return fd;
  int size = 0;
  long part = 1;
  for (bool more = true; more && part > 0;) {
    part = call(SYS_read, fd, bytes + size, static_cast<int>(sizeof bytes) - size);
    if (part > 0) size += static_cast<int>(part);
    Text rest(bytes, size);
    for (Text line; more;) {
      Text next = rest;
      if (!cut(next, '\n', line) && (part > 0 || line.size == 0)) break;
      more = use(line);
      rest = next;
    }
    for (int i = 0; i < rest.size; ++i) bytes[i] = rest.at[i];
    size = rest.size == static_cast<int>(sizeof bytes) ? 0 : rest.size;
  }
  close(fd);
  return part < 0 ? part : 0;
}

constexpr bool take_hex(Text& rest, unsigned long& number) {
  int digits = 0;
  number = 0;
  for (; digits < rest.size; ++digits) {
    const char c = rest.at[digits];
    const int value = c >= 'a' && c <= 'f' ? c - 'a' + 10 : hex_digit(c);
    if (value < 0) break;
    number = number << 4 | static_cast<unsigned long>(value);
  }
  rest = rest.from(digits);
  return digits > 0 && digits <= 16;
}

/// A file that may have the interpreter inside.
struct Image {
  python::Address start = 0;  ///< where its first byte is mapped; 0: none
  int major = 0;              ///< of the version in its name; 0: none
  int minor = 0;
  Buffer<kMaxPath> path;

  void set(python::Address address, Text full, Text name) {
    start = address;
    path.cut_to(0);
    path.add_bytes(full);
    const Text words[] = {"libpython", "python"};
    for (const Text word : words) {
      if (!starts_with(name, word)) continue;
      Text rest = name.from(word.size);
      if (!take_number(rest, major) || !starts_with(rest, ".")) return static_cast<void>(major = 0);
      rest = rest.from(1);
      if (!take_number(rest, minor)) major = 0;
      return;
    }
  }
};

/// The program, and a libpython. 0, or -errno where the mappings cannot be read.
inline long find_images(int pid, Image& program, Image& library) {
  static char link[kMaxPath];
  const Line exe = process_path(pid, "exe");
  const long size = call(SYS_readlinkat, AT_FDCWD, exe.text().at, link, sizeof link);
  const Text own(link, size > 0 ? static_cast<int>(size) : 0);
  return each_line(process_path(pid, "maps").text().at, [&](Text path) {
    Text range, rights, offset, device, inode;
    Text* const pieces[] = {&range, &rights, &offset, &device, &inode};
    for (Text* const piece : pieces) cut(path, ' ', *piece);
    while (starts_with(path, " ")) path = path.from(1);
    unsigned long start = 0;
    if (!starts_with(path, "/") || !(offset == "00000000") || !take_hex(range, start)) return true;
    Text name;
    for (Text rest = path; cut(rest, '/', name);) {
    }
    if (path == own && program.start == 0) program.set(start, path, name);
    constexpr Text kLibrary("libpython3.");
    if (starts_with(name, kLibrary) && is_digit(name.from(kLibrary.size).at[0]) &&
        library.start == 0)
      library.set(start, path, name);
    return library.start == 0;
  });
}

/// Symbols of an ELF file that is mapped at `start`.
template <class Memory>
class MappedElf {
 public:
  MappedElf(Memory& memory, python::Address start) : memory_(memory) {
    constexpr int kMostSegments = 64;
    constexpr int kMostTags = 128;
    const auto head = memory.template get<Elf64_Ehdr>(start);
    if (!(Text(reinterpret_cast<const char*>(head.e_ident), 5) == "\177ELF\2")) return;
    python::Address dynamic = 0;
    for (int i = 0; i < head.e_phnum && i < kMostSegments; ++i) {
      const auto one = memory.template get<Elf64_Phdr>(
          start + head.e_phoff + sizeof(Elf64_Phdr) * static_cast<unsigned>(i));
      if (one.p_type == PT_LOAD && one.p_offset == 0) bias_ = start - one.p_vaddr;
      if (one.p_type == PT_DYNAMIC) dynamic = one.p_vaddr;
    }
    if (dynamic == 0) return;
    for (int i = 0; i < kMostTags; ++i) {
      const auto one = memory.template get<Elf64_Dyn>(bias_ + dynamic +
                                                      sizeof(Elf64_Dyn) * static_cast<unsigned>(i));
      if (one.d_tag == DT_NULL) return;
      if (one.d_tag == DT_GNU_HASH) hash_ = here(one.d_un.d_ptr);
      if (one.d_tag == DT_SYMTAB) symbols_ = here(one.d_un.d_ptr);
      if (one.d_tag == DT_STRTAB) names_ = here(one.d_un.d_ptr);
    }
  }

  python::Address bias() const { return bias_; }

  /// By the table of hashes that GNU's linkers write. 0: there is none.
  python::Address find(Text name) {
    constexpr int kMostInChain = 4096;
    struct Head {
      unsigned buckets, first, words, shift;
    };
    const Head head = hash_ == 0 ? Head() : memory_.template get<Head>(hash_);
    if (head.buckets == 0) return 0;
    unsigned hash = 5381;
    for (int i = 0; i < name.size; ++i) hash = hash * 33 + static_cast<unsigned char>(name.at[i]);
    const python::Address buckets = hash_ + sizeof(Head) + 8UL * head.words;
    unsigned at = memory_.template get<unsigned>(buckets + 4UL * (hash % head.buckets));
    for (int i = 0; at >= head.first && i < kMostInChain; ++i, ++at) {
      const auto one =
          memory_.template get<unsigned>(buckets + 4UL * head.buckets + 4UL * (at - head.first));
      const auto symbol = memory_.template get<Elf64_Sym>(symbols_ + sizeof(Elf64_Sym) * at);
      if ((one | 1U) == (hash | 1U) && symbol.st_shndx != SHN_UNDEF && is_named(symbol, name))
        return bias_ + symbol.st_value;
      if ((one & 1U) != 0) break;
    }
    return 0;
  }

 private:
  /// Some C libraries have moved the addresses to where the file is, others leave them as they were.
  python::Address here(python::Address address) const {
    return address < bias_ ? address + bias_ : address;
  }
  bool is_named(const Elf64_Sym& symbol, Text name) {
    char bytes[32] = {};
    const int size = name.size + 1 < 32 ? name.size + 1 : 32;
    return memory_.read(names_ + symbol.st_name, bytes, size) &&
           Text(bytes, size) == Text(name.at, size);
  }

  Memory& memory_;
  python::Address bias_ = 0, hash_ = 0, symbols_ = 0, names_ = 0;
};

/// The address that a file of ELF has for one of its sections; 0: it has none.
inline python::Address find_section(const char* path, Text wanted) {
  static char names[16384];
  Elf64_Ehdr head = {};
  const int fd = open_file(path, O_RDONLY);
  if (fd < 0) return 0;
  const auto get = [&](void* to, unsigned long size, unsigned long at) {
    return call(SYS_pread64, fd, to, size, at) == static_cast<long>(size);
  };
  const auto section = [&](unsigned number) {
    Elf64_Shdr one = {};
    get(&one, sizeof one, head.e_shoff + sizeof one * number);
    return one;
  };
  python::Address found = 0;
  if (get(&head, sizeof head, 0)) {
    const Elf64_Shdr table = section(head.e_shstrndx);
    const unsigned long size = table.sh_size < sizeof names ? table.sh_size : sizeof names;
    const bool good = get(names, size, table.sh_offset) && size > 0;
    if (good) names[size - 1] = '\0';
    for (unsigned i = 0; good && i < head.e_shnum && found == 0; ++i) {
      const Elf64_Shdr one = section(i);
      if (one.sh_name < size && Text(names + one.sh_name) == wanted) found = one.sh_addr;
    }
  }
  close(fd);
  return found;
}

/// The address of _PyRuntime. `minor`: of the version 3.MINOR, where the symbols or the name tell. 0: this is no Python.
template <class Memory>
python::Address find_runtime(Memory& memory, int pid, const Image& image, int& minor) {
  if (image.start == 0) return 0;
  MappedElf<Memory> elf(memory, image.start);
  python::Address found = elf.find("_PyRuntime");
  const bool readable = memory.error() == 0 || memory.error() == EFAULT;
  if (found == 0 && readable && image.major == 3) {
    constinit static Buffer<kMaxPath + 32> path;
    path.cut_to(0);
    path.add_bytes(process_path(pid, "root").text()).add_bytes(image.path.text());
    const python::Address section = find_section(path.text().at, ".PyRuntime");
    if (section != 0) found = elf.bias() + section;
  }
  const python::Address version = found == 0 ? 0 : elf.find("Py_Version");
  if (version != 0) minor = static_cast<int>(memory.template get<unsigned>(version) >> 16 & 0xff);
  return found;
}

}  // namespace hpclaunch::shim
