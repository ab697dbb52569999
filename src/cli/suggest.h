#pragma once
#include <string>

#include "hpclaunch/result.h"

namespace CLI {
class App;
}

namespace hpclaunch::cli {

/// A `usage` error for an option that the command does not have, with the nearest that it has.
Error unknown_option(const CLI::App& app, const std::string& word);

/// The same for a command.
Error unknown_command(const std::string& word);

}  // namespace hpclaunch::cli
