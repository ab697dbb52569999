#include "probe/sysfs.h"

#include <dirent.h>
#include <fcntl.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <charconv>
#include <climits>
#include <cstdlib>

#include "hpclaunch/text.h"

namespace hpclaunch::probe {

std::string below(std::string_view folder, std::string_view name) {
  std::string path;
  path.reserve(folder.size() + 1 + name.size());
  path.append(folder).append(1, '/').append(name);
  return path;
}

std::string read_small(const std::string& path) {
  const int file = open(path.c_str(), O_RDONLY | O_CLOEXEC | O_NONBLOCK);
  if (file < 0) return "";
  std::array<char, 4096> buffer;
  std::size_t size = 0;
  for (;;) {
    const ssize_t n = read(file, buffer.data() + size, buffer.size() - size);
    if (n <= 0) break;
    size += static_cast<std::size_t>(n);
    if (size == buffer.size()) break;
  }
  close(file);
  return std::string(trim(std::string_view(buffer.data(), size)));
}

std::vector<std::string> names_in(const std::string& path) {
  std::vector<std::string> names;
  DIR* const folder = opendir(path.c_str());
  if (folder == nullptr) return names;
  while (const dirent* entry = readdir(folder))
    if (entry->d_name[0] != '.') names.emplace_back(entry->d_name);
  closedir(folder);
  std::sort(names.begin(), names.end());
  return names;
}

bool exists(const std::string& path) { return access(path.c_str(), F_OK) == 0; }

std::string link_name(const std::string& path) {
  std::array<char, PATH_MAX> target;
  const ssize_t size = readlink(path.c_str(), target.data(), target.size());
  if (size <= 0) return "";
  const std::string_view text(target.data(), static_cast<std::size_t>(size));
  return std::string(text.substr(text.rfind('/') + 1));
}

std::optional<PciAddress> pci_function_of(const std::string& path) {
  std::array<char, PATH_MAX> real;
  if (realpath(path.c_str(), real.data()) == nullptr) return {};
  const std::vector<std::string_view> parts = split(real.data(), '/');
  for (auto part = parts.rbegin(); part != parts.rend(); ++part)
    if (const auto address = parse_pci(*part)) return address;
  return {};
}

std::vector<std::string> bridges_above(const std::string& path) {
  constexpr std::string_view kRoot = "pci";  // "pci0000:c0"
  std::array<char, PATH_MAX> real;
  if (realpath(path.c_str(), real.data()) == nullptr) return {};
  std::vector<std::string> bridges;
  for (const std::string_view part : split(real.data(), '/')) {
    if (part.substr(0, kRoot.size()) == kRoot) {
      const std::string_view bus = part.substr(kRoot.size());
      if (parse_pci(std::string(bus) + ":00.0")) bridges = {std::string(bus)};
    } else if (const auto address = parse_pci(part); address && !bridges.empty()) {
      bridges.push_back(to_string(*address));
    }
  }
  if (!bridges.empty()) bridges.pop_back();  // the function itself
  return bridges;
}

std::optional<unsigned long> number_in(const std::string& text) {
  const bool hex = text.rfind("0x", 0) == 0;
  const char* const begin = text.data() + (hex ? 2 : 0);
  const char* const end = text.data() + text.size();
  unsigned long value = 0;
  const auto [stop, error] = std::from_chars(begin, end, value, hex ? 16 : 10);
  if (begin == end || error != std::errc{} || stop != end) return {};
  return value;
}

CpuSet cpus_in(const std::string& path) {
  const std::string text = read_small(path);
  if (text.empty()) return {};
  const Result<CpuSet> set = CpuSet::parse(text);
  return set ? *set : CpuSet{};
}

int node_in(const std::string& path) {
  const auto value = parse_natural(read_small(path));
  return value ? static_cast<int>(*value) : -1;
}

}  // namespace hpclaunch::probe
