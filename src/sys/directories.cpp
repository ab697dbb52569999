#include <dirent.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>

#include "hpclaunch/sys.h"

namespace hpclaunch::sys {

Result<std::vector<std::string>> list_directory(const std::string& path) {
  std::vector<std::string> names;
  DIR* directory = opendir(path.c_str());
  if (directory == nullptr) {
    if (errno == ENOENT || errno == ENOTDIR) return names;
    return Error{ErrorKind::system,
                 fmt::format("cannot read directory \"{}\": {}", path, std::strerror(errno))};
  }
  while (const dirent* entry = readdir(directory)) {
    const std::string name = entry->d_name;
    if (name != "." && name != "..") names.push_back(name);
  }
  closedir(directory);
  std::sort(names.begin(), names.end());
  return names;
}

bool others_may_write(const std::string& path) {
  struct stat info {};
  if (stat(path.c_str(), &info) != 0) return false;  // reading it will say so
  if ((info.st_mode & (S_IWGRP | S_IWOTH)) != 0) return true;
  return info.st_uid != 0 && info.st_uid != geteuid();
}

}  // namespace hpclaunch::sys
