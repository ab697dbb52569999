#pragma once
// Files that the user names for our output.
#include <string>

#include "hpclaunch/result.h"

namespace hpclaunch::cli {

/// Whether `path` can be written, before anything is done for it. `option` is named in errors.
/// Errors: `usage` when a file cannot be made there, or something that is no file is there.
Status check_file(const std::string& option, const std::string& path);

/// Whole or not at all: beside the old one, and then in its place. Errors: `system`.
Status write_file(const std::string& option, const std::string& path, const std::string& text);

}  // namespace hpclaunch::cli
