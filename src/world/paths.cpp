#include "hpclaunch/paths.h"

#include <algorithm>
#include <filesystem>

#include "hpclaunch/site_profiles.h"

namespace hpclaunch::job {

std::string absolute_from(const std::string& directory, const std::string& typed) {
  if (typed.empty() || typed == "-") return typed;
  std::string text = (std::filesystem::path(directory) / typed).lexically_normal();
  if (text.size() > 1 && text.ends_with('/')) text.pop_back();
  return text;
}

std::string absolute_path(const std::string& typed) {
  std::error_code gone;
  return absolute_from(std::filesystem::current_path(gone), typed);
}

std::string absolute_unless_name(const std::string& typed) {
  return typed.find('/') == std::string::npos ? typed : absolute_path(typed);
}

std::string absolute_profile(const std::string& typed) {
  return is_profile_file(typed) ? absolute_path(typed) : typed;
}

std::string absolute_bind(const std::string& typed) {
  const std::size_t colon = std::min(typed.find(':'), typed.size());
  return absolute_path(typed.substr(0, colon)) + typed.substr(colon);
}

}  // namespace hpclaunch::job
