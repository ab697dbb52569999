#pragma once
// The options that run, plan, env, explain and verify share: they fill one Request.
#include "cli/parser.h"
#include "hpclaunch/request.h"

namespace hpclaunch::cli {

void declare_launch_options(Parser& parser, Request& request);

}  // namespace hpclaunch::cli
