#pragma once
// What the launch lines of several launchers have in common.
#include <initializer_list>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/launcher.h"

namespace hpclaunch::line {

/// Linux refuses a longer argument (MAX_ARG_STRLEN is 32 pages).
inline constexpr std::size_t kMaxArgument = 131'000;

/// The profile's flags, then what was typed with --launcher-arg: the order in which they are passed.
std::vector<std::string> given_args(const Plan& plan);

/// Do the given flags hold an option of one of these spellings? "--name" is also met by "--name=v",
/// "-c" by "-c7". Whoever gives a flag replaces ours of that name.
bool gives(const std::vector<std::string>& args, std::initializer_list<std::string_view> names);

/// The same for an option with names of its own behind it: "-o NAME=v", "-oNAME", "--setopt=NAME=v".
bool gives_key(const std::vector<std::string>& args, std::string_view letter, std::string_view word,
               std::string_view key);

/// The same for launchers whose words may have one dash or two: `names` without dashes, met by "-n",
/// "--n" and "--n=3", not by "-n3".
bool gives_word(const std::vector<std::string>& args,
                std::initializer_list<std::string_view> names);

/// True when the launcher shall bind and there is one list for all nodes with a set for each rank.
bool launcher_binds(const Plan& plan);

/// What `text` makes of the CPUs of each local rank, joined. Only when launcher_binds.
std::string join_sets(const Plan& plan, std::string_view separator,
                      std::string (*text)(const CpuSet&));

/// "a,b,c". Errors: `unsupported` when it is longer than one argument may be; `hint` is the way out.
Result<std::string> host_list(const Plan& plan, std::string_view hint);

/// "a:4,b:2": each host with its ranks.
std::string host_counts(const Plan& plan);

/// How a launcher gets many hosts: as one argument, or in the plan's own file of them.
/// Errors: `unsupported` when the `list` is too long and there is no such file, or the nodes do not have
/// equal numbers of ranks, which a file of bare names cannot say.
struct HostWords {
  std::string_view list_option;
  std::string_view file_option;
};
Result<Argv> hosts_or_file(const Plan& plan, const HostWords& words, const std::string& list);

/// Errors: `unsupported`, naming the `launcher`, when log files are asked for; `instead` is the way out.
Status refuse_log_dir(const Plan& plan, std::string_view launcher, std::string_view instead);

/// How many nodes have so many ranks, in node order, neighbours with equal counts together.
struct Stretch {
  int nodes = 0;
  int ranks = 0;  ///< on each
};
std::vector<Stretch> stretches(const Plan& plan);

/// "4 ranks on each of 2 nodes, then 1 on 1 node"
std::string in_words(const std::vector<Stretch>& layout);

/// Counts near the plan's that every node can have: "-n 3 or -n 6 (1 or 2 ranks on each of 3 nodes)".
std::string even_counts(const Plan& plan);

/// Errors: `unsupported`, naming the `launcher`, unless every node has as many ranks, apart from the last,
/// which may have fewer; `instead` is what else to type beside counts that are even.
Status check_filled(const Plan& plan, std::string_view launcher, std::string_view instead);

/// Errors: `unsupported`, naming the `launcher`, unless the ranks are spread evenly, the first nodes
/// having one more when it does not come out even.
Status check_spread(const Plan& plan, std::string_view launcher);

/// Errors: `unsupported`, naming `who`, when srun would put the hosts into another order: rank 0 would run on another node
/// than the one that all are told to meet at. `instead` is the way out.
Status check_order_of_srun(const Plan& plan, std::string_view who, std::string_view instead);

/// Puts given_args, `separator` unless empty, the shim and the program behind `argv`.
/// Errors: `unsupported` for a word ":" of the program's own, where every launcher but Flux's begins
/// another program, and for a host that is an address of IPv6, which all read as a host and a count.
Result<Argv> finish(Argv argv, const Plan& plan, const std::string& separator,
                    const std::string& shim);

}  // namespace hpclaunch::line
