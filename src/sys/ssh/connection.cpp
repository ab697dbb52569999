#include "sys/ssh/connection.h"

#include <fcntl.h>
#include <fmt/format.h>
#include <sys/utsname.h>
#include <sys/wait.h>
#include <unistd.h>

#include <algorithm>
#include <cerrno>
#include <csignal>
#include <cstring>
#include <utility>

#include "hpclaunch/events.h"
#include "hpclaunch/sys.h"
#include "hpclaunch/text.h"
#include "shared/frames.h"
#include "sys/ssh/node_script.h"
#include "sys/start.h"

namespace hpclaunch::sys::ssh {

namespace {

constexpr std::size_t kMostNoise = 64 * 1024;  // kept of what is no answer
constexpr std::size_t kMostSaid = 8;           // lines
constexpr std::size_t kEndless = 4 << 20;      // bytes of noise

// What ssh says, and what helps.
constexpr std::pair<std::string_view, std::string_view> kHints[] = {
    {"Host key verification failed", "ssh {0} true, once by hand: it shows the key and stores it"},
    {"REMOTE HOST IDENTIFICATION HAS CHANGED",
     "ssh-keygen -R {0}, if the node was installed again; then ssh {0} true"},
    {"Permission denied",
     "ssh-copy-id {0}, or ssh-add for a key with a passphrase: ssh asks for none"},
    {"Could not resolve hostname",
     "ssh {0} true, until it works: HostName in ~/.ssh/config names the address"},
};

constexpr int kMostDrops = 10;

// What ssh says where sshd has closed the connection before it knew the user (MaxStartups).
bool is_drop(std::string_view line) {
  return line.find("kex_exchange_identification") != line.npos ||
         line.find("Connection closed by") != line.npos ||
         line.find("Connection reset by") != line.npos;
}

std::string hint_of(std::string_view why, const std::string& host) {
  for (const auto& [part, hint] : kHints)
    if (why.find(part) != why.npos) return fmt::format(fmt::runtime(hint), host);
  return fmt::format("ssh {} true, until it works without a question", host);
}

void set_nonblocking(int fd) { fcntl(fd, F_SETFL, fcntl(fd, F_GETFL) | O_NONBLOCK); }

void close_it(int& fd) {
  if (fd >= 0) close(fd);
  fd = -1;
}

// False: nothing now. `fd` becomes -1 at its end.
bool read_piece(int& fd, std::string& into) {
  if (fd < 0) return false;
  std::array<char, 65'536> bytes;  // NOLINT: filled by read
  const ssize_t size = read(fd, bytes.data(), bytes.size());
  if (size > 0) into.append(bytes.data(), static_cast<std::size_t>(size));
  if (size == 0 || (size < 0 && errno != EAGAIN && errno != EINTR)) close_it(fd);
  return size > 0;
}

std::string with_folder(std::string word, const std::string& ours, const std::string& theirs) {
  for (std::size_t at = 0; (at = word.find(ours + "/", at)) != word.npos; at += theirs.size())
    word.replace(at, ours.size(), theirs);
  return word;
}

// node.sh as one line.
std::string node_script() {
  std::string script;
  for (const std::string_view line : split(kNodeScript, '\n'))
    if (!line.starts_with('#')) script.append(line).append(" ");
  return script;
}

template <class T>
void append(std::string& to, const T& value) {
  to.append(reinterpret_cast<const char*>(&value), sizeof value);
}

}  // namespace

Result<NodePrograms> read_programs(const std::string& folder) {
  constexpr std::array<const char*, 3> kNames = {"hpclaunch-node", "hpclaunch-shim",
                                                 "hpclaunch-stacks"};
  NodePrograms programs;
  programs.folder = folder;
  std::string all;
  for (std::size_t i = 0; i < kNames.size(); ++i) {
    const Result<std::string> bytes = read_file(folder + "/" + kNames[i]);
    if (!bytes) return bytes.error();
    programs.bytes[i] = *bytes;
    all += *bytes;
  }
  programs.hash =
      fmt::format("{:016x}", channel::siphash({}, reinterpret_cast<const std::uint8_t*>(all.data()),
                                              static_cast<unsigned>(all.size())));
  utsname machine{};
  uname(&machine);
  programs.machine = machine.machine;
  return programs;
}

Status Connection::start(const std::vector<std::string>& ssh, bool here,
                         const NodePrograms& programs, const std::string& marker) {
  programs_ = &programs;
  marker_ = marker;
  std::vector<std::string> argv = {programs.folder + "/hpclaunch-node", marker, programs.folder};
  if (!here) {
    argv = ssh;
    argv.push_back(host_);
    argv.push_back(fmt::format("exec sh -c '{}' hpclaunch-node {} {} {} {} {} {}", node_script(),
                               marker, programs.hash, programs.machine, programs.bytes[0].size(),
                               programs.bytes[1].size(), programs.bytes[2].size()));
  }
  std::array<Pipe, 3> pipes;
  for (Pipe& pipe : pipes)
    if (!pipe.open()) return system_error(fmt::format("{}: cannot create a pipe", host_));
  // In a session of its own, it has no terminal to ask on, and a Ctrl-C is for us.
  const Result<pid_t> pid = start_program(argv, nullptr,
                                          {.input = pipes[0].read_end,
                                           .output = pipes[1].write_end,
                                           .errors = pipes[2].write_end,
                                           .group = Start::Group::own_session,
                                           .when_we_die = here ? SIGTERM : SIGKILL,
                                           .default_pipe = true});
  if (!pid) return pid.error();
  pid_ = *pid;
  input_ = std::exchange(pipes[0].write_end, -1);
  output_ = std::exchange(pipes[1].read_end, -1);
  errors_ = std::exchange(pipes[2].read_end, -1);
  for (const int fd : {input_, output_, errors_}) set_nonblocking(fd);
  state_ = State::connecting;
  return Done{};
}

void Connection::send_job(const std::vector<std::string>& words, int world,
                          const std::string& directory, const std::vector<std::string>& variables) {
  node::Job job;
  job.first_rank = first_rank_;
  job.ranks = ranks_;
  job.world = world;
  job.node = node_;
  job.words = static_cast<std::int32_t>(words.size());
  job.variables = static_cast<std::int32_t>(variables.size());
  std::string text;
  const auto add_string = [&](const std::string& one) { text.append(one.c_str(), one.size() + 1); };
  add_string(directory);
  // Up to the shim the words are ours: a container's are among them.
  bool ours = true;
  for (const std::string& word : words) {
    add_string(ours ? with_folder(word, programs_->folder, folder_) : word);
    ours = ours && word != programs_->folder + "/hpclaunch-shim";
  }
  for (const std::string& one : variables) add_string(one);
  job.head.size += static_cast<std::uint32_t>(text.size());
  append(out_, job);
  out_ += text;
  state_ = State::asked;
  flush();
}

void Connection::send_go() {
  const node::Head head{.what = node::What::go};
  append(out_, head);
  state_ = State::running;
  flush();
}

void Connection::send_signal(int signal) {
  if (state_ != State::running) return;
  node::Head head{.what = node::What::signal};
  head.number = signal;
  append(out_, head);
  flush();
}

void Connection::kill_transport() const {
  if (pid_ > 0 && state_ != State::over) kill(pid_, SIGKILL);
}

void Connection::wait_for(std::vector<pollfd>& wanted) const {
  for (const int fd : {output_, errors_})
    if (fd >= 0) wanted.push_back({fd, POLLIN, 0});
  if (input_ >= 0 && !out_.empty()) wanted.push_back({input_, POLLOUT, 0});
}

void Connection::flush() {
  while (input_ >= 0 && !out_.empty()) {
    const ssize_t size = write(input_, out_.data(), out_.size());
    if (size < 0 && errno == EINTR) continue;
    if (size < 0 && errno == EAGAIN) return;
    if (size < 0) return close_it(input_);
    out_.erase(0, static_cast<std::size_t>(size));
  }
}

void Connection::turn(NodeEvents& to) {
  flush();
  read_errors(to);
  if (read_piece(output_, in_)) read_output(to);
}

void Connection::read_output(NodeEvents& to) {
  if (state_ == State::connecting) read_answers(to);
  if (state_ != State::connecting) read_frames(to);
}

void Connection::read_errors(NodeEvents& to) {
  while (read_piece(errors_, error_in_)) {
  }
  const auto use = [&](std::string_view line) {
    if (line.ends_with('\r')) line.remove_suffix(1);
    if (state_ == State::running)
      to.push_back({.what = NodeEvent::What::line, .text = std::string(line)});
    if (trim(line).empty()) return;
    keep(line);
  };
  take_lines(error_in_, use);
  if (errors_ < 0 && !error_in_.empty()) use(std::exchange(error_in_, ""));
}

// Before its marker everything is noise of the login.
void Connection::read_answers(NodeEvents& to) {
  for (std::size_t end = 0; state_ == State::connecting && (end = in_.find('\n')) != in_.npos;) {
    const std::string line = in_.substr(0, end);
    const std::size_t at = line.find(marker_ + " ");  // behind a prompt without a newline
    in_.erase(0, end + 1);
    if (at == line.npos) {
      noise_ += end + 1;
      if (!trim(line).empty()) keep(line);
      if (noise_ <= kEndless) continue;
      in_.clear();
      return fail("its login prints without end",
                  fmt::format("ssh {} true, until it prints nothing", host_), to);
    }
    const std::string_view answer = std::string_view(line).substr(at + marker_.size() + 1);
    const std::size_t blank = answer.find(' ');
    const std::string_view what = answer.substr(0, blank);
    const std::string rest(blank == answer.npos ? "" : answer.substr(blank + 1));
    if (what == "send") {
      for (const std::string& bytes : programs_->bytes) out_ += bytes;
      flush();
    } else if (what == "ready") {
      folder_ = rest;
      state_ = State::ready;
    } else if (what == "machine") {
      fail(fmt::format("it is {}, and the programs of this installation are for {}", rest,
                       programs_->machine),
           "start hpclaunch on such a machine, for nodes of one kind", to);
    } else {
      fail(fmt::format("no folder for hpclaunch-shim ({})", rest),
           fmt::format(
               "make one of these folders usable on {}: yours, with space, not mounted noexec",
               host_),
           to);
    }
  }
  if (state_ == State::connecting && in_.size() > kMostNoise) {
    noise_ += in_.size();
    in_.clear();
  }
}

void Connection::read_frames(NodeEvents& to) {
  std::size_t used = 0;
  while (in_.size() - used >= sizeof(node::Head)) {
    node::Head head;
    std::memcpy(&head, in_.data() + used, sizeof head);
    if (head.size < sizeof head || head.size > node::kMostOutput + sizeof head || head.local < 0 ||
        head.local >= ranks_) {
      fail("its answers cannot be read: something else writes to them", hint_of("", host_), to);
      in_.clear();
      return kill_transport();
    }
    if (in_.size() - used < head.size) break;
    hear(head, std::string_view(in_).substr(used + sizeof head, head.size - sizeof head), to);
    used += head.size;
  }
  in_.erase(0, used);
}

void Connection::hear(const node::Head& head, std::string_view text, NodeEvents& to) {
  NodeEvent event{.rank = first_rank_ + head.local, .text = std::string(text)};
  if (head.what == node::What::output) {
    event.stream = head.stream == 0 ? Stream::out : Stream::err;
    to.push_back(std::move(event));
  } else if (head.what == node::What::ended) {
    ++ended_;
    event.what = NodeEvent::What::ended;
    event.status = head.number;
    to.push_back(std::move(event));
  } else if (head.what == node::What::accepted) {
    if (state_ == State::asked) state_ = State::accepted;
  } else if (head.what == node::What::refused) {
    fail(fmt::format("{}: {}", text, std::strerror(head.number)),
         head.number == ENOENT ? "start from a directory that all nodes have" : "", to);
  }
}

void Connection::keep(std::string_view line) {
  said_.emplace_back(line);
  if (said_.size() > kMostSaid) said_.erase(said_.begin());
}

std::string Connection::last_line() const {
  for (auto line = said_.rbegin(); line != said_.rend(); ++line)
    for (const auto& [part, hint] : kHints)
      if (line->find(part) != line->npos) return *line;
  return said_.empty() ? "" : said_.back();
}

void Connection::fail(std::string why, std::string hint, NodeEvents& to) {
  if (std::exchange(failed_, true)) return;
  to.push_back({.what = NodeEvent::What::failed, .text = std::move(why), .hint = std::move(hint)});
}

void Connection::reaped(int wait_status, NodeEvents& to) {
  // A process that ssh has left in the background may keep its pipes open.
  while (read_piece(output_, in_)) {
  }
  read_errors(to);
  read_output(to);
  for (int* fd : {&input_, &output_, &errors_}) close_it(*fd);
  const bool running = state_ == State::running;
  if (state_ == State::connecting && drops_ < kMostDrops && std::ranges::any_of(said_, is_drop)) {
    constexpr long kPause = 100, kMostPause = 2000;  // ms
    start_at_ = clock_ms() + std::min(kMostPause, kPause * (1L << drops_++)) + node_ % 100;
    state_ = State::waiting;
    pid_ = -1;
    said_.clear();
    for (std::string* rest : {&in_, &out_, &error_in_}) rest->clear();
    return;
  }
  state_ = State::over;
  pid_ = -1;
  if (running && ended_ == ranks_) return;
  const std::string last = last_line();
  const int status =
      WIFEXITED(wait_status) ? WEXITSTATUS(wait_status) : 128 + WTERMSIG(wait_status);
  if (running)
    return fail(fmt::format("connection lost{}{}", last.empty() ? "" : ": ", last), "", to);
  fail(last.empty() ? fmt::format("ssh ended with {} before the node answered", status)
                    : fmt::format("{} (ssh ended with {})", last, status),
       hint_of(last, host_), to);
}

}  // namespace hpclaunch::sys::ssh
