#pragma once
// One node of the launcher "ssh": its ssh, what it says until hpclaunch-node answers, and the frames from then on.
#include <poll.h>
#include <sys/types.h>

#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"
#include "shared/node_frames.h"
#include "sys/screen.h"

namespace hpclaunch::sys::ssh {

/// What a node must have, as this machine has it.
struct NodePrograms {
  std::string folder;  ///< absolute, "/opt/hpclaunch/libexec/hpclaunch"
  std::string hash;    ///< of all of them: "8f14e45fceea167a"
  std::string machine;
  std::array<std::string, 3> bytes;  ///< hpclaunch-node, hpclaunch-shim, hpclaunch-stacks
};
/// Errors: `not_found`, `system`.
Result<NodePrograms> read_programs(const std::string& folder);

/// Something that a node has told.
struct NodeEvent {
  enum class What { output, ended, line, failed } what = What::output;
  int rank = -1;
  Stream stream = Stream::out;
  int status = 0;    ///< of an ended rank, as wait(2) has it
  std::string text;  ///< output; a line of ssh; why the node has failed
  std::string hint = {};
};
using NodeEvents = std::vector<NodeEvent>;

class Connection {
 public:
  enum class State {
    waiting,     ///< for its turn
    connecting,  ///< ssh runs, and hpclaunch-node does not yet
    ready,       ///< for the job
    asked,       ///< whether the job can be started there
    accepted,    ///< it can
    running,
    over,
  };

  Connection(std::string host, int node, int first_rank, int ranks)
      : host_(std::move(host)), node_(node), first_rank_(first_rank), ranks_(ranks) {}

  /// `here`: this machine is the node, and needs no ssh. Otherwise `ssh` is the program with its options.
  Status start(const std::vector<std::string>& ssh, bool here, const NodePrograms& programs,
               const std::string& marker);
  /// `words` name programs in the folder of this machine; `common` has directory and variables (Job).
  void send_job(const std::vector<std::string>& words, int world, const std::string& directory,
                const std::vector<std::string>& variables);
  void send_go();
  void send_signal(int signal);
  void kill_transport() const;              ///< ssh itself
  void give_up() { state_ = State::over; }  ///< one that was not started
  /// Of one that waits, by clock_ms: an sshd, or a jump host, drops connections while many are being made.
  long start_at() const { return start_at_; }

  void wait_for(std::vector<pollfd>& wanted) const;
  void turn(NodeEvents& to);
  void reaped(int wait_status, NodeEvents& to);

  State state() const { return state_; }
  const std::string& host() const { return host_; }
  pid_t pid() const { return pid_; }
  int first_rank() const { return first_rank_; }
  int ranks() const { return ranks_; }
  std::size_t noise() const { return noise_; }  ///< bytes that the login has printed

 private:
  void read_output(NodeEvents& to);
  void read_errors(NodeEvents& to);
  void read_answers(NodeEvents& to);
  void read_frames(NodeEvents& to);
  void hear(const node::Head& head, std::string_view text, NodeEvents& to);
  void flush();
  void fail(std::string why, std::string hint, NodeEvents& to);
  void keep(std::string_view line);
  std::string last_line() const;

  std::string host_;
  int node_, first_rank_, ranks_;
  State state_ = State::waiting;
  const NodePrograms* programs_ = nullptr;
  std::string folder_;  // on the node
  std::string marker_;
  pid_t pid_ = -1;
  int input_ = -1, output_ = -1, errors_ = -1;
  std::string in_, error_in_, out_;
  std::vector<std::string> said_;  // lines of ssh, and of the login's noise
  std::size_t noise_ = 0;
  int ended_ = 0;  // ranks
  int drops_ = 0;  // connections before this one
  long start_at_ = 0;
  bool failed_ = false;
};

}  // namespace hpclaunch::sys::ssh
