#pragma once
#include <string>

namespace hpclaunch::test {

/// Compares `got` with tests/golden/<name>, byte for byte; with HPCLAUNCH_GOLDEN=update in the
/// environment it writes the file instead (and says so). A missing file is a failure.
void check_golden(const std::string& name, const std::string& got);

/// The text of a file below the source tree; fails the test when it cannot be read.
std::string source_file(const std::string& relative_path);

}  // namespace hpclaunch::test
