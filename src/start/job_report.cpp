// `hpclaunch report`: one screen about a job, from the JSON of --report.
#include <fmt/format.h>

#include <algorithm>
#include <optional>
#include <utility>

#include "hpclaunch/render.h"
#include "hpclaunch/run_record.h"
#include "hpclaunch/text.h"
#include "start/report_values.h"

namespace hpclaunch::job {

namespace {

using namespace report_values;

// ---- the parts ----------------------------------------------------------------------------------

std::string end_text(const Json& failure) {
  if (const std::string signal = text_of(failure, "signal"); !signal.empty())
    return signal + (at(failure, "core") == true ? ", core dumped" : "");
  return fmt::format("exit status {}", number_of(failure, "exit_status"));
}

std::string lost_text(const Json& lost) {
  const std::string ranks = text_of(lost, "ranks"), host = text_of(lost, "host");
  return at(lost, "whole_node") == true
             ? fmt::format("node {}: lost, with ranks {} running", host, ranks)
             : fmt::format("ranks {} on {}: killed, with the monitors beside them", ranks, host);
}

std::string failure_text(const Json& failure) {
  return fmt::format("rank {} on {} (local rank {}, pid {}): {}, {:.1f} s after start",
                     number_of(failure, "rank"), text_of(failure, "host"),
                     number_of(failure, "local_rank"), number_of(failure, "pid"), end_text(failure),
                     seconds_of(failure));
}

// Of the job, or of one attempt.
std::string first_text(const Json& json) {
  const Json& lost = at(json, "lost");
  if (lost.is_array() && !lost.empty()) return lost_text(lost[0]);
  if (at(json, "first_failure").is_object()) return failure_text(at(json, "first_failure"));
  if (at(json, "time_limit") == true) return "nothing: the time limit of the job was reached";
  if (const std::string signal = text_of(json, "interrupted_by"); !signal.empty())
    return fmt::format("nothing: hpclaunch got {}", signal);
  if (at(json, "finished") == false) return "nothing: hpclaunch has not written the end of the job";
  const Json& launcher = at(json, "launcher");
  const long status = number_of(json, "status");
  if (status == 0) return "nothing: all ranks exited with 0";
  const Json& ranks = at(json, "ranks");
  const long others =
      number_of(ranks, "failed") + number_of(ranks, "ended") + number_of(ranks, "silent");
  if (status == kOutputLost && others == 0 && number_of(ranks, "ok") > 0)
    return "nothing: all ranks exited with 0, but output, a log or a file could not be written";
  if (const Json& stall = at(json, "stall"); at(stall, "ended") == true)
    return "a stall: " + text_of(at(at(stall, "seen"), "verdict"), "summary");
  if (status == kTimedOut) return "nothing: hpclaunch ended ranks that stayed (--end-timeout)";
  if (!at(launcher, "exit_status").is_number() && !at(launcher, "signal").is_string())
    return "no rank: of some no end is known";
  return fmt::format("no rank: {} ended with {}", text_of(launcher, "name"), end_text(launcher));
}

bool holds(const Json& failure, std::initializer_list<std::string_view> parts) {
  Lines texts = texts_of(failure, "last_lines");
  texts.push_back(text_of(at(failure, "where"), "message"));
  return std::ranges::any_of(texts, [&](const std::string& text) {
    return std::ranges::any_of(parts,
                               [&](std::string_view part) { return text.find(part) != text.npos; });
  });
}

bool killed_for_memory(const Json& failure) {
  return text_of(failure, "signal") == "SIGKILL" && number_of(failure, "oom_kills") > 0;
}

// Its exception says that it lost another one, or waited for it.
bool blames_others(const Json& failure) {
  return holds(failure, {"Connection closed by peer", "Connection reset by peer", "Broken pipe",
                         "remote process exited", "Watchdog caught", "collective operation timeout",
                         "Timed out waiting", "Socket Timeout", "failed to pass monitoredBarrier",
                         "waiting for clients", "wait timeout after", "caused pair closure",
                         "Connection was likely closed"});
}

Lines why(const Json& record) {
  const Json& lost = at(record, "lost");
  if (lost.is_array() && !lost.empty())
    return {"certain: nothing had failed before, and no signal had ended the job"};
  const Json& failure = at(record, "first_failure");
  if (const Json& stall = at(record, "stall"); !failure.is_object() && at(stall, "ended") == true) {
    const Json& verdict = at(at(stall, "seen"), "verdict");
    Lines lines = texts_of(verdict, "evidence");
    lines.insert(lines.begin(), text_of(verdict, "sure"));
    if (at(verdict, "place").is_string()) lines.push_back("where: " + text_of(verdict, "place"));
    return lines;
  }
  if (!failure.is_object()) return {};
  if (killed_for_memory(failure))
    return {
        "certain: the first end, without a signal of ours; the kernel counts a kill for "
        "memory"};
  if (blames_others(failure))
    return {"likely: it ended first, but its message is that of a rank that waits for another one",
            "or has lost it: look for the rank that was not where the others were"};
  const long others = number_of(at(record, "ranks"), "failed") - 1;
  if (others > 0)
    return {fmt::format("likely: it ended first, but {} failed before hpclaunch had ended any",
                        counted(others, "other rank"))};
  if (text_of(failure, "signal") == "SIGKILL")
    return {
        "certain: the first end, without a signal of ours; likely killed for lack of memory, or",
        "by another process: the kernel counts no kill that says so"};
  return {"certain: the first end, and no signal had come before it"};
}

std::string shortened(std::string_view text, std::size_t most) {
  if (text.size() <= most) return std::string(text);
  std::size_t size = most - 3;
  while (size > 0 && (static_cast<unsigned char>(text[size]) & 0xc0U) == 0x80U) --size;
  return std::string(text.substr(0, size)) + "...";
}

// In the middle, so that the end of a path stays.
std::string shortened_path(std::string_view path, std::size_t most) {
  if (path.size() <= most) return std::string(path);
  std::size_t tail = path.size() - (most - most / 3 - 3);
  while (tail < path.size() && (static_cast<unsigned char>(path[tail]) & 0xc0U) == 0x80U) ++tail;
  return shortened(path, most / 3) + std::string(path.substr(tail));
}

std::string place_text(const Json& raised) {
  const std::string file = text_of(raised, "file"), function = text_of(raised, "function");
  if (file.empty()) return "";
  return fmt::format("{}:{}{}{}", shortened_path(file, kRoom / 2), number_of(raised, "line"),
                     function.empty() ? "" : " in ", function);
}

std::string raised_text(const Json& raised) {
  const std::string message = text_of(raised, "message");
  return text_of(raised, "type") + (message.empty() ? "" : ": ") + message;
}

Lines where(const Json& failure) {
  const Json& raised = at(failure, "where");
  Lines lines;
  if (!raised.is_object()) return lines;
  if (const std::string place = place_text(raised); !place.empty()) lines.push_back(place);
  lines.push_back(raised_text(raised));
  if (at(raised, "fatal") == false)
    lines.back() += " (of a thread, which does not end the program)";
  if (const Json& cause = at(raised, "cause"); cause.is_object())
    lines.push_back("caused by " + raised_text(cause));
  return lines;
}

Lines others(const Json& record) {
  Lines lines;
  const Json& ranks = at(record, "ranks");
  const bool first = at(record, "first_failure").is_object();
  if (const long ended = number_of(ranks, "ended"); ended > 0)
    lines.push_back(fmt::format("{} ended by hpclaunch or the launcher: their status is no cause",
                                counted(ended, "rank")));
  if (const long failed = number_of(ranks, "failed") - (first ? 1 : 0); failed > 0)
    lines.push_back(fmt::format("{} failed by themselves", counted(failed, "rank")));
  if (const long ok = number_of(ranks, "ok"); ok > 0 && number_of(record, "status") != 0)
    lines.push_back(fmt::format("{} exited with 0", counted(ok, "rank")));
  if (const long silent = number_of(ranks, "silent"); silent > 0)
    lines.push_back(at(record, "finished") == false
                        ? fmt::format("{} still running then", counted(silent, "rank"))
                        : fmt::format("of {} no end is known", counted(silent, "rank")));
  return lines;
}

// What they did when they were to be ended.
Lines last_look(const Json& record) {
  const Json &look = at(record, "stacks"), &verdict = at(at(look, "seen"), "verdict");
  if (!verdict.is_object() || number_of(record, "status") == 0) return {};
  const std::string before = text_of(look, "before");
  const bool ended = before == "time-limit"    ? at(record, "time_limit") == true
                     : before == "end-timeout" ? number_of(record, "status") == kTimedOut
                                               : at(record, "interrupted_by").is_string();
  if (!ended && at(record, "finished") != false) return {};
  const char* const when = before == "time-limit"    ? "before the time limit"
                           : before == "end-timeout" ? "before --end-timeout ended them"
                                                     : "before they were killed";
  const auto count = [&](const char* key) {
    const Json& list = at(verdict, key);
    return list.is_array() ? list.size() : 0;
  };
  Lines places;
  if (const std::string place = text_of(verdict, "place"); !place.empty())
    places.push_back((count("culprits") > 1 ? "the first at " : "at ") + place);
  if (const std::string waits = text_of(verdict, "waiting"); !waits.empty() && count("waiters") > 0)
    places.push_back(fmt::format("{} waited {}", counted(count("waiters"), "rank"), waits));
  return {fmt::format("{}: {}", when, text_of(verdict, "summary")),
          fmt::format("{}", fmt::join(places, "; "))};
}

Lines resources(const Json& failure) {
  Lines lines;
  constexpr unsigned long long kKib = 1024;
  std::string memory;
  if (const long peak = number_of(failure, "peak_kib"); peak > 0)
    memory = fmt::format("peak of the rank {}",
                         human_bytes(static_cast<unsigned long long>(peak) * kKib));
  if (const long kills = number_of(failure, "oom_kills"); kills > 0)
    memory += fmt::format("{}{} of its control group killed for memory", memory.empty() ? "" : "; ",
                          kills == 1 ? "1 process" : fmt::format("{} processes", kills));
  if (!memory.empty()) lines.push_back("memory: " + memory);
  if (holds(failure, {"No space left on device", "Disk quota exceeded"}))
    lines.push_back("disk: full, or over its quota, says the rank");
  if (text_of(at(failure, "where"), "type").ends_with("OutOfMemoryError") ||
      holds(failure, {"CUDA out of memory", "HIP out of memory", "CUDA error: out of memory"}))
    lines.push_back("device: its memory was full, says the rank");
  return lines;
}

Lines attempts(const Json& record, Lines& excluded) {
  Lines lines;
  const Json& all = at(record, "attempts");
  if (!all.is_array() || all.size() < 2) return lines;
  for (std::size_t i = 0; i < all.size(); ++i) {
    const Json& lost = at(all[i], "lost");
    if (i + 1 < all.size() && lost.is_array())
      for (const Json& node : lost)
        if (at(node, "whole_node") == true) excluded.push_back(text_of(node, "host"));
    lines.push_back(fmt::format("{}: {:.1f} s; {}", i, seconds_of(all[i]), first_text(all[i])));
  }
  constexpr std::size_t kMost = 4;
  if (lines.size() > kMost) {
    lines[1] = fmt::format("... {} more", lines.size() - kMost + 1);
    lines.erase(lines.begin() + 2, lines.end() - 2);
  }
  return lines;
}

Lines head(const Json& record) {
  std::string text = fmt::format("{}", fmt::join(texts_of(record, "command"), " "));
  std::string size;
  if (const long ranks = number_of(record, "world_size"); ranks > 0)
    size = fmt::format("{} on {}", counted(ranks, "rank"),
                       counted(texts_of(record, "hosts").size(), "node"));
  if (const std::string job = text_of(record, "job"); !job.empty())
    size += (size.empty() ? "" : ", ") + job;
  if (const std::string time = text_of(record, "started"); time.size() > 19)
    size += fmt::format("{}{} {} UTC", size.empty() ? "" : ", ", time.substr(0, 10),
                        time.substr(11, 8));
  return {std::move(text), std::move(size)};
}

}  // namespace

Result<JobReport> read_run_record(std::string_view json, const std::string& path) {
  const Json record = Json::parse(json, nullptr, false);
  if (!record.is_object() || !at(record, "status").is_number_integer() ||
      !at(record, "attempts").is_array())
    return Error{ErrorKind::invalid,
                 fmt::format("{}: not a report of hpclaunch run --report", path),
                 "hpclaunch run --report job.json -- PROGRAM writes one"};
  JobReport report;
  const auto add = [&](const char* key, Lines lines, bool many = true) {
    std::erase(lines, "");
    if (!lines.empty()) report.rows.push_back({key, std::move(lines), many});
  };
  add("job", head(record));
  const std::string then = text_of(record, "ended");
  add("status",
      {at(record, "finished") == false
           ? fmt::format("was still running at {} {} UTC, after {:.1f} s", then.substr(0, 10),
                         then.size() > 19 ? then.substr(11, 8) : "", seconds_of(record))
           : fmt::format("{} after {:.1f} s", number_of(record, "status"), seconds_of(record))},
      false);
  const Json& error = at(record, "error");
  const Json& failure = at(record, "first_failure");
  add("first",
      {error.is_object() ? "nothing was started: " + text_of(error, "message")
                         : first_text(record)},
      false);
  if (!error.is_object()) add("why", why(record));
  add("where", where(failure));
  add("others", others(record));
  add("stacks", last_look(record));
  add("resources", resources(failure));
  Lines excluded;
  add("attempts", attempts(record, excluded));
  add("excluded", {fmt::format("{}", fmt::join(excluded, ", "))}, false);
  if (failure.is_object() && !at(failure, "where").is_object()) {
    Lines output = texts_of(failure, "last_lines");
    constexpr std::size_t kMost = 4;
    if (output.size() > kMost) output.erase(output.begin(), output.end() - kMost);
    add("output", std::move(output));
  }
  add("files", {text_of(failure, "log"), path});
  add("next", next(record));
  return report;
}

std::string job_report_text(const JobReport& report) {
  std::size_t lines = 0;
  for (const JobReport::Row& row : report.rows) lines += row.lines.size();
  std::string text;
  for (const JobReport::Row& row : report.rows) {
    const bool files = std::string_view(row.key) == "files";
    std::size_t left = row.lines.size();
    // Of what is too long for the screen the rows of evidence give way.
    while (lines > kMostLines && left > 1 && std::string_view(row.key) != "next") --left, --lines;
    for (std::size_t i = 0; i < left; ++i)
      text +=
          fmt::format("{:<{}}{}\n", i == 0 ? row.key : "", kKey,
                      files ? shortened_path(row.lines[i], kRoom) : shortened(row.lines[i], kRoom));
  }
  return text;
}

std::string job_report_json(const JobReport& report) {
  Json out = {{"schema", 1}};
  for (const JobReport::Row& row : report.rows)
    out[row.key] = row.many ? Json(row.lines) : Json(row.lines.front());
  return out.dump(2, ' ', false, Json::error_handler_t::replace) + "\n";
}

}  // namespace hpclaunch::job
