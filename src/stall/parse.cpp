// Reads the text of hpclaunch-stacks. It comes from another process, maybe of another node: what is too much is cut.
#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <charconv>

#include "hpclaunch/secret.h"
#include "hpclaunch/stacks.h"
#include "hpclaunch/text.h"

namespace hpclaunch::stacks {

namespace {

constexpr std::size_t kBytes = 1 << 20, kField = 512, kProcesses = 64, kThreads = 1024,
                      kFrames = 200, kLines = 256, kRasLines = 65'536;

int digit(char c) {
  if (c >= '0' && c <= '9') return c - '0';
  const char lower = to_lower(c);
  return lower >= 'a' && lower <= 'f' ? lower - 'a' + 10 : -1;
}

// "\x1b" back to a byte; "" for "-".
std::string field_text(std::string_view field) {
  if (field == "-") return "";
  std::string text;
  for (std::size_t at = 0; at < field.size() && text.size() < kField; ++at) {
    const bool escape = field[at] == '\\' && at + 3 < field.size() && field[at + 1] == 'x' &&
                        digit(field[at + 2]) >= 0 && digit(field[at + 3]) >= 0;
    if (escape) {
      text += static_cast<char>(digit(field[at + 2]) * 16 + digit(field[at + 3]));
      at += 3;
    } else {
      text += field[at];
    }
  }
  return text;
}

template <class Number>
bool read_number(std::string_view field, Number& number) {
  Number value = 0;
  const auto [end, error] = std::from_chars(field.data(), field.data() + field.size(), value);
  if (error != std::errc{} || end != field.data() + field.size() || value < 0) return false;
  number = value;
  return true;
}

// The state is one letter.
bool read_state(std::string_view field, char& state) {
  if (field.size() != 1 || to_lower(field[0]) < 'a' || to_lower(field[0]) > 'z') return false;
  state = field[0];
  return true;
}

class Parser {
 public:
  Parser(int rank, std::string host) {
    rank_.rank = rank;
    rank_.host = std::move(host);
  }

  Result<Rank> read(std::string_view text) {
    if (text.size() > kBytes) {
      text = text.substr(0, text.rfind('\n', kBytes) + 1);
      cut("bytes");
    }
    while (!text.empty() && !ended_) {
      ++line_;
      const std::size_t end = text.find('\n');
      if (end == text.npos) break;  // half a line is none
      if (!take(split(text.substr(0, end), '\t')))
        return Error{
            ErrorKind::invalid,
            fmt::format("line {} of the stacks of rank {} is malformed", line_, rank_.rank)};
      if (later_)
        return Error{ErrorKind::unsupported,
                     fmt::format("the stacks of rank {} are in a later format (version {})",
                                 rank_.rank, shown(*later_, 20)),
                     "use the same version of hpclaunch on all nodes"};
      text.remove_prefix(end + 1);
    }
    if (rank_.processes.empty() && rank_.missing.empty())
      return Error{ErrorKind::invalid,
                   fmt::format("no process in the stacks of rank {}", rank_.rank)};
    if (!ended_ && rank_.missing.empty()) cut("bytes");
    close_thread();
    return std::move(rank_);
  }

 private:
  using Fields = std::vector<std::string_view>;

  void cut(std::string_view what) {
    if (rank_.cut.size() < kLines && std::ranges::count(rank_.cut, what) == 0)
      rank_.cut.emplace_back(what);
  }

  void close_thread() {  // its frames come innermost first
    if (thread_ != nullptr) std::ranges::reverse(thread_->frames);
    thread_ = nullptr;
  }

  bool take(const Fields& fields) {
    const std::string_view kind = fields[0];
    if (line_ == 1 && kind != "stacks" && kind != "missing") return false;
    if (kind == "stacks") return head(fields);
    if (kind == "missing")
      return fields.size() == 2 && !(rank_.missing = field_text(fields[1])).empty();
    if (kind == "process") return process(fields);
    if (kind == "thread") return thread(fields);
    if (kind == "frame") return frame(fields);
    if (kind == "end") return ended_ = true;
    if (fields.size() < 2) return kind.empty() || kind.find('\\') == kind.npos;
    if (kind == "unread" && process_ != nullptr) process_->unread = field_text(fields[1]);
    if (kind == "cut") cut(field_text(fields[1]));
    if (kind == "ras" && rank_.ras.size() < kRasLines) rank_.ras.push_back(field_text(fields[1]));
    if (kind == "socket" && fields.size() == 3 && process_ != nullptr &&
        process_->sockets.size() < kThreads)
      process_->sockets[field_text(fields[1])] = field_text(fields[2]);
    return true;  // records of later versions are skipped
  }

  bool head(const Fields& fields) {
    long long at = 0;
    if (fields.size() >= 2 && fields[1] != "1") {
      later_ = field_text(fields[1]);
      return true;
    }
    if (line_ != 1 || fields.size() != 3 || !read_number(fields[2], at)) return false;
    rank_.at = static_cast<double>(at) / 1000;
    return true;
  }

  bool process(const Fields& fields) {
    Process one;
    if (fields.size() != 10 || !read_number(fields[1], one.pid) ||
        !read_number(fields[2], one.parent) || !read_state(fields[3], one.state) ||
        !read_number(fields[4], one.cpu_ms) || !read_number(fields[5], one.switches) ||
        (fields[6] != "-" && !read_number(fields[6], one.bytes)))
      return false;
    one.python = field_text(fields[7]);
    one.name = field_text(fields[8]);
    std::vector<std::string> words;
    const std::string command = field_text(fields[9]);
    for (const std::string_view word : split(command, ' ')) words.emplace_back(word);
    one.command = joined(without_secrets(std::move(words)), " ");
    close_thread();
    process_ = nullptr;
    if (rank_.processes.size() == kProcesses) {
      cut("processes");
      return true;
    }
    process_ = &rank_.processes.emplace_back(std::move(one));
    return true;
  }

  bool thread(const Fields& fields) {
    Thread one;
    if (fields.size() != 11 || !read_number(fields[1], one.tid) ||
        !read_state(fields[2], one.state) || !read_number(fields[4], one.cpu_ms) ||
        !read_number(fields[5], one.switches))
      return false;
    if (fields[7] == "running")
      one.system_call = -2;
    else if (fields[7] != "-" && !read_number(fields[7], one.system_call))
      return false;
    one.main = fields[3] == "main";
    one.wchan = field_text(fields[6]);
    one.waits_for = field_text(fields[8]);
    one.has_gil = fields[9] == "gil";
    one.name = field_text(fields[10]);
    close_thread();
    if (process_ == nullptr) return !rank_.processes.empty();  // of one that was cut
    if (threads_ == kThreads) {
      cut("threads");
      return true;
    }
    ++threads_;
    thread_ = &process_->threads.emplace_back(std::move(one));
    return true;
  }

  bool frame(const Fields& fields) {
    Frame one;
    if (fields.size() != 4 || !read_number(fields[1], one.line)) return false;
    one.function = field_text(fields[2]);
    one.file = field_text(fields[3]);
    if (thread_ == nullptr) return !rank_.processes.empty();
    if (thread_->frames.size() == kFrames)
      cut("frames");
    else
      thread_->frames.push_back(std::move(one));
    return true;
  }

  Rank rank_;
  Process* process_ = nullptr;
  Thread* thread_ = nullptr;
  std::size_t threads_ = 0;
  int line_ = 0;
  bool ended_ = false;
  std::optional<std::string> later_;
};

}  // namespace

Result<Rank> parse(int rank, std::string host, std::string_view text) {
  return Parser(rank, std::move(host)).read(text);
}

}  // namespace hpclaunch::stacks
