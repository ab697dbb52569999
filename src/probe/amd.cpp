#include "probe/amd.h"

#include <algorithm>
#include <cctype>
#include <iterator>

namespace hpclaunch::probe {

std::string partition_name(int parts) {
  constexpr const char* kNames[] = {"", "", "DPX", "TPX", "QPX"};
  return parts < static_cast<int>(std::size(kNames)) ? kNames[std::max(parts, 0)] : "CPX";
}

std::string amd_uuid(const std::string& reported) {
  std::string text = reported.rfind("GPU-", 0) == 0 ? reported.substr(4) : reported;
  const bool hex =
      !text.empty() && text.size() <= 16 &&
      std::all_of(text.begin(), text.end(), [](unsigned char c) { return std::isxdigit(c) != 0; });
  if (!hex) return reported;
  std::transform(text.begin(), text.end(), text.begin(),
                 [](unsigned char c) { return static_cast<char>(std::tolower(c)); });
  text.insert(0, 16 - text.size(), '0');
  const bool none = text == std::string(16, '0') || text == std::string(16, 'f');
  return none ? "" : "GPU-" + text;
}

}  // namespace hpclaunch::probe
