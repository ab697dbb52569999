// `hpclaunch report`: one screen from the JSON of --report.
#include <algorithm>
#include <nlohmann/json.hpp>
#include <string>

#include "hpclaunch/run_record.h"
#include "hpclaunch/text.h"
#include "support/catch.h"

using namespace hpclaunch;
using namespace hpclaunch::job;
using Json = nlohmann::ordered_json;

namespace {

Json failure(const char* signal, int status) {
  return {{"rank", 31},
          {"local_rank", 3},
          {"node", 7},
          {"host", "n7"},
          {"pid", 4711},
          {"exit_status", *signal == '\0' ? Json(status) : Json(nullptr)},
          {"signal", *signal == '\0' ? Json(nullptr) : Json(signal)},
          {"core", false},
          {"seconds", 751.2},
          {"last_lines", {"a", "b"}}};
}

Json record() {
  Json attempt = {{"status", 1}, {"seconds", 752.0}};
  return {{"schema", 1},
          {"command", {"python3", "train.py"}},
          {"typed", {"run", "-n", "64", "--", "python3", "train.py"}},
          {"job", "slurm 4711"},
          {"status", 1},
          {"started", "2026-11-28T10:02:11.000Z"},
          {"seconds", 752.0},
          {"error", nullptr},
          {"launcher", {{"name", "slurm"}, {"exit_status", 1}}},
          {"hosts", {"n0", "n7"}},
          {"world_size", 64},
          {"first_failure", failure("", 1)},
          {"ranks", {{"ok", 0}, {"failed", 1}, {"ended", 63}, {"silent", 0}}},
          {"lost", Json::array()},
          {"attempts", {attempt}}};
}

std::string text_of(const Json& json) {
  const Result<JobReport> report = read_run_record(json.dump(), "/home/u/job.json");
  REQUIRE(report);
  return job_report_text(*report);
}

bool has(const std::string& text, const std::string& part) {
  return text.find(part) != std::string::npos;
}

}  // namespace

TEST_CASE("report: what failed first, why, and what to type") {
  Json json = record();
  json["first_failure"]["where"] = {{"type", "RuntimeError"},
                                    {"message", "step failed\nmore"},
                                    {"file", "/home/u/train.py"},
                                    {"line", 41},
                                    {"function", "step"},
                                    {"fatal", true},
                                    {"cause", {{"type", "KeyError"}, {"message", "'a'"}}}};
  json["first_failure"]["peak_kib"] = 3 << 20;
  CHECK(text_of(json) ==
        "job       python3 train.py\n"
        "          64 ranks on 2 nodes, slurm 4711, 2026-11-28 10:02:11 UTC\n"
        "status    1 after 752.0 s\n"
        "first     rank 31 on n7 (local rank 3, pid 4711): exit status 1, 751.2 s after start\n"
        "why       certain: the first end, and no signal had come before it\n"
        "where     /home/u/train.py:41 in step\n"
        "          RuntimeError: step failed\n"
        "          caused by KeyError: 'a'\n"
        "others    63 ranks ended by hpclaunch or the launcher: their status is no cause\n"
        "resources memory: peak of the rank 3 GiB\n"
        "files     /home/u/job.json\n"
        "next      hpclaunch run --log-dir logs -n 64 -- python3 train.py\n");
  json["first_failure"]["log"] = "logs/rank-31.log";
  CHECK(has(text_of(json), "files     logs/rank-31.log\n          /home/u/job.json\n"));
  CHECK(has(text_of(json), "next      less +G logs/rank-31.log\n"));
}

TEST_CASE("report: how sure it is") {
  Json json = record();
  json["first_failure"] = failure("SIGKILL", 0);
  CHECK(has(text_of(json), "likely killed for lack of memory"));
  json["first_failure"]["oom_kills"] = 1;
  CHECK(has(text_of(json), "certain: the first end, without a signal of ours; the kernel counts"));
  CHECK(has(text_of(json), "1 process of its control group killed for memory"));
  json = record();
  json["first_failure"]["last_lines"] = {"RuntimeError: Connection closed by peer [10.0.0.1]:99"};
  CHECK(has(text_of(json), "why       likely: it ended first, but its message is that of a rank"));
  json = record();
  json["ranks"]["failed"] = 3;
  CHECK(has(text_of(json), "likely: it ended first, but 2 other ranks failed"));
  json = record();
  json["lost"] = {{{"host", "n2"}, {"ranks", "4-7"}, {"whole_node", true}}};
  CHECK(has(text_of(json), "first     node n2: lost, with ranks 4-7 running\nwhy       certain"));
  CHECK(has(text_of(json), "next      hpclaunch run --preflight -n 64"));
}

TEST_CASE("report: ends without a failed rank") {
  Json json = record();
  json["first_failure"] = nullptr;
  json["status"] = 0;
  CHECK(has(text_of(json), "first     nothing: all ranks exited with 0\n"));
  CHECK(!has(text_of(json), "next"));
  json["ranks"] = {{"ok", 64}, {"failed", 0}, {"ended", 0}, {"silent", 0}};
  json["status"] = 125;
  CHECK(has(text_of(json), "all ranks exited with 0, but output, a log or a file"));
  CHECK(has(text_of(json), "next      df -h .\n"));
  json["status"] = 124;
  CHECK(has(text_of(json), "hpclaunch ended ranks that stayed (--end-timeout)"));
  json["status"] = 137;
  CHECK(has(text_of(json), "first     no rank: slurm ended with exit status 1\n"));
  json["launcher"]["exit_status"] = nullptr;
  CHECK(has(text_of(json), "first     no rank: of some no end is known\n"));
  json["status"] = 143;
  json["interrupted_by"] = "SIGTERM";
  CHECK(has(text_of(json), "first     nothing: hpclaunch got SIGTERM\n"));
  json["time_limit"] = true;
  CHECK(has(text_of(json), "first     nothing: the time limit of the job was reached\n"));
  CHECK(has(text_of(json), "next      hpclaunch run --signal TERM@300 -n 64"));
  json["error"] = {{"message", "no such program"}, {"hint", "PATH"}};
  json["attempts"] = Json::array();
  CHECK(has(text_of(json), "first     nothing was started: no such program\n"));
  CHECK(has(text_of(json), "next      PATH\n"));
}

TEST_CASE("report: what ranks did when they were to be ended") {
  Json json = record();
  json["first_failure"] = nullptr;
  json["status"] = 143;
  json["time_limit"] = true;
  json["stacks"] = {{"before", "time-limit"},
                    {"seen",
                     {{"verdict",
                       {{"culprits", {5}},
                        {"waiters", {0, 1, 2, 3, 4}},
                        {"place", "train.py:12 step"},
                        {"waiting", "in all_reduce at train.py:88 main"},
                        {"summary", "rank 5 is not where the others wait: it sleeps"}}}}}};
  CHECK(has(text_of(json),
            "stacks    before the time limit: rank 5 is not where the others wait: it sleeps\n"
            "          at train.py:12 step; 5 ranks waited in all_reduce at train.py:88 main\n"));
  json["time_limit"] = false;  // the look was for nothing: the job ended for another reason
  CHECK(!has(text_of(json), "stacks"));
  json["finished"] = false;
  CHECK(has(text_of(json), "status    was still running at "));
  CHECK(has(text_of(json), "stacks    before the time limit: rank 5"));
  json["finished"] = true;
  json["stacks"]["before"] = "end-timeout";
  json["status"] = 124;
  CHECK(has(text_of(json), "stacks    before --end-timeout ended them: rank 5"));
  json["status"] = 0;
  CHECK(!has(text_of(json), "stacks"));
}

TEST_CASE("report: a signal that came too late is to come earlier, and the program keeps its own") {
  Json json = record();
  json["first_failure"] = nullptr;
  json["time_limit"] = true;
  const auto typed = [&](std::vector<std::string> words) {
    json["typed"] = std::move(words);
    return text_of(json);
  };
  CHECK(has(typed({"run", "-n", "2", "--signal", "USR1@60", "--", "python3", "--signal", "x"}),
            "next      hpclaunch run --signal USR1@120 -n 2 -- python3 --signal x\n"));
  CHECK(has(typed({"run", "--signal=USR2", "-n", "2", "python3", "--signal=x"}),
            "next      hpclaunch run --signal USR2@600 -n 2 python3 --signal=x\n"));
  CHECK(has(typed({"run", "-n", "2", "python3", "--signal", "x"}),
            "next      hpclaunch run --signal TERM@300 -n 2 python3 --signal x\n"));
}

TEST_CASE("report: full disks and devices, by what the rank says") {
  Json json = record();
  json["first_failure"]["last_lines"] = {"OSError: [Errno 28] No space left on device"};
  CHECK(has(text_of(json), "disk: full"));
  json["first_failure"]["last_lines"] = {"x"};
  json["first_failure"]["where"] = {{"type", "torch.OutOfMemoryError"}, {"message", "CUDA"}};
  CHECK(has(text_of(json), "device: its memory was full"));
}

TEST_CASE("report: attempts, and nodes that were left out") {
  Json json = record();
  json["attempts"] = Json::array();
  for (int i = 0; i < 7; ++i) {
    Json one = {{"status", 1}, {"seconds", 10.0 + i}, {"first_failure", failure("SIGSEGV", 0)}};
    if (i == 2) one["lost"] = {{{"host", "n2"}, {"ranks", "4-7"}, {"whole_node", true}}};
    json["attempts"].push_back(std::move(one));
  }
  const std::string text = text_of(json);
  CHECK(has(text, "attempts  0: 10.0 s; rank 31 on n7"));
  CHECK(has(text, "          ... 4 more\n"));
  CHECK(has(text, "          6: 16.0 s;"));
  CHECK(has(text, "excluded  n2\n"));
}

TEST_CASE("report: at most 25 lines at 100 columns, whatever is in it") {
  Json json = record();
  const std::string wide(3000, 'w');
  json["command"] = {wide, "x\x1b[2J\nsecond"};
  json["typed"] = {"run", "--set", "A=" + wide, "--", "a"};
  json["job"] = wide;
  json["first_failure"]["host"] = wide;
  json["first_failure"]["log"] = "/" + wide + "/rank-31.log";
  json["first_failure"]["last_lines"] = {
      "\xc2\x9b"
      "31m",
      wide,
      "\xc3\xa4",
      "\t",
      "e",
      "f"};
  for (int i = 0; i < 9; ++i) json["attempts"].push_back(json["attempts"][0]);
  json["ranks"] = {{"ok", 2}, {"failed", 5}, {"ended", 3}, {"silent", 6}};
  const std::string text = text_of(json);
  CHECK(std::ranges::count(text, '\n') <= 25);
  for (const std::string_view line : split(text, '\n')) CHECK(line.size() <= 100);
  CHECK(!has(text, "\x1b"));
  CHECK(!has(text, "\xc2\x9b"));
  CHECK(has(text, "\xc3\xa4"));
  CHECK(has(text, "/rank-31.log\n"));  // the end of a path stays
}

TEST_CASE("report: a long command is broken where a shell takes it, or left out") {
  Json json = record();
  for (int i = 0; i < 12; ++i) json["typed"].push_back("--option-" + std::to_string(i));
  CHECK(has(text_of(json), " \\\n            --option-"));
  for (int i = 0; i < 40; ++i) json["typed"].push_back("--option-" + std::to_string(i));
  CHECK(
      has(text_of(json), "next      hpclaunch run --log-dir logs ..., with the rest as before\n"));
  json["typed"] = {"run", "--", "sh", "-c", "echo a\necho b"};
  CHECK(has(text_of(json), "with the rest as before\n"));
  json["typed"] = {"run", "--set", "HF_TOKEN=<hidden>", "--", "a"};
  CHECK(has(text_of(json), "with the rest as before\n"));
}

TEST_CASE("report: of an earlier hpclaunch, and what is none") {
  Json json = record();
  for (const char* key : {"typed", "job", "lost"}) json.erase(key);
  const std::string text = text_of(json);
  CHECK(has(text, "first     rank 31 on n7"));
  CHECK(has(text, "output    a\n          b\n"));
  CHECK(has(text, "next      hpclaunch run --log-dir logs ..., with the rest as before\n"));
  for (const char* bad : {"", "{}", "[]", "{\"status\":1}", "{\"status\":\"1\",\"attempts\":[]}"})
    CHECK(!read_run_record(bad, "x.json"));
  // Other types than ours are as if they were not there.
  json["first_failure"] = {{"rank", "a"}, {"host", 3}, {"last_lines", 3}, {"where", 5}};
  json["ranks"] = 3;
  json["launcher"] = "x";
  CHECK(has(text_of(json), "first     rank 0 on "));
}

TEST_CASE("report: JSON with the same lines") {
  const Result<JobReport> report = read_run_record(record().dump(), "job.json");
  REQUIRE(report);
  const Json json = Json::parse(job_report_json(*report));
  CHECK(json["schema"] == 1);
  CHECK(json["status"] == "1 after 752.0 s");
  CHECK(json["files"] == Json({"job.json"}));
  CHECK(json["next"].size() == 1);
  for (const JobReport::Row& row : report->rows) CHECK(json.contains(row.key));
}
