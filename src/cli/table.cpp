#include <array>

#include "cli/command.h"

namespace hpclaunch::cli {

namespace {

constexpr auto kReport = ExitRules::report;
constexpr auto kLaunch = ExitRules::launch;
constexpr const char* kProgram = "[OPTIONS] [--] [PROGRAM [ARG...]]";

constexpr std::array kCommands = {
    Command{"run", "start a program on every rank", "[OPTIONS] [--] PROGRAM [ARG...]", kLaunch,
            false, declare_run},
    Command{"plan", "show which rank gets which CPUs and variables", kProgram, kReport, false,
            declare_plan},
    Command{"env", "print the environment for a batch script", kProgram, kReport, false,
            declare_env},
    Command{"explain", "show why a variable or choice has its value", "[OPTIONS] [NAME...]",
            kReport, false, declare_explain},
    Command{"verify", "start the ranks and compare them with the plan", kProgram, kReport, false,
            declare_verify},
    Command{"topo", "show the topology of this node", "[OPTIONS]", kReport, false, declare_topo},
    Command{"profile", "list, show, validate, test and create site profiles",
            "ACTION [OPTIONS] [NAME|FILE...]", kReport, false, declare_profile},
    Command{"completion", "print shell completions", "bash|zsh|fish", kReport, false,
            declare_completion},
    Command{"launch-local", "start ranks on this machine", "[OPTIONS] -- SHIM PROGRAM [ARG...]",
            kLaunch, true, declare_launch_local},
    Command{"rank-report", "report the binding and environment of this rank", "[OPTIONS]", kReport,
            true, declare_rank_report},
    Command{"man", "print the manual page", "", kReport, true, declare_man},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace hpclaunch::cli
