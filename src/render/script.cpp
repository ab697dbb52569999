#include <fmt/format.h>

#include "hpclaunch/render.h"
#include "shell.h"
#include "text.h"

namespace hpclaunch {

namespace {

constexpr std::size_t kOneLine = 98;

std::string words(const std::vector<std::string>& group) {
  std::string line;
  for (const std::string& word : group) line += (line.empty() ? "" : " ") + quote_sh(word);
  return line;
}

/// The command on one line where it fits, else one argument group per line.
std::string command_lines(const std::vector<std::string>& argv) {
  const std::string line = words(argv);
  if (line.size() <= kOneLine && line.find('\n') == std::string::npos) return line + "\n";
  std::string text;
  for (const std::vector<std::string>& group : render::argument_groups(argv))
    text += (text.empty() ? "" : " \\\n  ") + words(group);
  return text + "\n";
}

}  // namespace

Result<std::string> render_script(const std::vector<EnvChange>& changes,
                                  const std::vector<std::string>& argv, bool comments,
                                  const std::vector<std::string>& needs) {
  if (argv.empty())
    return Error{ErrorKind::usage, "there is no program to run", "name it after --"};
  for (const std::string& word : argv)
    if (word.find('\0') != std::string::npos)
      return Error{ErrorKind::unsupported,
                   fmt::format("an argument has a zero byte: {}", render::printable(word))};
  const Result<std::string> exports = render_env(EnvFormat::sh, changes, comments);
  if (!exports) return exports.error();
  std::string text =
      "#!/bin/sh\n"
      "# Written by hpclaunch: what `hpclaunch run` would do, for any POSIX shell.\n";
  for (const std::string& need : needs) text += "# " + render::printable(need) + "\n";
  text += "\n";
  if (!changes.empty()) text += *exports + "\n";
  return text + "exec " + command_lines(argv);
}

}  // namespace hpclaunch
