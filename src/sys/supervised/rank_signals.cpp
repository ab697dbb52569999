#include "sys/supervised/rank_signals.h"

#include <fmt/format.h>
#include <unistd.h>

#include <algorithm>
#include <csignal>

#include "hpclaunch/text.h"

namespace hpclaunch::sys::supervised {

void RankSignals::send(int signal) {
  if (ends_programs(signal) || signal == SIGKILL) pending_ = signal;
  if (signal == SIGKILL) return channel_.send_signal(signal, channel::kAllRanks);
  // One by one: a rank whose `begun` is still on its way gets it then, and must not get it twice.
  for (int rank = 0; rank < ranks_; ++rank) {
    const bool has_it = !got_.empty() && got_[static_cast<std::size_t>(rank)] == signal;
    if (!has_it && !verdict_.has_ended(rank)) channel_.send_signal(signal, rank);
  }
}

void RankSignals::send_later(int signal, long now) {
  constexpr long kBatchPatience = 5000;  // ms
  later_ = signal;
  later_at_ = now + kBatchPatience;
}

void RankSignals::begun(int rank) {
  if (pending_ != 0) channel_.send_signal(pending_, rank);
}

void RankSignals::has_got(int signal, int rank) {
  got_.resize(static_cast<std::size_t>(ranks_));
  got_[static_cast<std::size_t>(rank)] = signal;
}

void RankSignals::advance(long now) {
  if (later_at_ == kNever || now < later_at_) return;
  later_at_ = kNever;
  send(later_);
}

}  // namespace hpclaunch::sys::supervised
