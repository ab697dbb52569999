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
    Command{"explain", "say why each thing is what it is", "[OPTIONS] [NAME...]", kReport, false,
            declare_explain},
    Command{"verify", "start the ranks and compare what each got with the plan", kProgram, kReport,
            false, declare_verify},
    Command{"topo", "show what this node is made of", "[OPTIONS]", kReport, false, declare_topo},
    Command{"profile", "show, check and write what is known of sites",
            "ACTION [OPTIONS] [NAME|FILE...]", kReport, false, declare_profile},
    Command{"completion", "print completions for a shell", "bash|zsh|fish", kReport, false,
            declare_completion},
    Command{"launch-local", "start ranks on this machine", "[OPTIONS] -- SHIM PROGRAM [ARG...]",
            kLaunch, true, declare_launch_local},
    Command{"rank-report", "say what this rank got", "[OPTIONS]", kReport, true,
            declare_rank_report},
    Command{"man", "print the manual page", "", kReport, true, declare_man},
};

}  // namespace

std::span<const Command> commands() { return kCommands; }

}  // namespace hpclaunch::cli
