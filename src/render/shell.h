#pragma once
// One change in each format: whether the format can represent it, and its line, which assumes so.
#include <string>
#include <string_view>

#include "hpclaunch/render.h"

namespace hpclaunch::render {

/// A comment on one line, with nothing in it that could end the comment.
std::string comment_text(std::string_view comment);

/// Names that a shell reserves, separated by blanks: assigning them fails or does something else. bash 5.2 and
/// dash 0.5.12 for sh, fish 3.6.
inline constexpr std::string_view kReservedBySh =
    "BASHOPTS BASHPID BASH_ARGC BASH_ARGV BASH_ARGV0 BASH_COMMAND BASH_COMPAT BASH_LINENO "
    "BASH_SOURCE BASH_SUBSHELL BASH_VERSINFO DIRSTACK EPOCHREALTIME EPOCHSECONDS EUID FUNCNAME "
    "GROUPS HISTCMD LINENO OPTIND PIPESTATUS PPID RANDOM SECONDS SHELLOPTS SHLVL SRANDOM UID _";
inline constexpr std::string_view kReservedByFish =
    "FISH_VERSION PWD SHLVL _ fish_kill_signal fish_killring fish_pid history hostname pipestatus "
    "status status_generation umask version";

/// Why fish cannot represent the change; "" when it can.
std::string_view fish_refusal(const EnvChange& change);

std::string sh_line(const EnvChange& change);
std::string csh_line(const EnvChange& change);
std::string fish_line(const EnvChange& change);

}  // namespace hpclaunch::render
