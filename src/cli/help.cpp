#include "cli/help.h"

#include <CLI/CLI.hpp>
#include <fmt/format.h>

namespace hpclaunch::cli {

std::string help_text(const Command& command, const CLI::App& app) {
  std::string text = app.help();
  const std::size_t begin = text.find("Usage:");  // CLI11 cannot be told about PROGRAM before 2.4
  if (begin == std::string::npos) return text;
  const std::size_t end = text.find('\n', begin);
  return text.replace(begin, end - begin, fmt::format("Usage: hpclaunch {} {}", command.name, command.usage));
}

}  // namespace hpclaunch::cli
