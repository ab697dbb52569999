#include "sys/questions.h"

#include <fmt/format.h>
#include <sys/epoll.h>
#include <sys/socket.h>
#include <sys/stat.h>
#include <sys/un.h>
#include <unistd.h>

#include <algorithm>
#include <array>
#include <cerrno>
#include <cstddef>
#include <cstring>
#include <utility>

#include "hpclaunch/progress.h"
#include "hpclaunch/text.h"
#include "sys/start.h"

namespace hpclaunch::sys {
namespace {

constexpr long kPatience = 4000;  // ms for all ranks to answer
constexpr long kSilence =
    3000;  // for those of which nothing is heard, when they are all that is missing
constexpr long kPatienceAgain = 700;  // for those that did not answer the last question either
constexpr std::size_t kMostText = 512 * 1024;  // of one rank
constexpr std::size_t kMostClients = 16;
constexpr std::size_t kMostRequest = 64;

// "stacks 1\n" with the threads of Python that are not its main one as well.
constexpr std::string_view kRequest = "stacks ";

struct Address {
  sockaddr_un at{};
  socklen_t size = 0;
  const sockaddr* get() const { return reinterpret_cast<const sockaddr*>(&at); }
};

// An abstract one leaves nothing behind; who is at its other end is asked of the kernel. Containers may share a network
// namespace, and so these names, but not process IDs: the inode is that of their namespace, 0 without /proc.
Address address_of(int pid) {
  struct stat pids {};
  if (stat("/proc/self/ns/pid", &pids) != 0) pids.st_ino = 0;
  Address address;
  address.at.sun_family = AF_UNIX;
  const std::string name = fmt::format("hpclaunch-run-{}-{}", pids.st_ino, pid);
  std::memcpy(address.at.sun_path + 1, name.data(), name.size());
  address.size = static_cast<socklen_t>(offsetof(sockaddr_un, sun_path) + 1 + name.size());
  return address;
}

bool is_ours(int fd) {
  ucred peer{};
  socklen_t size = sizeof peer;
  return getsockopt(fd, SOL_SOCKET, SO_PEERCRED, &peer, &size) == 0 &&
         (peer.uid == geteuid() || peer.uid == 0);
}

std::string encoded(const std::vector<RankStacks>& ranks) {
  std::string text = fmt::format("ranks {}\n", ranks.size());
  for (const RankStacks& rank : ranks)
    text += fmt::format("{} {} {}\n{}{}{}", rank.host.size(), rank.missing.size(), rank.text.size(),
                        rank.host, rank.missing, rank.text);
  return text;
}

// The next number of a line, behind which is `end`; -1: there is none.
long take_number(std::string_view& text, char end) {
  const std::size_t size = text.find(end);
  const std::optional<long> number =
      size != text.npos ? parse_natural(text.substr(0, size)) : std::nullopt;
  if (!number) return -1;
  text.remove_prefix(size + 1);
  return *number;
}

std::optional<std::vector<RankStacks>> decoded(std::string_view text) {
  constexpr std::string_view kHead = "ranks ";
  if (!text.starts_with(kHead)) return std::nullopt;
  text.remove_prefix(kHead.size());
  const long count = take_number(text, '\n');
  std::vector<RankStacks> ranks;
  for (long i = 0; i < count; ++i) {
    RankStacks rank;
    const std::array<long, 3> sizes = {take_number(text, ' '), take_number(text, ' '),
                                       take_number(text, '\n')};
    std::string* const parts[] = {&rank.host, &rank.missing, &rank.text};
    for (std::size_t part = 0; part < sizes.size(); ++part) {
      if (sizes[part] < 0 || static_cast<std::size_t>(sizes[part]) > text.size())
        return std::nullopt;
      *parts[part] = text.substr(0, static_cast<std::size_t>(sizes[part]));
      text.remove_prefix(static_cast<std::size_t>(sizes[part]));
    }
    ranks.push_back(std::move(rank));
  }
  if (count < 1) return std::nullopt;
  return ranks;
}

}  // namespace

Questions::~Questions() {
  for (const auto& [fd, client] : clients_) close(fd);
  for (const int fd : {listening_, events_})
    if (fd >= 0) close(fd);
}

void Questions::listen(int pid) {
  const Address address = address_of(pid);
  listening_ = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  events_ = epoll_create1(EPOLL_CLOEXEC);
  epoll_event event{EPOLLIN, {.fd = listening_}};
  if (listening_ >= 0 && events_ >= 0 && bind(listening_, address.get(), address.size) == 0 &&
      ::listen(listening_, kMostClients) == 0 &&
      epoll_ctl(events_, EPOLL_CTL_ADD, listening_, &event) == 0)
    return;
  for (int* const fd : {&listening_, &events_})
    if (*fd >= 0) close(std::exchange(*fd, -1));
}

void Questions::ask(bool all_threads, Answer answer, int client) {
  wanted_.push_back({all_threads, std::move(answer), client});
  if (wanted_.size() == 1) next();
}

void Questions::next() {
  const auto count = static_cast<std::size_t>(ranks_.count);
  ++number_;
  answers_.assign(count, {});
  open_.assign(count, true);
  heard_.assign(count, false);
  left_ = ranks_.count;
  reading_ = 0;
  asked_at_ = clock_ms();
  late_.resize(count);
  awaited_ = static_cast<int>(std::ranges::count(late_, Late::no));
  for (int rank = 0; rank < ranks_.count; ++rank) {
    answers_[rank].host = ranks_.host(rank);
    if (const std::string missing = ranks_.missing(rank); !missing.empty()) settle(rank, missing);
  }
  if (left_ > 0) ranks_.ask(number_, wanted_.front().all_threads);
  shorten();
}

// Nothing is to come, or only from those that did not answer the last question either: two take no longer than one.
void Questions::shorten() {
  const long patience = awaited_ == 0 ? kPatienceAgain : reading_ > 0 ? kPatience : kSilence;
  limit_ = left_ == 0 ? clock_ms() : asked_at_ + patience;
}

void Questions::settle(int rank, const std::string& missing) {
  if (!open_[rank]) return;
  open_[rank] = false;
  --left_;
  if (late_[rank] == Late::no) --awaited_;
  if (heard_[rank]) --reading_;
  if (answers_[rank].text.empty())
    answers_[rank].missing = missing.empty() ? "its stacks could not be read" : missing;
}

void Questions::hear(int number, int rank, std::string_view piece, bool last) {
  if (late_.empty()) return;  // nobody has asked yet
  const bool open = !wanted_.empty() && open_[rank];
  if (late_[rank] == Late::silent || (late_[rank] == Late::slow && last)) {
    if (open) ++awaited_;
    late_[rank] = Late::no;
  }
  if (!open || number != number_) return;
  if (!heard_[rank]) ++reading_;
  heard_[rank] = true;
  std::string& text = answers_[rank].text;
  if (text.size() + piece.size() <= kMostText) text += piece;
  if (last) settle(rank, "");
  shorten();
}

void Questions::lose(int rank) {
  if (wanted_.empty() || !open_[rank]) return;
  answers_[rank].text.clear();
  settle(rank, ranks_.missing(rank));
  shorten();
}

void Questions::turn() {
  std::array<epoll_event, 16> ready{};
  const int count =
      events_ < 0 ? 0 : epoll_wait(events_, ready.data(), static_cast<int>(ready.size()), 0);
  for (int i = 0; i < count; ++i) {
    if (ready[i].data.fd == listening_)
      accept();
    else
      serve(ready[i].data.fd, ready[i].events);
  }
  while (!wanted_.empty() && clock_ms() >= limit_) {
    for (int rank = 0; rank < ranks_.count; ++rank)
      if (open_[rank]) {
        answers_[rank].text.clear();
        settle(rank, std::string(heard_[rank] ? stacks::kTooSlow : stacks::kNoAnswer));
        late_[rank] = heard_[rank] ? Late::slow : Late::silent;
      }
    choose_ras_rank();
    const Answer answer = std::move(wanted_.front().answer);
    wanted_.pop_front();
    const std::vector<RankStacks> answers = std::move(answers_);
    limit_ = kNever;
    answer(answers);
    if (!wanted_.empty() && limit_ == kNever) next();
  }
}

// The next node whose first rank has answered.
void Questions::choose_ras_rank() {
  if (answers_[ras_rank_].text.find("\nras\t") != std::string::npos) return;
  for (int next = 1; next < ranks_.count; ++next) {
    const int rank = (ras_rank_ + next) % ranks_.count;
    const bool first = rank == 0 || answers_[rank - 1].host != answers_[rank].host;
    if (!first || answers_[rank].text.empty() || answers_[rank].host == answers_[ras_rank_].host)
      continue;
    ras_rank_ = rank;
    return;
  }
}

void Questions::accept() {
  const int fd = accept4(listening_, nullptr, nullptr, SOCK_NONBLOCK | SOCK_CLOEXEC);
  if (fd < 0) {  // without a descriptor it would be announced for ever
    if (errno == EMFILE || errno == ENFILE) epoll_ctl(events_, EPOLL_CTL_DEL, listening_, nullptr);
    return;
  }
  if (clients_.size() >= kMostClients || !is_ours(fd)) {
    close(fd);
    return;
  }
  clients_[fd];
  epoll_event event{EPOLLIN, {.fd = fd}};
  epoll_ctl(events_, EPOLL_CTL_ADD, fd, &event);
}

void Questions::serve(int fd, unsigned what) {
  const auto found = clients_.find(fd);
  if (found == clients_.end()) return;
  Client& client = found->second;
  if ((what & EPOLLOUT) != 0) {
    const std::string_view rest = std::string_view(client.out).substr(client.sent);
    const ssize_t sent = send(fd, rest.data(), rest.size(), MSG_NOSIGNAL | MSG_DONTWAIT);
    if (sent < 0 && (errno == EAGAIN || errno == EINTR)) return;
    if (sent > 0) client.sent += static_cast<std::size_t>(sent);
    if (sent < 0 || client.sent == client.out.size()) close_client(fd);
    return;
  }
  if (!read_some(fd, client.in) || client.in.size() > kMostRequest) return close_client(fd);
  if (client.asked || !client.in.ends_with('\n')) return;
  if (!client.in.starts_with(kRequest)) return close_client(fd);
  client.asked = true;
  ask(
      client.in[kRequest.size()] == '1',
      [this, fd](const std::vector<RankStacks>& ranks) {
        const auto asker = clients_.find(fd);
        if (asker == clients_.end() || !asker->second.asked) return;  // it has gone
        asker->second.out = encoded(ranks);
        epoll_event event{EPOLLOUT, {.fd = fd}};
        epoll_ctl(events_, EPOLL_CTL_MOD, fd, &event);
      },
      fd);
}

void Questions::close_client(int fd) {
  clients_.erase(fd);
  close(fd);
  // What it waited for is put to nobody, but the question that is being asked.
  if (!wanted_.empty())
    wanted_.erase(std::remove_if(wanted_.begin() + 1, wanted_.end(),
                                 [&](const Wanted& one) { return one.client == fd; }),
                  wanted_.end());
}

Result<std::vector<RankStacks>> ask_stacks(int pid, bool all_threads) {
  const Address address = address_of(pid);
  const int fd = socket(AF_UNIX, SOCK_STREAM | SOCK_NONBLOCK | SOCK_CLOEXEC, 0);
  if (fd < 0 || connect(fd, address.get(), address.size) != 0 || !is_ours(fd)) {
    if (fd >= 0) close(fd);
    return Error{ErrorKind::not_found,
                 fmt::format("no launch of yours with process ID {} on this machine", pid),
                 "hpclaunch stacks"};
  }
  std::string answer;
  const std::string request = fmt::format("{}{}\n", kRequest, all_threads ? 1 : 0);
  const bool asked = send(fd, request.data(), request.size(), MSG_NOSIGNAL) > 0;
  const long limit = clock_ms() + 2 * kPatience;
  while (asked && clock_ms() < limit) {
    Wait wait;
    wait.on(fd);
    wait.until(limit);
    wait.run();
    if (wait.ready(fd) && !read_some(fd, answer)) break;
  }
  close(fd);
  std::optional<std::vector<RankStacks>> ranks = decoded(answer);
  if (ranks) return *std::move(ranks);
  return Error{ErrorKind::system, fmt::format("the launch with process ID {} did not answer", pid),
               ""};
}

}  // namespace hpclaunch::sys
