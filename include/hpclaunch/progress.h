#pragma once
// How far each rank is in the collectives of its process groups: from PyTorch's flight recorder, and
// from NCCL's RAS. Pure.
#include <map>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::stacks {

/// What hpclaunch says where a rank gives no answer.
inline constexpr std::string_view kNoAnswer = "its node does not answer";
inline constexpr std::string_view kTooSlow = "its stacks could not be read in time";
inline constexpr std::string_view kEnded = "it has ended";
/// Of a node whose own hpclaunch has it.
inline constexpr std::string_view kElsewhere = "another hpclaunch has started it";
inline constexpr std::string_view kNotStarted = "it has not started";

/// One process group, or communicator of NCCL. Maps are by rank; what is unknown of a rank is not in them.
struct GroupProgress {
  std::string group;                     ///< "0 (default_pg)"; "27a079b828ff1a75" of RAS
  std::vector<int> ranks;                ///< its members, ascending; empty: unknown
  bool of_job = false;                   ///< of RAS: they are known to be ranks of the job
  std::map<int, long> launched;          ///< collectives that it has started; of RAS, of all kinds
  std::map<int, long> completed;         ///< those that have ended
  std::map<int, long> current;           ///< number of the one at which it is
  std::map<int, std::string> operation;  ///< of `current`: "all_reduce"; of RAS, where it is behind
  std::map<int, std::string> sizes;      ///< of the tensors of `current`: "[[1024, 8]]"
  std::map<int, int> peer;               ///< other end of a send or receive that has not ended
  std::map<int, std::string> place;      ///< who called it: "train.py:41 step"
  std::vector<int> silent;               ///< by RAS: do not answer
  std::vector<int> dead;                 ///< by RAS: have not answered for a minute
};
using Sequences = std::vector<GroupProgress>;

/// The dump of one rank, TORCH_FR_DUMP_TEMP_FILE: a pickle of plain data, version 2 of its format. Whatever could call
/// code is refused. Errors: `invalid`.
Result<Sequences> parse_flight_recorder(int rank, std::string_view pickle);

/// Ranks of the job: by host, by process ID.
using Processes = std::map<std::string, std::map<long, int>>;

/// The answer to `verbose status`, as text or JSON. Ranks are those of the communicator: of one with all ranks, those of
/// the job. With `job` they are the job's in JSON, where the process of each is one of it. Errors: `invalid`.
Result<Sequences> parse_ras(std::string_view answer, const Processes& job = {});

/// The dumps of several ranks, by group.
Sequences merged(const std::vector<Sequences>& of_ranks);

/// The ranks that have started fewer collectives than others, and none between two answers: where the group is stuck.
/// Empty: it moves, or all have started as many.
std::vector<int> stuck_ranks(const GroupProgress& before, const GroupProgress& now);

}  // namespace hpclaunch::stacks
