#pragma once
// Where a rank is: the process and thread that matter, what it waits for, and in which line of the user's code.
#include <optional>

#include "hpclaunch/programs.h"
#include "hpclaunch/stacks.h"

namespace hpclaunch::stacks {

struct Place {
  const Process* process = nullptr;  ///< nullptr: the rank is missing
  const Thread* thread = nullptr;    ///< nullptr: it has none
  Wait wait = Wait::none;            ///< by Python's frames, else by the kernel
  std::string operation;             ///< function of a known wait: "all_reduce"
  const Frame* user = nullptr;  ///< innermost frame of the user's own code, else innermost frame
};

Place place_of(const Rank& rank);

/// The same of a thread of a process.
Place place_in(const Process& process, const Thread* thread);

const Thread* main_thread(const Process& process);

/// For other ranks, by a known function.
constexpr bool waits_for_ranks(Wait wait) {
  return wait >= Wait::collective && wait <= Wait::device;
}

/// For one other rank: edges of who waits for whom.
constexpr bool waits_for_one(Wait wait) {
  return wait == Wait::send || wait == Wait::receive || wait == Wait::socket ||
         wait == Wait::connect;
}

/// Of Python or of a package, not the user's own.
bool is_library(std::string_view file);

/// What the kernel says of a thread.
Wait kernel_wait(const Thread& thread);

/// "waits for the lock of /data/x", "sleeps", "runs". `detail`: the part that differs from rank to rank.
struct Doing {
  std::string what, detail;
};
Doing kernel_doing(const Thread& thread);

/// "sleeps", "waits in all_reduce"
std::string doing(const Place& place);

/// "/home/ann/train.py:41 step", library paths without what is before the package; at most `width` columns.
std::string frame_text(const Frame& frame, int width);

int columns(std::string_view text);

/// "/home/ann/pro...train.py"; at least 8 columns.
std::string cut_middle(std::string text, int most);

/// What is different in a rank.
struct Change {
  bool stack = true;     ///< of the thread that matters
  bool line = true;      ///< its innermost frame
  bool function = true;  ///< of the user's own code
  bool ran = true;       ///< the thread had processor time or was switched to
  bool fed = true;       ///< it was switched to more often than one that polls
  bool computed =
      true;  ///< some process had more than a hundredth of a core, which threads of libraries take
  bool threads =
      true;  ///< one that it may wait for was at another line, or was fed by a socket (not in a poll) or a file
  bool children = true;  ///< others are there, or one of them computed
  bool bytes = true;     ///< more than 1 KiB/s were read and written
};
Change change(const Rank& before, const Place& was, const Rank& now, const Place& is);
bool is_still(const Rank& before, const Place& was, const Rank& now, const Place& is);

/// What a child is at, where the rank waits for a child or its answer: not idle, or waiting for something outside.
std::optional<Place> busy_child(const Rank& rank, const Place& place);

}  // namespace hpclaunch::stacks
