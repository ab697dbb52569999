#include "sys/exec_words.h"

#include <fmt/format.h>

#include <cerrno>
#include <cstring>

namespace hpclaunch::sys {

Error exec_error(const std::string& program, int why) {
  const ErrorKind kind = why == ENOENT                     ? ErrorKind::program_not_found
                         : why == EACCES || why == ENOEXEC ? ErrorKind::not_executable
                                                           : ErrorKind::system;
  std::string hint;
  if (why == E2BIG)
    hint = "the environment or the arguments are too large for execve(2); shorten them";
  if (why == EAGAIN) hint = "ulimit -u says how many processes are allowed";
  return Error{kind, fmt::format("cannot execute \"{}\": {}", program, std::strerror(why)), hint};
}

}  // namespace hpclaunch::sys
