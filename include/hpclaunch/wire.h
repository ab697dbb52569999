#pragma once
// HPCLAUNCH_PLAN: how the plan reaches the shim (docs/reference/shim.md has the reasons).
//
//   wire   := "hl1." bytes 1*field            bytes: decimal length of all that follows it
//   field  := ":" key "=" item *( "/" item )  one item for all, or one per local rank of the class
//   item   := %HH (upper case) escapes % : / = @ and every byte outside 0x21..0x7E; "" is a value
//             "@.rank" "@.local-rank" "@.node" "@.local-size"   numbers that the shim works out
//   key    := directive (lower case) or the variable to set; a variable whose name begins with a
//             lower-case letter has that letter escaped
//
// Directives. rank= is the first field; what follows class= is of that class.
//   rank=NAME       variable that holds the global rank (required, and first)
//   local=NAME      variable that holds the local rank, when the launcher has one; checked against layout
//   verify=off|warn|strict|report
//   core=BYTES|unlimited  soft limit of a core dump, as far as the hard limit allows
//   dir=PATH/...    absolute paths of directories to make, in this order, with mode 0700
//   log=PATH        a staying shim copies the program's output to PATH/rank-3.log
//   port=N          rank 0 sees whether it can listen there
//   same=NAME*MARK/...  constants, each with the mark of its planned value: compared with what has arrived
//   absent=NAME/...  variables that must not be there: removed, and reported
//   stay=exit|kill  the shim stays beside the program; a failure becomes its own exit status, or kills its
//                   process group
//   notice=SIGNAL*TIME  the staying shim sends this signal number to the program at this UNIX time
//   end=with-parent  SIGKILL when the process above dies
//   hosts=MARKS     three characters for each node, of its short host name in lower case; "..." where the
//                   plan's name need not be what the host calls itself
//   order=MARKS     the same in one character, "." for "...": a host with another mark is not the plan's
//   present=, show=, devices=, gpus=, usual=, import=   of a report: docs/reference/shim.md
//   layout=C*N/...  runs of N nodes of class C, in node order (required)
//   ...             variables for every class, one item each
//   class=R         opens class 0, 1, ... with R ranks per node; the fields after it are that class's
//   granted=N       hardware threads that the rank must find granted for part= to hold
//   part=F-L/...    bind to the F-th to L-th, from 0, of the CPUs that the rank finds granted
//   cpus=SET/...    bind to this list; an empty item binds nothing
//   expect=SET/...  the launcher has bound: compare, and rebind or stop as `verify` says
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/plan.h"

namespace hpclaunch {

/// Longest HPCLAUNCH_PLAN we send. Linux takes 131,072 bytes per string; launchers copy the
/// environment into messages of their own, so we stay far below.
inline constexpr int kMaxWireBytes = 32 * 1024;

/// What the shim has room for; a test compares these with src/shim/decode.h.
inline constexpr int kMaxWireClasses = 1024;   ///< node classes
inline constexpr int kMaxWireVariables = 256;  ///< variables set for one rank

/// Checks of hosts and constants are left out where the whole would grow beyond this. Three characters do not
/// distinguish more than so many nodes.
inline constexpr int kMaxCheckedWireBytes = 24 * 1024;
inline constexpr int kMaxWireHosts = 4096;

/// `size` characters (1..5) of A-Z a-z 0-9 - _ that stand for `text`: FNV-1a of 32 bits, six bits a
/// character. The shim computes the same.
std::string wire_mark(std::string_view text, int size);

/// Escaped as an item of the wire.
std::string wire_escape(std::string_view text);

/// Names of the launcher's variables that the shim reads: letters, digits, underscores.
struct RankVariables {
  std::string rank;        ///< global rank
  std::string local_rank;  ///< "" when the launcher has none
};

/// Encodes what differs by rank: binding, per-rank and rank-fact settings. Constants are not in it:
/// they travel by inheritance. Equal plans give equal bytes. A column whose items are all equal
/// becomes one item. `expect` is left out under Verify::off, because nothing would read it.
/// Errors: `unsupported` above kMaxWireBytes, with the size and what takes most of it, and above
/// kMaxWireClasses or kMaxWireVariables; `invalid` when a directory is no absolute path of at most 4,095 bytes.
/// What is not checked for want of room is named in `left_out`. `report`: fields of a report instead of checks.
Result<std::string> encode_wire(const Plan& plan, const RankVariables& names,
                                std::vector<std::string>* left_out = nullptr,
                                std::string_view report = {});

}  // namespace hpclaunch
