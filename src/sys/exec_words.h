#pragma once
// What every start of a program needs: its words as execve(2) takes them, and what its errno means.
#include <string>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::sys {

/// Pointers to the words, with a null pointer behind the last. The words must outlive them.
inline std::vector<char*> pointers(const std::vector<std::string>& words) {
  std::vector<char*> result;
  result.reserve(words.size() + 1);
  for (const std::string& word : words) result.push_back(const_cast<char*>(word.c_str()));
  result.push_back(nullptr);
  return result;
}

/// Why `program` could not be started, by the errno of fork(2) or execve(2): `program_not_found`,
/// `not_executable` or `system`.
Error exec_error(const std::string& program, int why);

}  // namespace hpclaunch::sys
