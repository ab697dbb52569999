#pragma once
#include <string>

#include "cli/command.h"

namespace hpclaunch::cli {

/// The text of `hpclaunch COMMAND --help`.
std::string help_text(const Command& command, const CLI::App& app);

}  // namespace hpclaunch::cli
