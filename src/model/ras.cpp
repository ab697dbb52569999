// The answer of NCCL's RAS to `verbose status`: src/ras/client_support.cc of NCCL, docs/userguide/source/troubleshooting/ras.rst.
// The text of 2.24 and later has counts where ranks differ; JSON, of 2.28.7 and later, has all.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <set>

#include "hpclaunch/progress.h"
#include "hpclaunch/text.h"

namespace hpclaunch::stacks {

namespace {

using Json = nlohmann::json;

constexpr long kMostRanks = 1'000'000;
constexpr long kMostNumber = 9'000'000'000'000'000'000;

Error bad(std::string_view what) {
  return {ErrorKind::invalid, fmt::format("RAS: {}", what),
          "nc localhost PORT, with the port of NCCL_RAS_ADDR, and type: verbose status"};
}

// Of "  26 ranks have launched up to operation 6650" 26 and 6650: the numbers around `words`.
std::optional<std::pair<long, long>> around(std::string_view line, std::string_view words) {
  const std::size_t at = line.find(words);
  if (at == line.npos) return std::nullopt;
  const std::string_view behind = line.substr(at + words.size());
  const auto first = parse_natural(trim(line.substr(0, at)), kMostRanks);
  const auto second =
      parse_natural(behind.substr(0, behind.find_first_not_of("0123456789")), kMostNumber);
  if (!first || (!second && !behind.empty())) return std::nullopt;
  return std::pair(*first, second.value_or(0));
}

class TextReader {
 public:
  Result<Sequences> read(std::string_view answer) {
    for (const std::string_view raw : split(answer, '\n')) line(raw);
    close_counts();
    for (auto& [name, one] : comms_) finish(one);
    if (!known_) return bad("no answer of NCCL's RAS");
    Sequences all;
    for (auto& [name, one] : comms_) all.push_back(std::move(one.progress));
    return all;
  }

 private:
  struct Comm {
    GroupProgress progress;
    std::map<int, long> of_process;  // by rank, of those that are missing
    long missing = 0;
  };
  // Ranks that have started as many of one kind; those of large groups are not named.
  struct Alike {
    long ranks = 0, number = 0;
    std::vector<int> named;
  };

  void line(std::string_view raw) {
    const std::string_view text = trim(raw);
    known_ = known_ || text.starts_with("Job summary") || text.starts_with("Communicators");
    if (text.starts_with('#')) return head(text);
    if (text == "DEAD") {
      close_counts();
      comm_ = nullptr;
      in_dead_ = true;
      return;
    }
    if (in_dead_) {
      constexpr std::string_view kProcess = "Process ";
      if (text.starts_with(kProcess))
        dead_.insert(parse_natural(text.substr(kProcess.size(),
                                               text.find(' ', kProcess.size()) - kProcess.size()))
                         .value_or(-1));
      else if (text.empty())
        in_dead_ = false;
    }
    if (comm_ == nullptr) return;
    if (text.empty()) return close_counts();
    detail(text);
  }

  // "#0-0 (27a079b828ff1a75) MISMATCH"
  void head(std::string_view text) {
    close_counts();
    in_dead_ = false;
    const std::size_t open = text.find('('), close = text.find(')');
    comm_ = nullptr;
    if (open == text.npos || close == text.npos || close < open) return;
    const std::string hash = shown(text.substr(open + 1, close - open - 1));
    comm_ = &comms_[hash];
    comm_->progress.group = hash;
    known_ = true;
  }

  void detail(std::string_view text) {
    constexpr std::string_view kDifferent = "Communicator ranks have different ";
    constexpr std::string_view kMissing = "Missing communicator data from ";
    if (text.starts_with(kDifferent)) {
      close_counts();
      std::string_view kind = text.substr(kDifferent.size());
      counting_ = kind.ends_with("operation counts");  // else of "status"
      kind = kind.substr(0, kind.find(' '));
      kind_ = kind == "collective" ? "" : shown(kind);  // before 2.26 all kinds in one
    } else if (text.starts_with(kMissing)) {
      const std::string_view rest = text.substr(kMissing.size());
      comm_->missing = parse_natural(rest.substr(0, rest.find(' ')), kMostRanks).value_or(0);
    } else if (text.starts_with("The missing rank")) {
      for (const std::string_view one : split(text.substr(text.find(':') + 1), ','))
        if (const auto rank = parse_natural(trim(one), kMostRanks))
          comm_->progress.silent.push_back(static_cast<int>(*rank));
    } else if (counting_) {
      count(text);
    } else if (const auto rank = rank_of(text); rank && comm_->missing > 0) {
      comm_->progress.silent.push_back(*rank);
      comm_->of_process[*rank] = process_of(text);
    }
  }

  // Of "Rank 3 -- GPU 3 managed by process 483075 on node n1" 3, and 483075.
  static std::optional<int> rank_of(std::string_view text) {
    constexpr std::string_view kRank = "Rank ";
    if (!text.starts_with(kRank)) return std::nullopt;
    text.remove_prefix(kRank.size());
    const auto rank = parse_natural(text.substr(0, text.find(' ')), kMostRanks);
    return rank ? std::optional(static_cast<int>(*rank)) : std::nullopt;
  }
  static long process_of(std::string_view text) {
    constexpr std::string_view kProcess = "managed by process ";
    const std::size_t at = text.find(kProcess);
    if (at == text.npos) return -1;
    text.remove_prefix(at + kProcess.size());
    return parse_natural(text.substr(0, text.find(' '))).value_or(-1);
  }

  void count(std::string_view text) {
    if (const auto group = around(text, " ranks have launched up to operation ")) {
      alike_.push_back({group->first, group->second, {}});
    } else if (const auto none = around(text, " ranks have not launched any operations")) {
      alike_.push_back({none->first, 0, {}});
    } else if (const auto rank = rank_of(text)) {
      constexpr std::string_view kUpTo = "has launched up to operation ";
      const std::size_t at = text.find(kUpTo);
      if (at != text.npos || text.find("has not launched") != text.npos) {
        const std::string_view number = at == text.npos ? "0" : text.substr(at + kUpTo.size());
        alike_.push_back(
            {1,
             parse_natural(number.substr(0, number.find(' ')), kMostNumber).value_or(0),
             {*rank}});
      } else if (!alike_.empty()) {
        alike_.back().named.push_back(*rank);
      }
    }
  }

  // The one group without names has all other ranks.
  void close_counts() {
    counting_ = false;
    const std::vector<Alike> alike = std::exchange(alike_, {});
    if (comm_ == nullptr || alike.empty()) return;
    GroupProgress& now = comm_->progress;
    long size = comm_->missing, most = 0;
    std::set<int> named(now.silent.begin(), now.silent.end());
    int unnamed = 0;
    for (const Alike& one : alike) {
      size += one.ranks;
      most = std::max(most, one.number);
      named.insert(one.named.begin(), one.named.end());
      unnamed += one.named.empty() ? 1 : 0;
    }
    const bool all = unnamed == 1 && size <= kMostRanks;
    for (const Alike& one : alike) {
      std::vector<int> ranks = one.named;
      for (int rank = 0; one.named.empty() && all && rank < size; ++rank)
        if (!named.contains(rank)) ranks.push_back(rank);
      for (const int rank : ranks) {
        now.launched[rank] += one.number;
        if (one.number < most && !kind_.empty()) now.operation.try_emplace(rank, kind_);
      }
    }
    if (size <= kMostRanks && now.ranks.empty() && (unnamed == 0 || all))
      for (int rank = 0; rank < size; ++rank) now.ranks.push_back(rank);
  }

  // Of a process that is dead, its ranks are; an early text names either.
  void finish(Comm& comm) const {
    GroupProgress& now = comm.progress;
    std::vector<int> silent;
    const bool all = comm.of_process.empty() && dead_.size() == now.silent.size();
    std::ranges::sort(now.silent);
    for (const int rank : now.silent) {
      const auto process = comm.of_process.find(rank);
      const bool dead =
          all || (process != comm.of_process.end() && dead_.contains(process->second));
      (dead ? now.dead : silent).push_back(rank);
    }
    now.silent = std::move(silent);
  }

  std::map<std::string, Comm> comms_;
  Comm* comm_ = nullptr;
  std::vector<Alike> alike_;
  std::string kind_;
  std::set<long> dead_;  // processes
  bool known_ = false, counting_ = false, in_dead_ = false;
};

// Of each of RAS's hosts, "172.16.64.245", the job's processes: of that name, or of the one host which has all that answer.
std::map<std::string, const std::map<long, int>*> hosts_of(const Json& comms,
                                                           const Processes& job) {
  std::map<std::string, std::set<long>> answering;
  for (const Json& comm : comms)
    for (const Json& rank : comm.at("ranks"))
      answering[rank.value("host", "")].insert(rank.value("pid", 0L));
  std::map<std::string, const std::map<long, int>*> found;
  for (const auto& [host, processes] : answering) {
    std::vector<const std::map<long, int>*> fit;
    for (const auto& [name, own] : job) {
      const auto has = [&of = own](long process) { return of.contains(process); };
      if (!std::ranges::all_of(processes, has)) continue;
      if (name == host) fit.clear();
      fit.push_back(&own);
      if (name == host) break;
    }
    if (fit.size() == 1) found[host] = fit.front();
  }
  return found;
}

// By their numbers in the communicator, the ranks of the job; empty where one that answers is unknown, or one comes twice.
std::map<int, int> job_ranks(const Json& comm,
                             const std::map<std::string, const std::map<long, int>*>& hosts) {
  std::map<int, int> numbers;
  std::set<int> seen;
  for (const char* list : {"ranks", "missing_ranks"})
    for (const Json& rank : comm.value(list, Json::array())) {
      const auto host = hosts.find(rank.value("host", ""));
      const bool known = host != hosts.end() && host->second->contains(rank.value("pid", 0L));
      if (!known && std::string_view(list) == "missing_ranks") continue;  // it has ended
      if (!known || !seen.insert(host->second->at(rank.value("pid", 0L))).second) return {};
      numbers[rank.at("rank").get<int>()] = host->second->at(rank.value("pid", 0L));
    }
  return numbers;
}

// `numbers`: as job_ranks.
GroupProgress comm_of(const Json& comm, const std::map<int, int>& numbers) {
  const auto number_of = [&](const Json& rank) {
    const int number = rank.at("rank").get<int>();
    return numbers.empty() ? number : numbers.at(number);
  };
  GroupProgress now;
  now.group = shown(comm.at("hash").get<std::string>());
  if (now.group.starts_with("0x")) now.group.erase(0, 2);
  std::map<std::string, long> most;  // of each kind
  for (const Json& rank : comm.at("ranks")) {
    const int number = number_of(rank);
    now.ranks.push_back(number);
    long& sum = now.launched[number];
    for (const auto& [kind, count] : rank.at("collective_counts").items()) {
      sum += count.get<long>();
      most[kind] = std::max(most[kind], count.get<long>());
    }
  }
  for (const Json& rank : comm.at("ranks"))
    for (const auto& [kind, count] : rank.at("collective_counts").items())
      if (count.get<long>() < most[kind]) now.operation.try_emplace(number_of(rank), shown(kind));
  for (const Json& rank : comm.value("missing_ranks", Json::array())) {
    if (!numbers.empty() && !numbers.contains(rank.at("rank").get<int>())) continue;
    const int number = number_of(rank);
    const Json& status = rank.at("status");
    now.ranks.push_back(number);
    if (status.at("considered_dead").get<bool>())
      now.dead.push_back(number);
    else if (status.at("unresponsive").get<bool>())
      now.silent.push_back(number);
  }
  std::ranges::sort(now.ranks);
  return now;
}

}  // namespace

Result<Sequences> parse_ras(std::string_view answer, const Processes& job) {
  constexpr std::size_t kMostBytes = 256u << 20;
  if (answer.size() > kMostBytes) return bad(fmt::format("an answer of {} bytes", answer.size()));
  const std::size_t brace = answer.find('{');
  const std::string_view before = trim(answer.substr(0, brace));  // of the protocol
  if (brace == answer.npos || (!before.empty() && !before.ends_with("OK")))
    return TextReader().read(answer);
  try {
    Sequences all;
    const Json json = Json::parse(answer.substr(brace));
    const Json& comms = json.at("communicators");
    const auto hosts = hosts_of(comms, job);
    for (const Json& comm : comms) {
      const std::map<int, int> numbers = job_ranks(comm, hosts);
      all.push_back(comm_of(comm, numbers));
      all.back().of_job = !numbers.empty();
    }
    return all;
  } catch (const Json::exception& error) {
    return bad(fmt::format("JSON that is cut or has other keys: {}", shown(error.what())));
  }
}

}  // namespace hpclaunch::stacks
