#pragma once
// What the programs that compile data on the building machine have in common.
#include <functional>
#include <string>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::catalogue {

struct Tool {
  std::function<std::vector<Error>(const std::string& file, const std::string& text)> read;
  std::function<std::vector<Error>()> finish;  ///< after the last file; none: nothing to do
  std::function<std::string()> emit;           ///< the C++ file
};

/// Reads the files in the order of their names and writes `output`, "-" for none. The exit status: 1 after
/// "FILE:LINE: error: ..." lines, 2 where a file cannot be read or written.
int run_tool(const Tool& tool, const std::string& output, std::vector<std::string> files);

}  // namespace hpclaunch::catalogue
