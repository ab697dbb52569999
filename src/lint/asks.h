#pragma once
#include "lint/script.h"

namespace hpclaunch::lint {

/// The options in the directives of a script, and what they mean together.
void read_asks(Script& script);

/// What sbatch, qsub, ... know, long names with their dashes; empty for a system whose options are not known.
std::vector<std::string> options_of(std::string_view system);

/// "--image": known where a site has installed the plug-in.
bool is_plugin_option(std::string_view system, std::string_view name);

}  // namespace hpclaunch::lint
