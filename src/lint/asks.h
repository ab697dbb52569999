#pragma once
#include "lint/script.h"

namespace hpclaunch::lint {

/// The options in the directives of a script, and what they mean together.
void read_asks(Script& script);

/// What sbatch, qsub, ... know, long names with their dashes; empty for a system whose options are not known.
std::vector<std::string> known_options(std::string_view system);

/// True where a #PBS script reads what only Torque's jobs have, whose qsub takes other options and values.
bool for_torque(const Script& script);

/// "--image": known where a site has installed the plug-in.
bool is_plugin_option(std::string_view system, std::string_view name);

}  // namespace hpclaunch::lint
