#pragma once
// Where hpclaunch listens for the monitors of the ranks: one connection for each node, docs/reference/channel.md.
#include <array>
#include <cstdint>
#include <deque>
#include <map>
#include <string>
#include <utility>
#include <vector>

#include "hpclaunch/result.h"
#include "hpclaunch/sys.h"
#include "shared/frames.h"

namespace hpclaunch::sys::supervised {

/// What a monitor has told, or its silence.
struct Event {
  channel::What what = channel::What::begun;
  RankExit end;  ///< `rank`, `pid`; of an end all, with `seconds` as UNIX time here
  std::string
      text;        ///< of a begun rank its host; of an ended one its last output; of stacks a piece
  int number = 0;  ///< errno of a log, a signal, or of the question
  bool last = false;  ///< the piece
  bool gone =
      false;  ///< the connection of a rank that has not ended has: `end.rank`, `end.seconds`
};

/// Connections that have not shown the key, beside one for each node: more only when somebody floods us.
inline constexpr std::size_t kMostStrangers = 4096;

class Channel {
 public:
  Channel() = default;
  Channel(const Channel&) = delete;
  Channel& operator=(const Channel&) = delete;
  ~Channel();

  /// Raises the limit of open files: one for each node. Listens on the first free port of `ports`, {0, 0} for any. Each end of a connection which is silent for
  /// `lost_seconds` is lost. Errors: `system`, with what to do.
  Status open(const ChannelPlace& place, int ranks, int nodes, int lost_seconds,
              std::size_t most_strangers = kMostStrangers);
  /// HPCLAUNCH_CHANNEL for the shims.
  const std::string& variable() const { return variable_; }
  /// "10.0.0.1 port 4711"
  std::string where() const;
  /// Readable when turn() has something to do; -1: it is not open.
  int fd() const { return events_; }
  long deadline() const;  ///< as Wait::until
  /// What has come, of some hundred connections at once: there may be more().
  std::vector<Event> turn();
  bool more() const { return more_; }
  void send_signal(int signal, int rank);  ///< rank: or channel::kAllRanks
  void release(int rank);
  /// All ranks for their stacks, and one of them NCCL's RAS.
  void ask(int number, bool all_threads, int ras_port, int ras_rank);
  void flush();  ///< sends what these have left; turn() does as well

 private:
  struct Peer {
    bool known = false;  // it has the key
    int node = -1;
    long since = 0;
    channel::Nonce nonce;
    std::string in, out;
    bool waits = false;  // for room in its socket
    std::vector<int> ranks = {};
  };
  void accept_all();
  void read(int fd, std::vector<Event>& to);
  bool take(int fd, Peer& peer, const channel::Head& head, std::string_view frame,
            std::vector<Event>& to);
  bool greet(int fd, Peer& peer, std::string_view frame);
  void send(int fd, Peer& peer, std::string_view bytes);
  void send_to_all(std::string_view bytes);
  bool flush(int fd, Peer& peer);
  void drop(int fd, std::vector<Event>& to);
  void lose(int rank, std::vector<Event>& to);
  void limit_strangers(std::vector<Event>& to);

  int listening_ = -1;
  int events_ = -1;
  int spare_ = -1;  // a descriptor for refusing a connection when there is none
  channel::Key key_;
  std::string variable_;
  ChannelPlace place_;
  int ranks_ = 0, nodes_ = 0, lost_seconds_ = 0;
  std::size_t most_strangers_ = 0;
  bool more_ = false;
  std::map<int, Peer> peers_;  // by descriptor
  std::deque<int> strangers_;  // without the key so far, the oldest first
  std::vector<int> unsent_;    // descriptors of peers with `out`, some of them closed or twice
  std::vector<int> of_rank_;   // its connection; -1: none
  std::vector<bool> ended_, released_;
};

}  // namespace hpclaunch::sys::supervised
