// --report FILE: how a job went, as JSON.

#include "hpclaunch/run_record.h"

#include <fmt/format.h>

#include <cmath>
#include <nlohmann/json.hpp>
#include <utility>

#include "hpclaunch/events.h"
#include "hpclaunch/launch.h"
#include "hpclaunch/secret.h"

namespace hpclaunch::job {

namespace {

using Json = nlohmann::ordered_json;

// With milliseconds.
Json instant(double unix_time) {
  const auto whole = static_cast<long long>(std::floor(unix_time));
  const int part = static_cast<int>((unix_time - static_cast<double>(whole)) * 1000);
  std::string text = utc(whole);
  text.insert(text.size() - 1, fmt::format(".{:03}", part));
  return text;
}

double milliseconds(double seconds) { return std::round(seconds * 1000) / 1000; }

// Real-time signals by their number.
Json signal_json(int signal) {
  constexpr int kLastNamed = 31;
  return signal <= kLastNamed ? sys::signal_name(signal) : std::to_string(signal);
}

Json raised_json(const Raised& raised) {
  return Json{{"type", raised.type},
              {"message", raised.message},
              {"file", raised.file.empty() ? Json(nullptr) : Json(raised.file)},
              {"line", raised.file.empty() ? Json(nullptr) : Json(raised.line)},
              {"function", raised.function}};
}

Json where_json(const Traceback& traceback) {
  if (!traceback.found()) return nullptr;
  Json out = raised_json(traceback.raised);
  out["fatal"] = traceback.fatal;
  out["cause"] = traceback.cause.type.empty() ? Json(nullptr) : raised_json(traceback.cause);
  return out;
}

Json failure_json(const sys::RankFailure& first) {
  const bool exited = first.signal == 0;
  return Json{{"rank", first.rank},
              {"local_rank", first.local_rank},
              {"node", first.node},
              {"host", first.host},
              {"pid", first.pid},
              {"exit_status", exited ? Json(first.exit_status) : Json(nullptr)},
              {"signal", exited ? Json(nullptr) : signal_json(first.signal)},
              {"core", first.core},
              {"seconds", milliseconds(first.seconds)},
              {"last_lines", first.last_lines},
              {"where", where_json(first.traceback)},
              {"log", first.log.empty() ? Json(nullptr) : Json(first.log)},
              {"peak_kib", first.peak_kib == 0 ? Json(nullptr) : Json(first.peak_kib)},
              {"oom_kills", first.oom_kills}};
}

// What is unknown is null; nullptr: nothing was started.
Json ending_json(const sys::Ending* ending) {
  Json out;
  for (const char* key : {"first_failure", "ranks"}) out[key] = nullptr;
  for (const char* key : {"silent", "lost"}) out[key] = Json::array();
  for (const char* key : {"passed_on", "interrupted_by"}) out[key] = nullptr;
  out["time_limit"] = false;
  if (ending == nullptr) return out;
  if (ending->first) out["first_failure"] = failure_json(*ending->first);
  int silent = 0;
  for (const sys::SilentRanks& node : ending->silent) {
    silent += node.count;
    out["silent"].push_back(Json{{"host", node.host}, {"ranks", node.ranks}});
  }
  out["ranks"] = {
      {"ok", ending->ok}, {"failed", ending->failed}, {"ended", ending->ended}, {"silent", silent}};
  for (const sys::SilentRanks& node : ending->lost)
    out["lost"].push_back(
        Json{{"host", node.host}, {"ranks", node.ranks}, {"whole_node", node.whole_node}});
  if (!ending->stall.empty())
    out["stall"] =
        Json{{"ended", ending->stalled}, {"seen", Json::parse(ending->stall, nullptr, false)}};
  if (!ending->stacks.empty()) out["stacks"] = Json::parse(ending->stacks, nullptr, false);
  if (ending->passed_on != 0) out["passed_on"] = signal_json(ending->passed_on);
  if (ending->interrupted_by != 0) out["interrupted_by"] = signal_json(ending->interrupted_by);
  out["time_limit"] = ending->time_limit;
  return out;
}

Json launcher_json(const RunRecord& record, const Attempt* attempt) {
  Json launcher = {{"name", nullptr},
                   {"argv", without_secrets(record.argv)},
                   {"exit_status", nullptr},
                   {"signal", nullptr}};
  if (record.plan != nullptr) launcher["name"] = record.plan->launch.launcher;
  if (attempt == nullptr) return launcher;
  launcher["argv"] = without_secrets(attempt->argv);
  if (attempt->ending.launcher_exit) launcher["exit_status"] = *attempt->ending.launcher_exit;
  if (attempt->ending.launcher_signal)
    launcher["signal"] = signal_json(*attempt->ending.launcher_signal);
  return launcher;
}

// The last attempt at the top, and all of them.
void add_attempts(const RunRecord& record, Json& out) {
  const Attempt* last = record.attempts.empty() ? nullptr : &record.attempts.back();
  out["launcher"] = launcher_json(record, last);
  Json hosts = Json::array();
  Json world;
  if (record.plan != nullptr) {
    for (const std::string& host : last != nullptr ? last->hosts : record.plan->hosts.names)
      hosts.push_back(host);
    world = last != nullptr ? last->world_size : record.plan->world_size();
  }
  out["hosts"] = std::move(hosts);
  out["world_size"] = std::move(world);
  out.update(ending_json(last == nullptr ? nullptr : &last->ending));
  out["attempts"] = Json::array();
  for (const Attempt& attempt : record.attempts) {
    Json one = {{"status", attempt.ending.status},
                {"started", instant(attempt.ending.started)},
                {"seconds", milliseconds(attempt.ended - attempt.ending.started)},
                {"launcher", launcher_json(record, &attempt)}};
    if (!record.finished && &attempt == last) one["finished"] = false;
    one.update(ending_json(&attempt.ending));
    for (const char* large : {"stall", "stacks"}) one.erase(large);  // they are above
    out["attempts"].push_back(std::move(one));
  }
}

}  // namespace

std::string run_record_json(const RunRecord& record, bool whole) {
  Json out;
  out["schema"] = 1;
  out["command"] = without_secrets(record.command);
  out["typed"] = without_secrets(record.typed);
  out["job"] = record.job.empty() || record.job == "none 0" ? Json(nullptr) : Json(record.job);
  out["status"] = record.status;
  out["finished"] = record.finished;
  out["started"] = instant(record.started);
  out["ended"] = instant(record.ended);
  out["seconds"] = milliseconds(record.ended - record.started);
  out["error"] = !record.error
                     ? Json(nullptr)
                     : Json{{"message", record.error->message}, {"hint", record.error->hint}};
  add_attempts(record, out);
  out["start"] = whole && record.start
                     ? Json::parse(start_profile_json(*record.start, *record.plan))
                     : Json(nullptr);
  // What a program wrote or a user typed need not be UTF-8.
  return out.dump(whole ? 2 : -1, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hpclaunch::job
