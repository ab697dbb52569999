#pragma once
// Values of options that are paths, or may be: as another directory, or a later job, takes them.
#include <string>

namespace hpclaunch::job {

/// From `directory` on, without "." and a last '/'; "-" stays, it is standard input or output.
std::string absolute_from(const std::string& directory, const std::string& typed);

/// From the working directory on.
std::string absolute_path(const std::string& typed);

/// A name has no '/' (--launcher, --conda).
std::string absolute_unless_name(const std::string& typed);

/// As is_profile_file tells them apart.
std::string absolute_profile(const std::string& typed);

/// As the container engines tell them apart: by the look, or because there is such a file.
std::string absolute_image(const std::string& typed);

/// The first path of "SRC[:DST]".
std::string absolute_bind(const std::string& typed);

}  // namespace hpclaunch::job
