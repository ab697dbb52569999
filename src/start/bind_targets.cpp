// Where an image that is a directory lacks the place of a bind, it is made once, before the ranks start: the ranks'
// engines would make it at the same time, and Charliecloud fails where another was faster.
#include <fcntl.h>
#include <fmt/format.h>
#include <sys/stat.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <cstring>
#include <filesystem>

#include "start/steps.h"

namespace hpclaunch::job {

namespace fs = std::filesystem;

namespace {

// 0, or errno. A link inside the image may lead out of it: such a path is the engine's affair.
int make(const std::string& image, const fs::path& target, bool is_file) {
  std::string path = image;
  const fs::path inside = target.relative_path();
  for (auto part = inside.begin(); part != inside.end(); ++part) {
    if (part->empty() || *part == ".") continue;
    path += '/' + part->string();
    struct stat found {};
    if (*part == ".." || (lstat(path.c_str(), &found) == 0 && S_ISLNK(found.st_mode))) return 0;
    const bool file = is_file && std::next(part) == inside.end();
    const int made =
        file ? open(path.c_str(), O_CREAT | O_WRONLY | O_CLOEXEC, 0644) : mkdir(path.c_str(), 0755);
    if (made < 0 && errno != EEXIST && !(file && fs::exists(path))) return errno;
    if (file && made >= 0) close(made);
  }
  return 0;
}

}  // namespace

Result<ContainerUse> with_bind_targets(ContainerUse use) {
  if (!use.is_directory) return use;
  std::error_code ignored;
  for (const auto& [from, to] : use.binds) {
    if (fs::exists(use.image + to, ignored)) continue;
    if (const int failed = make(use.image, to, fs::is_regular_file(from, ignored)); failed != 0)
      return Error{ErrorKind::system,
                   fmt::format("image \"{}\" has no {}, and it cannot be made there: {}", use.image,
                               to, std::strerror(failed)),
                   "make it in the image, or bind to a directory that it has"};
  }
  use.writes = std::ranges::any_of(
      use.binds, [&](const auto& bind) { return !fs::exists(use.image + bind.second, ignored); });
  return use;
}

}  // namespace hpclaunch::job
