// What is found, for people and as JSON.
#include "hpclaunch/text.h"

#include <fmt/format.h>

#include <algorithm>
#include <array>
#include <nlohmann/json.hpp>

#include "hpclaunch/render.h"
#include "judge.h"

namespace hpclaunch::stacks {

namespace {

using Json = nlohmann::ordered_json;
using Kind = Verdict::Kind;

constexpr std::size_t kEvidence = 4;  // sentences that are printed

std::string headline(const Verdict& verdict) {
  const bool one = verdict.culprits.size() == 1;
  const std::string who = named(verdict.culprits);
  switch (verdict.kind) {
    case Kind::moves:
      if (verdict.culprits.empty()) return "the job moves";
      return fmt::format("{} {}, and the others wait for {}", who, one ? "moves" : "move",
                         one ? "it" : "them");
    case Kind::serving:
      if (verdict.culprits.empty()) return "all ranks wait for a request or a person";
      return fmt::format("{} {} for a request or a person, and the others for {}", who,
                         one ? "waits" : "wait", one ? "it" : "them");
    case Kind::gone:
      return fmt::format("{} {} gone: {}", who, one ? "is" : "are", verdict.doing);
    case Kind::stopped:
      return fmt::format("{} {} stopped (SIGSTOP)", who, one ? "is" : "are");
    case Kind::driver:
      return fmt::format("{} {} in the kernel: a disk or a driver", who, one ? "hangs" : "hang");
    case Kind::outside:
      return fmt::format("{} {} not where the others wait: {} {}", who, one ? "is" : "are",
                         one ? "it" : fmt::format("rank {}", verdict.culprits[0]), verdict.doing);
    case Kind::dead_worker:
      return fmt::format("{} {} for a process that has died", who, one ? "waits" : "wait");
    case Kind::mismatch:
      if (verdict.waiters.empty()) return who + " are in different collectives";
      return fmt::format("{} {} in another collective than the rest", who, one ? "is" : "are");
    case Kind::deadlock:
      return fmt::format("{} wait for each other", who);
    case Kind::same_place: {
      const bool network = !verdict.waiting.empty() && verdict.doing.starts_with("waits in");
      return fmt::format("all ranks wait in the same place: {}",
                         network ? "the network or a device" : verdict.doing);
    }
    case Kind::unknown:
      return "the job stands still, and which rank holds it up is not known";
  }
  return "";
}

// Absent where empty.
void put(Json& out, const char* key, std::string_view value) {
  if (!value.empty()) out[key] = value;
}

Json thread_json(const Thread& thread) {
  Json out = {{"tid", thread.tid},
              {"state", std::string(1, thread.state)},
              {"main", thread.main},
              {"cpu_ms", thread.cpu_ms},
              {"switches", thread.switches}};
  put(out, "name", thread.name);
  put(out, "wchan", thread.wchan);
  put(out, "waits_for", thread.waits_for);
  if (thread.has_gil) out["gil"] = true;
  out["frames"] = Json::array();
  for (const Frame& frame : thread.frames)
    out["frames"].push_back(
        {{"function", frame.function}, {"file", frame.file}, {"line", frame.line}});
  return out;
}

Json process_json(const Process& process) {
  Json out = {{"pid", process.pid},
              {"parent", process.parent},
              {"state", std::string(1, process.state)},
              {"cpu_ms", process.cpu_ms},
              {"switches", process.switches}};
  if (process.bytes >= 0) out["bytes"] = process.bytes;
  put(out, "python", process.python);
  put(out, "name", process.name);
  put(out, "command", process.command);
  put(out, "unread", process.unread);
  out["threads"] = Json::array();
  for (const Thread& thread : process.threads) out["threads"].push_back(thread_json(thread));
  return out;
}

Json verdict_json(const Verdict& verdict) {
  Json out = {{"kind", to_string(verdict.kind)},
              {"sure", to_string(verdict.sure)},
              {"culprits", verdict.culprits},
              {"waiters", verdict.waiters},
              {"hosts", verdict.hosts}};
  put(out, "place", verdict.place);
  put(out, "doing", verdict.doing);
  put(out, "waiting", verdict.waiting);
  out["evidence"] = verdict.evidence;
  put(out, "advice", verdict.advice);
  put(out, "summary", headline(verdict));
  return out;
}

}  // namespace

std::string_view to_string(Kind kind) {
  constexpr std::array<std::string_view, 11> kNames = {
      "moves",       "serving",  "gone",     "stopped",    "driver", "outside",
      "dead-worker", "mismatch", "deadlock", "same-place", "unknown"};
  return kNames[static_cast<std::size_t>(kind)];
}

std::string_view to_string(Verdict::Sure sure) {
  constexpr std::array<std::string_view, 3> kNames = {"unknown", "likely", "certain"};
  return kNames[static_cast<std::size_t>(sure)];
}

std::string text(const Verdict& verdict, int width) {
  std::string out;
  const auto line = [&](std::string_view title, std::string_view rest) {
    const std::string plain = render::printable(rest);
    out += title;
    out += cut_middle(plain, width - columns(title)) + "\n";
  };
  line("", headline(verdict));
  if (!verdict.place.empty()) line("  where:  ", verdict.place);
  if (!verdict.hosts.empty())
    line(verdict.hosts.size() == 1 ? "  node:   " : "  nodes:  ", joined(verdict.hosts, ","));
  if (!verdict.waiting.empty() && !verdict.waiters.empty())
    line("  waits:  ", fmt::format("{} ({}) {}", named(verdict.waiters), verdict.waiters.size(),
                                   verdict.waiting));
  if (verdict.kind == Kind::moves && verdict.culprits.empty()) return out;
  line("  sure:   ", to_string(verdict.sure));
  for (std::size_t i = 0; i < std::min(kEvidence, verdict.evidence.size()); ++i)
    line(i == 0 ? "  why:    " : "          ", verdict.evidence[i]);
  if (!verdict.advice.empty()) line("  next:   ", verdict.advice);
  return out;
}

std::string to_json(const Snapshot& snapshot, const Verdict* verdict) {
  Json out;
  if (verdict != nullptr) out["verdict"] = verdict_json(*verdict);
  out["ranks"] = Json::array();
  for (const Rank& rank : snapshot.ranks) {
    Json one = {{"rank", rank.rank}};
    put(one, "host", rank.host);
    put(one, "missing", rank.missing);
    if (rank.at > 0) one["at"] = rank.at;
    if (!rank.cut.empty()) one["cut"] = rank.cut;
    one["processes"] = Json::array();
    for (const Process& process : rank.processes) one["processes"].push_back(process_json(process));
    out["ranks"].push_back(std::move(one));
  }
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hpclaunch::stacks
