// `hpclaunch report`: one screen about a job, from the JSON of --report.
#include <fmt/format.h>

#include <algorithm>
#include <nlohmann/json.hpp>
#include <optional>
#include <utility>

#include "hpclaunch/render.h"
#include "hpclaunch/run_record.h"
#include "hpclaunch/secret.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

using Json = nlohmann::ordered_json;
using Lines = std::vector<std::string>;

constexpr std::size_t kWidth = 100, kMostLines = 25, kKey = 10;
constexpr std::size_t kRoom = kWidth - kKey;
constexpr long kOutputLost = 125, kTimedOut = 124;  // docs/reference/supervise.md

// ---- values, as far as they are there -----------------------------------------------------------

const Json& at(const Json& json, const char* key) {
  static const Json kNone;
  const auto found = json.is_object() ? json.find(key) : json.end();
  return json.is_object() && found != json.end() ? *found : kNone;
}

// What a terminal would take for a command becomes '?'; only its first line.
std::string printable(std::string_view text) {
  std::string out;
  for (std::size_t i = 0; i < text.size() && text[i] != '\n'; ++i) {
    const auto byte = static_cast<unsigned char>(text[i]);
    const bool c1 =
        byte == 0xc2 && i + 1 < text.size() && static_cast<unsigned char>(text[i + 1]) < 0xa0;
    if (c1) ++i;
    out += byte < ' ' || byte == 0x7f || c1 ? '?' : text[i];
  }
  return out;
}

std::string text_of(const Json& json, const char* key) {
  const Json& value = at(json, key);
  return value.is_string() ? printable(value.get<std::string>()) : "";
}

long number_of(const Json& json, const char* key) {
  const Json& value = at(json, key);
  return value.is_number_integer() ? value.get<long>() : 0;
}

double seconds_of(const Json& json) {
  const Json& value = at(json, "seconds");
  return value.is_number() ? value.get<double>() : 0;
}

Lines texts_of(const Json& json, const char* key) {
  Lines texts;
  if (const Json& list = at(json, key); list.is_array())
    for (const Json& one : list)
      if (one.is_string()) texts.push_back(printable(one.get<std::string>()));
  return texts;
}

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
    lines.push_back(fmt::format("of {} no end is known", counted(silent, "rank")));
  return lines;
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

// ---- what to type -------------------------------------------------------------------------------

// Lines of a shell that together are the command; empty where it is too long.
Lines command_lines(const Lines& words) {
  constexpr std::size_t kMost = 3;
  Lines lines = {""};
  for (const std::string& word : words) {
    const std::string quoted = quote_sh(word);
    const std::size_t end = lines.back().size() + quoted.size() + 3;  // a blank, and " \"
    if (!lines.back().empty() && end > kRoom) {
      lines.back() += " \\";
      lines.push_back("  " + quoted);
    } else {
      lines.back() += (lines.back().empty() ? "" : " ") + quoted;
    }
    if (lines.back().size() > kRoom - 2) return {};
  }
  return lines.size() > kMost ? Lines{} : lines;
}

// The same launch with more options.
Lines again(const Json& record, const Lines& more) {
  Lines words = texts_of(record, "typed");
  // A secret is hidden; what is not printed as it is would be another program.
  const auto hidden = [](const std::string& word) { return word.find(kHidden) != word.npos; };
  if (words.empty() || words.front() != "run" || std::ranges::any_of(words, hidden) ||
      at(record, "typed") != Json(words))
    return {fmt::format("hpclaunch run {} ..., with the rest as before", fmt::join(more, " "))};
  words.insert(words.begin() + 1, more.begin(), more.end());
  words.insert(words.begin(), "hpclaunch");
  Lines lines = command_lines(words);
  if (lines.empty())
    return {fmt::format("hpclaunch run {} ..., with the rest as before", fmt::join(more, " "))};
  return lines;
}

Lines next(const Json& record) {
  if (const Json& error = at(record, "error"); error.is_object()) {
    const std::string hint = text_of(error, "hint");
    return hint.empty() ? Lines{} : Lines{hint};
  }
  if (number_of(record, "status") == 0) return {};
  const Json& lost = at(record, "lost");
  if (lost.is_array() && !lost.empty()) return again(record, {"--preflight"});
  if (at(record, "time_limit") == true) return again(record, {"--signal", "TERM@300"});
  const Json& failure = at(record, "first_failure");
  if (!failure.is_object() && number_of(record, "status") == kOutputLost) return {"df -h ."};
  if (!failure.is_object())
    return text_of(record, "interrupted_by").empty() ? again(record, {"--preflight"}) : Lines{};
  const std::string signal = text_of(failure, "signal");
  const bool crash = signal == "SIGSEGV" || signal == "SIGABRT" || signal == "SIGBUS" ||
                     signal == "SIGILL" || signal == "SIGFPE";
  if (crash && !at(failure, "where").is_object())
    return again(record, {"--set", "PYTHONFAULTHANDLER=1"});
  if (const std::string log = text_of(failure, "log"); !log.empty())
    return command_lines({"less", "+G", log});
  return again(record, {"--log-dir", "logs"});
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
  add("status", {fmt::format("{} after {:.1f} s", number_of(record, "status"), seconds_of(record))},
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
