#include "probe/sysfs.h"

#include <fmt/format.h>

#include <algorithm>
#include <charconv>
#include <filesystem>
#include <iterator>
#include <system_error>

#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"

namespace hpclaunch::probe {

namespace fs = std::filesystem;

std::string below(std::string_view folder, std::string_view name) {
  std::string path;
  path.reserve(folder.size() + 1 + name.size());
  path.append(folder).append(1, '/').append(name);
  return path;
}

std::string read_small(const std::string& path) {
  constexpr std::size_t kMost = 4096;
  const Result<std::string> text = sys::read_file(path, kMost);
  return text ? std::string(trim(*text)) : "";
}

std::vector<std::string> names_in(const std::string& path) {
  Result<std::vector<std::string>> names = sys::list_directory(path);
  if (!names) return {};
  std::erase_if(*names, [](const std::string& name) { return name.starts_with('.'); });
  return std::move(*names);
}

std::vector<std::string> numbered_in(const std::string& path, std::string_view prefix) {
  std::vector<std::string> names = names_in(path);
  std::erase_if(names, [&](const std::string& name) {
    return !name.starts_with(prefix) ||
           !parse_natural(std::string_view(name).substr(prefix.size()));
  });
  return names;
}

bool exists(const std::string& path) {
  std::error_code unused;
  return fs::exists(path, unused);
}

std::string link_name(const std::string& path) {
  std::error_code unused;
  return fs::read_symlink(path, unused).filename();
}

namespace {

/// What a link says, which is one call; where that shows no PCI function, the path with all links resolved.
fs::path way_to(const std::string& path) {
  std::error_code unused;
  fs::path way = fs::read_symlink(path, unused);
  const bool shown = std::ranges::any_of(
      way, [](const fs::path& part) { return parse_pci(part.native()).has_value(); });
  return shown ? way : fs::canonical(path, unused);
}

}  // namespace

std::optional<PciAddress> pci_function_of(const std::string& path) {
  std::optional<PciAddress> last;
  for (const fs::path& part : way_to(path))
    if (const auto address = parse_pci(part.native())) last = address;
  return last;
}

std::vector<std::string> bridges_above(const std::string& path) {
  constexpr std::string_view kRoot = "pci";  // "pci0000:c0"
  std::vector<std::string> bridges;
  for (const fs::path& step : way_to(path)) {
    const std::string& part = step.native();
    if (part.starts_with(kRoot)) {
      const std::string bus = part.substr(kRoot.size());
      if (parse_pci(bus + ":00.0")) bridges = {bus};
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

std::string partition_name(int parts) {
  constexpr const char* kNames[] = {"", "", "DPX", "TPX", "QPX"};
  return parts < static_cast<int>(std::size(kNames)) ? kNames[std::max(parts, 0)] : "CPX";
}

std::string amd_uuid(const std::string& reported) {
  const std::string digits = reported.substr(reported.starts_with("GPU-") ? 4 : 0);
  const auto number = digits.size() > 16 ? std::nullopt : number_in("0x" + digits);
  if (!number) return reported;
  return *number == 0 || *number == ~0UL ? "" : fmt::format("GPU-{:016x}", *number);
}

}  // namespace hpclaunch::probe
