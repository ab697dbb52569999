#include "sys/supervised/relay.h"

#include <fcntl.h>
#include <unistd.h>

#include "sys/start.h"

namespace hpclaunch::sys::supervised {

Status Relay::open(bool one_target, bool always) {
  for (const int which : {0, 1}) {
    if (!always && !can_be_full(which == 0 ? STDOUT_FILENO : STDERR_FILENO)) continue;
    joined_ = which == 1 && one_target && relays_output_;
    if (joined_) continue;
    if (!pipes_[which].open()) return system_error("cannot create a pipe");
    fcntl(pipes_[which].read_end, F_SETFL, O_NONBLOCK);
    relays_output_ = relays_output_ || which == 0;
  }
  return Done{};
}

int Relay::output() const { return pipes_[0].write_end >= 0 ? pipes_[0].write_end : STDOUT_FILENO; }

int Relay::errors() const {
  if (joined_) return output();
  return pipes_[1].write_end >= 0 ? pipes_[1].write_end : STDERR_FILENO;
}

void Relay::started() {
  for (Pipe& pipe : pipes_) pipe.close_write();
}

void Relay::wait_for(Wait& wait) const {
  for (const Pipe& pipe : pipes_) wait.on(pipe.read_end);
}

bool Relay::read(bool last, Pieces& to) {
  bool some = false;
  for (const Stream stream : {Stream::out, Stream::err}) {
    Pipe& pipe = pipes_[static_cast<int>(stream)];
    if (pipe.read_end < 0) continue;
    const auto bytes = pipe.next(last);
    if (!bytes) continue;
    if (bytes->empty())
      pipe.close_read();
    else if (stream == Stream::err || joined_)
      open_line_ = bytes->back() != '\n';
    add(to, stream, *bytes);
    some = true;
  }
  return some;
}

}  // namespace hpclaunch::sys::supervised
