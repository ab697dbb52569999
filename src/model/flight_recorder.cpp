// The flight recorder of PyTorch: torch/csrc/distributed/c10d/FlightRecorder.hpp and FlightRecorderDetail.hpp, versions
// 2.4 to 2.10. Debian's torch 1.13 has none.
#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/progress.h"
#include "hpclaunch/text.h"
#include "hpclaunch/traceback.h"
#include "model/pickle.h"

namespace hpclaunch::stacks {

namespace {

using Kind = PickleValue::Kind;

constexpr std::size_t kMostSizes = 100;  // bytes

// "[0, 1, 3]"
std::vector<int> members_of(std::string_view text) {
  std::vector<int> ranks;
  if (text.size() < 2 || text.front() != '[' || text.back() != ']') return ranks;
  for (const std::string_view one : split(text.substr(1, text.size() - 2), ','))
    if (const auto rank = parse_natural(trim(one))) ranks.push_back(static_cast<int>(*rank));
  std::ranges::sort(ranks);
  return ranks;
}

std::string sizes_of(const Pickle& dump, const PickleValue& value) {
  if (value.kind == Kind::whole) return std::to_string(value.whole);
  std::string text;
  for (std::size_t i = 0; i < dump.size(value) && text.size() < kMostSizes; ++i)
    if (const PickleValue& one = dump.at(value, i); one.kind == Kind::whole)
      text += fmt::format("{}{}", text.empty() ? "" : ", ", one.whole);
  return "[" + text + "]";
}

std::string all_sizes(const Pickle& dump, const PickleValue& tensors) {
  std::string text;
  for (std::size_t i = 0; i < dump.size(tensors) && text.size() < kMostSizes; ++i)
    text += (text.empty() ? "" : ", ") + sizes_of(dump, dump.at(tensors, i));
  return "[" + text + "]";
}

// The innermost frame of the user's code; they begin with the innermost one.
std::string place_of(const Pickle& dump, const PickleValue& frames) {
  for (std::size_t i = 0; i < dump.size(frames); ++i) {
    const PickleValue& frame = dump.at(frames, i);
    const std::string_view file = dump.at(frame, "filename").text;
    if (!file.empty() && !is_library(file) && file.find("torch/") == file.npos)
      return fmt::format("{}:{} {}", shown(file, 200), dump.at(frame, "line").whole,
                         shown(dump.at(frame, "name").text));
  }
  return "";
}

// "all_reduce" of "nccl:all_reduce"; "send" of "nccl:send 0->1", and the other end's place in its group.
std::string operation_of(std::string_view name, int& peer) {
  peer = -1;
  name.remove_prefix(name.find(':') + 1);  // npos + 1 is 0
  const std::size_t blank = std::min(name.find(' '), name.size());
  for (const char* arrow : {"->", "<-"})
    if (const std::size_t at = name.find(arrow); at != name.npos && at > blank)
      peer = static_cast<int>(parse_natural(name.substr(at + 2)).value_or(-1));
  return shown(name.substr(0, blank));
}

class Recorder {
 public:
  Recorder(int rank, const Pickle& dump) : rank_(rank), dump_(dump) {}

  Sequences read() {
    for (const auto& [name, config] : dump_.members(dump_.at(dump_.root(), "pg_config"))) {
      GroupProgress& one = group(name, dump_.at(*config, "desc").text);
      const PickleValue& ranks = dump_.at(*config, "ranks");
      one.ranks = members_of(ranks.text);
      for (std::size_t i = 0; i < dump_.size(ranks); ++i)
        one.ranks.push_back(static_cast<int>(dump_.at(ranks, i).whole));
    }
    const PickleValue& entries = dump_.at(dump_.root(), "entries");
    for (std::size_t i = 0; i < dump_.size(entries); ++i) entry(dump_.at(entries, i));
    const PickleValue& states = dump_.at(dump_.root(), "pg_status");
    for (const auto& [id, state] : dump_.members(states))
      if (const auto known = name_of_.find(std::string(id)); known != name_of_.end())
        status(groups_[known->second], *state);
    Sequences all;
    for (auto& [name, one] : groups_) all.push_back(std::move(one));
    return all;
  }

 private:
  GroupProgress& group(std::string_view name, std::string_view about) {
    GroupProgress& one = groups_[std::string(name)];
    if (one.group.empty())
      one.group = about.empty() || about == "undefined"
                      ? shown(name)
                      : fmt::format("{} ({})", shown(name), shown(about));
    return one;
  }

  // In the order in which they were started: the first one that has not ended is where the rank is.
  void entry(const PickleValue& one) {
    const PickleValue& names = dump_.at(one, "process_group");
    const std::string_view name = dump_.at(names, std::size_t{0}).text;
    GroupProgress& now = group(name, dump_.at(names, std::size_t{1}).text);
    name_of_[std::to_string(dump_.at(one, "pg_id").whole)] = name;
    const bool ended = dump_.at(one, "state").text == "completed";
    const bool between_two = dump_.at(one, "is_p2p").whole != 0;
    const long number = dump_.at(one, "collective_seq_id").whole;
    if (!between_two) {
      long& most = now.launched[rank_];
      most = std::max(most, number);
      if (ended) now.completed[rank_] = std::max(now.completed[rank_], number);
    }
    if (ended || now.current.contains(rank_)) return;
    int peer = -1;
    now.current[rank_] = between_two ? dump_.at(one, "p2p_seq_id").whole : number;
    now.operation[rank_] = operation_of(dump_.at(one, "profiling_name").text, peer);
    now.sizes[rank_] = all_sizes(dump_, dump_.at(one, "input_sizes"));
    if (const std::string place = place_of(dump_, dump_.at(one, "frames")); !place.empty())
      now.place[rank_] = place;
    if (peer < 0) return;
    const auto at = static_cast<std::size_t>(peer);
    now.peer[rank_] = at < now.ranks.size() ? now.ranks[at] : peer;
  }

  // Also where the ring of entries has lost them.
  void status(GroupProgress& now, const PickleValue& state) const {
    const long launched = dump_.at(state, "last_enqueued_collective").whole;
    const long completed = dump_.at(state, "last_completed_collective").whole;
    if (launched > 0) now.launched[rank_] = std::max(now.launched[rank_], launched);
    if (completed > 0) now.completed[rank_] = std::max(now.completed[rank_], completed);
  }

  int rank_;
  const Pickle& dump_;
  std::map<std::string, GroupProgress> groups_;
  std::map<std::string, std::string> name_of_;  // of groups, by pg_id
};

}  // namespace

Result<Sequences> parse_flight_recorder(int rank, std::string_view pickle) {
  constexpr std::size_t kMostBytes = 256u << 20;
  if (pickle.size() > kMostBytes)
    return Error{ErrorKind::invalid, fmt::format("flight recorder: {} bytes", pickle.size())};
  const Result<Pickle> dump = Pickle::parse(pickle);
  if (!dump) return Error{ErrorKind::invalid, "flight recorder: " + dump.error().message};
  const std::string_view version = dump->at(dump->root(), "version").text;
  if (!version.starts_with("2."))
    return Error{ErrorKind::invalid,
                 fmt::format("flight recorder: version \"{}\", not 2.x", shown(version))};
  return Recorder(rank, *dump).read();
}

Sequences merged(const std::vector<Sequences>& of_ranks) {
  std::map<std::string, GroupProgress> groups;
  for (const Sequences& one : of_ranks) {
    for (const GroupProgress& more : one) {
      GroupProgress& all = groups[more.group];
      all.group = more.group;
      if (all.ranks.empty()) all.ranks = more.ranks;
      const auto add = [](auto& to, const auto& from) { to.insert(from.begin(), from.end()); };
      add(all.launched, more.launched);
      add(all.completed, more.completed);
      add(all.current, more.current);
      add(all.operation, more.operation);
      add(all.sizes, more.sizes);
      add(all.peer, more.peer);
      add(all.place, more.place);
    }
  }
  Sequences all;
  for (auto& [name, one] : groups) all.push_back(std::move(one));
  return all;
}

std::vector<int> stuck_ranks(const GroupProgress& before, const GroupProgress& now) {
  long least = 0, most = 0;
  bool first = true;
  for (const auto& [rank, count] : now.launched) {
    least = first ? count : std::min(least, count);
    most = first ? count : std::max(most, count);
    first = false;
  }
  std::vector<int> stuck;
  if (least == most) return stuck;
  for (const auto& [rank, count] : now.launched)
    if (const auto then = before.launched.find(rank);
        count == least && then != before.launched.end() && then->second == count)
      stuck.push_back(rank);
  return stuck;
}

}  // namespace hpclaunch::stacks
