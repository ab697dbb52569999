#pragma once
// What the launcher "ssh" (src/sys/ssh) and hpclaunch-node tell each other over the ssh connection of one node. Both have the same
// architecture.
//
//   hpclaunch -> hpclaunch-node   job, go, signal; the end of the stream ends the node's ranks
//   hpclaunch-node -> hpclaunch   accepted, started, output, ended, refused
#include <stdint.h>

namespace hpclaunch::node {

enum class What : uint8_t {
  job = 1,
  signal,    ///< `number` for all ranks of the node; KILL for all that they have started, too
  started,   ///< all ranks of the node
  output,    ///< bytes that a rank wrote to `stream`
  ended,     ///< a rank; `number` as wait(2) has it
  refused,   ///< no rank was started; `number` is an errno, and text follows
  accepted,  ///< the job can be started here
  go,        ///< every node has accepted it
};

struct Head {
  uint32_t size = sizeof(Head);  ///< of the whole frame
  What what = What::job;
  uint8_t stream = 0;  ///< 0 stdout, 1 stderr
  uint16_t zero = 0;
  int32_t local = 0;   ///< local rank
  int32_t number = 0;  ///< of `what`
};

/// Behind it, each with a zero byte at its end: the working directory, the words, the variables as NAME=VALUE.
struct Job {
  Head head = {sizeof(Job), What::job};
  int32_t first_rank = 0;
  int32_t ranks = 0;  ///< on this node
  int32_t world = 0;  ///< ranks in all
  int32_t node = 0;
  int32_t words = 0;
  int32_t variables = 0;
};

constexpr uint32_t kMostJob = 64u << 20;  ///< bytes
constexpr int kMostRanks = 1024;          ///< of a node
constexpr int kMostOutput = 16 * 1024;    ///< bytes in an `output`

/// Beginnings of "NAME=VALUE". Of a login on one machine: each node keeps its own.
constexpr const char* kOfLogin[] = {"DBUS_SESSION_BUS_ADDRESS=",
                                    "DISPLAY=",
                                    "HOME=",
                                    "HOSTNAME=",
                                    "LOGNAME=",
                                    "MAIL=",
                                    "SHELL=",
                                    "SSH_",
                                    "USER=",
                                    "WAYLAND_DISPLAY=",
                                    "XAUTHORITY=",
                                    "XDG_RUNTIME_DIR=",
                                    "XDG_SESSION_"};
/// Of one shell: nobody gets them.
constexpr const char* kOfShell[] = {"OLDPWD=", "PWD=", "SHLVL=", "_="};

template <int kCount>
constexpr bool begins_with_one(const char* entry, const char* const (&beginnings)[kCount]) {
  for (const char* beginning : beginnings) {
    int i = 0;
    while (beginning[i] != '\0' && entry[i] == beginning[i]) ++i;
    if (beginning[i] == '\0') return true;
  }
  return false;
}

}  // namespace hpclaunch::node
