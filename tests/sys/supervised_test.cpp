// The parts of what stays beside a launcher that start nothing: records in its stderr, whom to blame, what to pass on,
// and its connections, which here are this program's own.
#include <netinet/in.h>
#include <sys/socket.h>
#include <sys/syscall.h>
#include <unistd.h>

#include <array>
#include <csignal>
#include <random>
#include <string>
#include <vector>

#include "support/catch.h"
#include "sys/supervised/links.h"
#include "sys/supervised/lost_node.h"
#include "sys/supervised/rank_status.h"
#include "sys/supervised/record.h"

namespace {

using namespace hpclaunch::sys::supervised;
using hpclaunch::Plan;
using hpclaunch::sys::RankExit;
using hpclaunch::sys::SilentRanks;

const Bounds kBounds{16, 2, "@hpclaunch K "};
const std::string kEnd = "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1732212345.123456 exit=7";

std::optional<Record> parse(const std::string& text) { return parse_record(text, kBounds); }

TEST_CASE("a record's fields", "[supervised][record]") {
  const auto end = parse(kEnd);
  REQUIRE(end);
  CHECK(end->rank == 3);
  CHECK(end->node == 0);
  CHECK(end->host == "n1");
  CHECK(end->pid == 123);
  CHECK(end->seconds == Approx(1732212345.123456).epsilon(1e-13));
  CHECK(end->exit_status == 7);
  CHECK(end->signal == 0);
  CHECK_FALSE(end->is_tail);
  CHECK_FALSE(end->is_begin);
  CHECK(parse("@hpclaunch K rank=0 node=0 host=n1 pid=120 begun")->is_begin);
  CHECK(end->log_error == 0);
  CHECK(parse("@hpclaunch K rank=0 node=0 host=n1 pid=120 log=28")->log_error == 28);
  const auto crash =
      parse("@hpclaunch K rank=15 node=1 host=n2.site pid=9 at=5.5 signal=11 core=1");
  REQUIRE(crash);
  CHECK(crash->signal == 11);
  CHECK(crash->core);
  CHECK(crash->sent == 0);
  CHECK(parse(kEnd + " sent=15")->sent == 15);
  CHECK(parse("@hpclaunch K rank=1 node=0 host=n pid=9 at=5.5 signal=6 core=1 sent=2")->sent == 2);
  const auto tail =
      parse("@hpclaunch K rank=0 node=0 host=a-b_c pid=1 tail=a = b @hpclaunch K rank=1 ");
  REQUIRE(tail);
  CHECK(tail->is_tail);
  CHECK(tail->tail == "a = b @hpclaunch K rank=1 ");
  CHECK(parse("@hpclaunch K rank=0 node=0 host=h pid=1 tail=")->tail.empty());
}

TEST_CASE("what is nearly a record is none", "[supervised][record]") {
  for (const char* text :
       {"",
        "@hpclaunch",
        "@hpclaunch ",
        "@hpclaunch rank=3 node=0 host=n1 pid=123 at=1.1 exit=7",
        "@hpclaunch L rank=3 node=0 host=n1 pid=123 at=1.1 exit=7",
        "@hpclaunch K rank=3",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 begun ",
        "@hpclaunch K rank=3 node=0 host=n1 begun",
        "hpclaunch rank=3 node=0 host=n pid=1",
        "@hpclaunch K rank=16 node=0 host=n1 pid=123 at=1.1 exit=7",
        "@hpclaunch K rank=-1 node=0 host=n1 pid=123 at=1.1 exit=7",
        "@hpclaunch K rank=3 node=2 host=n1 pid=123 at=1.1 exit=7",
        "@hpclaunch K rank=3 node=0 host= pid=123 at=1.1 exit=7",
        "@hpclaunch K rank=3 node=0 host=n;1 pid=123 at=1.1 exit=7",
        "@hpclaunch K rank=3 node=0 host=n1 pid=0 at=1.1 exit=7",
        "@hpclaunch K rank=3 node=0 host=n1 pid=99999999 at=1.1 exit=7",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1 exit=7",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1.x exit=7",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=-1.5 exit=7",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1.1 exit=256",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1.1 exit=",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1.1 exit=7 more",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1.1 exit=7 core=1",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1.1 signal=0",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1.1 signal=65",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1.1 signal=9 core=0",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1.1 signal=9 sent=0",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 at=1.1 signal=9 sent=15 core=1",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 exit=7 at=1.1",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 log=0",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 log=4096",
        "@hpclaunch K rank=3 node=0 host=n1 pid=123 log=28 more",
        "@hpclaunch K node=0 rank=3 host=n1 pid=123 at=1.1 exit=7",
        "@hpclaunch K rank=3  node=0 host=n1 pid=123 at=1.1 exit=7",
        "@hpclaunch K rank=99999999999999999999 node=0 host=n1 pid=123 at=1.1 exit=7"}) {
    INFO(text);
    CHECK_FALSE(parse(text));
  }
}

TEST_CASE("launchers' tags", "[supervised][record]") {
  for (const char* tag : {"[3] ", "[3]", "3: ", "  12: ", "n1 3: ", "[1,3]<stderr>:",
                          "[1,3]<stderr>: ", "[n1:4711] ", "[3@node-1.site] "}) {
    INFO(tag);
    CHECK(is_tag(tag));
  }
  for (const char* text : {"", " ", ":", "[", "[] ", "Error: ", "[3] x", "45%|###", "[3", "a: b"}) {
    INFO(text);
    CHECK_FALSE(is_tag(text));
  }
}

struct Split {
  std::string text;
  std::vector<Record> records;
};

Split split_all(const std::vector<std::string>& pieces) {
  Splitter splitter(kBounds);
  Splitter::Sink sink;
  for (const std::string& piece : pieces) splitter.feed(piece, 0, sink);
  splitter.finish(sink);
  CHECK(splitter.next_flush() == -1);
  return {sink.text, sink.records};
}

TEST_CASE("records leave the text, tags with them", "[supervised][record]") {
  for (const char* tag : {"", "[3] ", "3: ", "[1,3]<stderr>:"}) {
    INFO(tag);
    const Split split = split_all({"before\n" + (tag + kEnd) + "\nafter\n"});
    CHECK(split.text == "before\nafter\n");
    REQUIRE(split.records.size() == 1);
    CHECK(split.records[0].rank == 3);
  }
  CHECK(split_all({kEnd}).records.size() == 1);  // the launcher died before the newline
  CHECK(split_all({kEnd + "\r\n"}).records.size() == 1);
}

TEST_CASE("a progress bar in front of a record ends its line", "[supervised][record]") {
  const Split split = split_all({"\r45%|###" + kEnd + "\nx\n"});
  CHECK(split.text == "\r45%|###\nx\n");
  CHECK(split.records.size() == 1);
  CHECK(split_all({"\r45%|###", kEnd + "\nx\n"}).text == "\r45%|###\nx\n");
}

TEST_CASE("text passes unchanged", "[supervised][record]") {
  for (const std::string text :
       {"a\nb\n\n\nc", "prompt? ", "@hpclaunch what\n", "x @hpclaunch K rank=3 y\n", "@", "\n",
        "[3] \n", "[3] @hpclaunch K rank=3 node=0 host=n1 pid=1 at=1.1 exit=\n",
        "@hpclaunch \n@hpclaunch ", "@hpclaunch K \n@hpclaunch K "}) {
    INFO(text);
    CHECK(split_all({text}).text == text);
    std::vector<std::string> bytes;
    for (const char c : text) bytes.emplace_back(1, c);
    CHECK(split_all(bytes).text == text);
  }
}

TEST_CASE("a prompt is shown at once, a tag after a while, a record's beginning late",
          "[supervised][record]") {
  Splitter splitter(kBounds);
  Splitter::Sink sink;
  splitter.feed("name? ", 10, sink);
  CHECK(sink.text == "name? ");
  CHECK(splitter.open_line());
  CHECK(splitter.next_flush() == -1);
  splitter.feed("\n[3] ", 10, sink);
  CHECK(sink.text == "name? \n");
  CHECK(splitter.next_flush() == 10 + Splitter::kQuiet);
  splitter.flush(10 + Splitter::kQuiet - 1, sink);
  CHECK(sink.text == "name? \n");
  splitter.flush(10 + Splitter::kQuiet, sink);
  CHECK(sink.text == "name? \n[3] ");
  splitter.feed("x\n[3] " + kEnd.substr(0, 40), 500, sink);
  CHECK(splitter.next_flush() == 500 + Splitter::kPatience);
  splitter.feed(kEnd.substr(40) + "\n", 2000, sink);
  CHECK(sink.text == "name? \n[3] x\n");
  CHECK(sink.records.size() == 1);
}

TEST_CASE("no line is held back for ever", "[supervised][record]") {
  Splitter splitter(kBounds);
  Splitter::Sink sink;
  const std::string flood = "@hpclaunch K " + std::string(100'000, 'x');
  splitter.feed(flood, 0, sink);
  CHECK(sink.text == flood);
}

// However the bytes are cut, and whatever they are: the same records, and every other byte in its place.
TEST_CASE("any bytes in any pieces", "[supervised][record][fuzz]") {
  std::mt19937 random(7);
  const auto below = [&random](unsigned n) { return static_cast<unsigned>(random() % n); };
  const std::vector<std::string> parts = {kEnd,
                                          "[3] ",
                                          "\n",
                                          "\r",
                                          "@hpclaunch K ",
                                          "@",
                                          "rank=3",
                                          "text",
                                          " ",
                                          std::string(1, '\0'),
                                          "\xff",
                                          "3: ",
                                          kEnd.substr(0, 30),
                                          "@hpclaunch K rank=1 node=0 host=a pid=2 tail=t"};
  for (int round = 0; round < 3000; ++round) {
    std::string all;
    for (unsigned n = below(12); n > 0; --n)
      all += parts[below(static_cast<unsigned>(parts.size()))];
    for (unsigned n = below(4); n > 0 && !all.empty(); --n) {
      all[below(static_cast<unsigned>(all.size()))] = static_cast<char>(below(256));
    }
    const Split whole = split_all({all});
    std::vector<std::string> pieces;
    for (std::size_t at = 0; at < all.size();) {
      const std::size_t size = 1 + below(20);
      pieces.push_back(all.substr(at, size));
      at += size;
    }
    const Split cut = split_all(pieces);
    INFO(all);
    REQUIRE(cut.text == whole.text);
    REQUIRE(cut.records.size() == whole.records.size());
    if (whole.records.empty()) REQUIRE(whole.text == all);
  }
}

// ---- the judge ------------------------------------------------------------------------------------------

const Plan& two_nodes() {
  static Plan plan;
  plan.launch.launcher = "slurm";
  plan.hosts.names = {"n1", "n2"};
  plan.placement.classes.resize(2);
  plan.placement.classes[0].ranks.resize(4);
  plan.placement.classes[1].ranks.resize(3);
  plan.placement.layout = {{0, 1}, {1, 1}};
  return plan;
}

constexpr double kStart = 1000;

Record ended(int rank, double at, int exit_status, int signal = 0) {
  Record record;
  record.rank = rank;
  record.node = rank < 4 ? 0 : 1;
  record.host = rank < 4 ? "n1" : "n2";
  record.pid = 100 + rank;
  record.seconds = kStart + at;
  record.exit_status = exit_status;
  record.signal = signal;
  return record;
}

// By the launcher, with TERM.
Record stopped(int rank, double at) {
  Record record = ended(rank, at, 0, SIGTERM);
  record.sent = SIGTERM;
  return record;
}

RankExit exited(int status) {
  RankExit launcher;
  launcher.exit_status = status;
  return launcher;
}

RankExit killed_by(int signal) {
  RankExit launcher;
  launcher.signal = signal;
  return launcher;
}

JobFacts plain() {
  JobFacts facts;
  facts.started = kStart;
  return facts;
}

RankStatus of(const std::vector<Record>& records) {
  RankStatus ranks(two_nodes());
  for (const Record& record : records) ranks.add(record, kStart, kStart + 100);
  return ranks;
}

std::vector<Record> all_well() {
  std::vector<Record> records;
  for (int rank = 0; rank < 7; ++rank) records.push_back(ended(rank, 1, 0));
  return records;
}

TEST_CASE("all is well", "[supervised][status]") {
  const RankStatus ranks = of(all_well());
  CHECK(ranks.all_ended());
  const Summary summary = ranks.summary({}, plain());
  CHECK(summary.report.empty());
  CHECK(summary.ending.status == 0);
  CHECK(summary.ending.ok == 7);
  CHECK(summary.ending.launcher_exit == 0);
}

TEST_CASE("the first in time is to blame, whatever order they are told in",
          "[supervised][status]") {
  std::vector<Record> records = {ended(0, 2.0, 1), ended(5, 1.5, 7), stopped(1, 2.1)};
  Record tail = ended(5, 0, 0);
  tail.is_tail = true;
  tail.tail = "last words";
  records.insert(records.begin(), tail);
  const Summary summary = of(records).summary(exited(143), plain());
  CHECK(summary.ending.status == 7);
  REQUIRE(summary.ending.first);
  CHECK(summary.ending.first->rank == 5);
  CHECK(summary.ending.first->local_rank == 1);
  CHECK(summary.ending.first->node == 1);
  CHECK(summary.ending.failed == 2);
  CHECK(summary.ending.ended == 1);
  CHECK(summary.report ==
        "hpclaunch: rank 5 failed first: host n2, pid 105, exit status 7, 1.5 s after start\n"
        "hpclaunch: last output of rank 5:\n  | last words\n"
        "hpclaunch: 1 other rank also failed\n"
        "hpclaunch: the launcher stopped 1 other rank\n"
        "hpclaunch: no exit status from ranks 2-3 on n1, ranks 4,6 on n2: killed later, or node "
        "lost\n");
}

TEST_CASE("a crash explains the exits just before it, and no earlier ones",
          "[supervised][status]") {
  const auto blamed = [](double crash) {
    return of({ended(0, 1.0, 1), ended(6, crash, 0, SIGSEGV)})
        .summary({}, plain())
        .ending.first->rank;
  };
  CHECK(blamed(1.04) == 6);
  CHECK(blamed(1.2) == 0);
}

TEST_CASE("a clock that is wrong blames nobody earlier than the job", "[supervised][status]") {
  const Summary summary = of({ended(0, -500, 1), ended(1, 3, 2)}).summary({}, plain());
  CHECK(summary.ending.first->rank == 1);
}

TEST_CASE("silence is not success", "[supervised][status]") {
  std::vector<Record> records = all_well();
  records.resize(4);
  const Summary summary = of(records).summary({}, plain());
  CHECK(summary.ending.status == kSilenceStatus);
  REQUIRE(summary.ending.silent.size() == 1);
  CHECK(summary.ending.silent[0].ranks == "4-6");
  CHECK(summary.report ==
        "hpclaunch: no exit status from ranks 4-6 on n2: node lost, or killed with the launcher\n");
  CHECK(of(records).summary(exited(143), plain()).ending.status == 143);
}

TEST_CASE("a node has begun when a rank of it speaks", "[supervised][status]") {
  RankStatus ranks(two_nodes());
  const auto begun = [&](int rank) {
    Record record = ended(rank, 0, 0);
    record.is_begin = true;
    ranks.add(record, kStart, kStart);
  };
  CHECK(ranks.not_started() == "ranks 0-3 on n1, ranks 4-6 on n2");
  begun(0);
  begun(0);
  CHECK(ranks.started_nodes() == 1);
  CHECK(ranks.not_started() == "ranks 4-6 on n2");
  CHECK_FALSE(ranks.all_started());
  ranks.add(ended(5, 1, 0), kStart, kStart + 1);
  begun(4);  // after another record of its node
  CHECK(ranks.all_started());
  CHECK(ranks.not_started().empty());
  CHECK(ranks.summary({}, plain()).ending.silent.size() == 2);  // to have begun is no end
}

TEST_CASE("a crash that is known late may be the cause", "[supervised][status]") {
  Record crash = ended(5, 2.3, 0);
  crash.signal = SIGSEGV;
  crash.sent = SIGTERM;
  const std::string report = of({ended(0, 2, 1), crash}).summary(exited(1), plain()).report;
  CHECK(report.find("rank 5 ended with SIGSEGV after it was signalled to stop: it may have failed "
                    "before rank 0\n") != std::string::npos);
  crash.signal = SIGABRT;  // as a victim ends whose connection was lost
  CHECK(of({ended(0, 2, 1), crash}).summary(exited(1), plain()).report.find("may have") ==
        std::string::npos);
}

TEST_CASE("a rank that the launcher ended has not failed first", "[supervised][status]") {
  const Summary all = of({stopped(0, 1), stopped(5, 1.1)}).summary(exited(143), plain());
  CHECK_FALSE(all.ending.first);
  CHECK(all.ending.status == 143);
  CHECK(all.report.starts_with("hpclaunch: the launcher stopped 2 ranks; no rank failed before\n"));
  const Summary one = of({stopped(0, 1), ended(5, 2, 3)}).summary(exited(143), plain());
  CHECK(one.ending.first->rank == 5);
  CHECK(one.ending.status == 3);
  Record handled = ended(2, 1, 1);  // a program that catches TERM and exits
  handled.sent = SIGTERM;
  CHECK_FALSE(of({handled}).summary({}, plain()).ending.first);
  CHECK(of({handled}).summary({}, plain()).ending.status == kSilenceStatus);
  Record survivor = ended(5, 9, 4);  // TERM did not end it; it failed later
  survivor.sent = SIGTERM;
  const Summary late = of({stopped(0, 1), survivor}).summary(exited(143), plain());
  CHECK(late.ending.first->rank == 5);
  CHECK(late.ending.status == 4);
}

TEST_CASE("a node that fell silent is named before those that the launcher ended",
          "[supervised][status]") {
  std::vector<Record> records;
  for (int rank = 0; rank < 4; ++rank) records.push_back(stopped(rank, 20));
  Record begun = ended(4, 0, 0);
  begun.is_begin = true;
  const Summary early = of(records).summary(exited(143), plain());
  CHECK(early.report.find("failed first") == std::string::npos);  // it may never have started
  records.push_back(begun);
  const Summary summary = of(records).summary(exited(143), plain());
  CHECK_FALSE(summary.ending.first);
  CHECK(summary.ending.status == 143);
  CHECK(summary.report ==
        "hpclaunch: node n2 failed first: no exit status from ranks 4-6 on n2\n"
        "hpclaunch: the launcher stopped 4 ranks\n"
        "hpclaunch: slurm exited with status 143\n");
}

TEST_CASE("a node whose connection ended first is named", "[supervised][status]") {
  std::vector<Record> begun = {ended(0, 0, 0), ended(4, 0, 0)};
  begun[0].is_begin = begun[1].is_begin = true;
  JobFacts facts = plain();
  facts.lost_host = "n2";
  facts.lost_at = kStart + 5;
  const Summary all = of(begun).summary(exited(255), facts);
  CHECK(all.ending.status == 255);
  CHECK(all.report ==
        "hpclaunch: node n2 failed first: no exit status from ranks 4-6 on n2\n"
        "hpclaunch: slurm exited with status 255\n");
  begun.push_back(ended(1, 6, 1));  // its peer is gone
  CHECK(
      of(begun).summary(exited(255), facts).report.starts_with("hpclaunch: node n2 failed first"));
  begun.back() = ended(1, 2, 1);  // it failed before
  CHECK(of(begun).summary(exited(255), facts).report.starts_with("hpclaunch: rank 1 failed first"));
}

TEST_CASE("a rank that lost its peers is not named before their node", "[supervised][status]") {
  Record begun = ended(4, 0, 0);
  begun.is_begin = true;
  const std::vector<Record> records = {begun, ended(0, 5, 1), stopped(1, 6), stopped(2, 6),
                                       stopped(3, 6.1)};
  CHECK(of(records).summary(exited(143), plain()).report.starts_with("hpclaunch: rank 0 failed "));
  Plan plan = two_nodes();
  plan.supervision.termination.stop_is_recorded = true;
  RankStatus ranks(plan);
  for (const Record& record : records) ranks.add(record, kStart, kStart + 100);
  const Summary summary = ranks.summary(exited(143), plain());
  CHECK(summary.ending.status == 1);
  CHECK(summary.report.starts_with(
      "hpclaunch: node n2 failed first: no exit status from ranks 4-6 on n2\n"
      "hpclaunch: rank 0 failed: host n1,"));
}

TEST_CASE("nodes that do not start in time", "[supervised][status]") {
  JobFacts facts = plain();
  facts.start_seconds = 60;
  facts.launcher_stuck = true;
  const std::string start =
      "hpclaunch: ranks 0-3 on n1, ranks 4-6 on n2 did not start within 60 s; stopped slurm\n"
      "hpclaunch: try: ";
  const Summary silent = of({}).summary(killed_by(SIGKILL), facts);
  CHECK(silent.ending.status == kNotStartedStatus);
  CHECK(silent.report == start + "run hpclaunch verify, or --start-timeout SECONDS\n");
  facts.launcher_said = true;
  const Summary summary = of({}).summary(killed_by(SIGKILL), facts);
  CHECK(summary.report ==
        start + "read the launcher's messages above, or --start-timeout SECONDS\n");
}

TEST_CASE("many silent nodes are counted", "[supervised][status]") {
  Plan plan = two_nodes();
  plan.placement.classes = {hpclaunch::NodeClass{std::vector<hpclaunch::RankPlan>(2)}};
  plan.placement.layout = {{0, 20}};
  plan.hosts.names = {};
  for (int node = 0; node < 20; ++node) plan.hosts.names.push_back("h" + std::to_string(node));
  const std::string report = RankStatus(plan).summary(exited(1), plain()).report;
  CHECK(
      report.find("ranks 14-15 on h7, and 24 ranks on 12 nodes: the launcher may not have started "
                  "them\nhpclaunch: slurm exited with status 1\n") != std::string::npos);
}

TEST_CASE("where the launcher binds and starts nothing, the shim may", "[supervised][status]") {
  constexpr const char* kHint = "try: --bind-via shim, where the launcher refuses the CPUs";
  Plan plan = two_nodes();
  CHECK(RankStatus(plan).summary(exited(192), plain()).report.find(kHint) == std::string::npos);
  plan.placement.bind_via = hpclaunch::BindVia::launcher;
  CHECK(RankStatus(plan).summary(exited(192), plain()).report.find(kHint) != std::string::npos);
}

TEST_CASE("the launcher's own end", "[supervised][status]") {
  const RankStatus ranks = of(all_well());
  const Summary failed = ranks.summary(exited(5), plain());
  CHECK(failed.ending.status == 5);
  CHECK(failed.report == "hpclaunch: slurm exited with status 5, but all ranks exited with 0\n");
  const Summary killed = ranks.summary(killed_by(SIGKILL), plain());
  CHECK(killed.ending.status == 137);
  CHECK(killed.ending.launcher_signal == SIGKILL);
  CHECK(killed.report == "hpclaunch: slurm was stopped by SIGKILL (signal 9)\n");
  JobFacts stuck = plain();
  stuck.launcher_stuck = true;
  const Summary ended_it = ranks.summary(killed_by(SIGKILL), stuck);
  CHECK(ended_it.ending.status == 0);
  CHECK(ended_it.report == "hpclaunch: slurm did not exit; stopped it\n");
}

// The user sends it `at` seconds after the start.
JobFacts user_sends(int signal, double at) {
  JobFacts facts = plain();
  facts.forwarded = facts.ended_by = signal;
  facts.ended_at = kStart + at;
  return facts;
}

TEST_CASE("what ends after the user's signal has not failed", "[supervised][status]") {
  Record handled = ended(2, 5.1, 1);  // a program that catches the signal and exits
  handled.sent = SIGINT;
  const std::vector<Record> records = {handled, ended(0, 5.2, 1), ended(1, 5.2, 0, SIGINT),
                                       ended(5, 5.3, 130), ended(6, 4.98, 1)};  // slow clock
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    INFO(signal);
    const Summary summary = of(records).summary(exited(255), user_sends(signal, 5));
    CHECK_FALSE(summary.ending.first);
    CHECK(summary.ending.status == 128 + signal);
    CHECK(summary.ending.interrupted_by == signal);
    CHECK(summary.ending.failed == 0);
    CHECK(summary.ending.ended == 5);
    CHECK(summary.report.find("; no rank failed before\n") != std::string::npos);
    CHECK(summary.report.find("exited with status 255") == std::string::npos);
  }
  CHECK(of({}).summary({}, user_sends(SIGTERM, 5)).ending.status == 143);
  const Summary well = of(all_well()).summary({}, user_sends(SIGTERM, 0.5));
  CHECK(well.ending.status == 0);
  CHECK(well.report.empty());
  CHECK(of(all_well()).summary(exited(1), user_sends(SIGTERM, 0.5)).ending.status == 143);
}

TEST_CASE("what failed before the user's signal is named", "[supervised][status]") {
  const auto first = [](const Record& record, double now, double sent_at) {
    RankStatus ranks(two_nodes());
    ranks.add(record, kStart, kStart + now);
    ranks.add(ended(0, sent_at + 0.1, 0, SIGTERM), kStart, kStart + 100);
    return ranks.summary(exited(255), user_sends(SIGTERM, sent_at)).ending;
  };
  const auto failed = first(ended(5, 1, 7), 1, 5);
  REQUIRE(failed.first);
  CHECK(failed.first->rank == 5);
  CHECK(failed.status == 7);
  CHECK(failed.failed == 1);
  CHECK(failed.ended == 1);
  CHECK(first(ended(5, 1, 7), 6, 5).first);         // its record came late
  CHECK(first(ended(5, 4.99, 7), 4.995, 5).first);  // known in time
  CHECK_FALSE(first(ended(5, 4.99, 7), 5.01, 5).first);
  CHECK_FALSE(first(ended(5, 4.99, 0, SIGTERM), 4.995, 5).first);  // all processes were signalled
  CHECK(first(ended(5, 4.9, 0, SIGTERM), 4.9, 5).first);           // this one alone, by another
  CHECK(first(ended(5, 4.99, 0, SIGUSR1), 4.995, 5).first);
}

TEST_CASE("a crash after the user's signal is said", "[supervised][status]") {
  Record crash = ended(5, 6, 0, SIGSEGV);
  crash.sent = SIGINT;
  const Summary summary =
      of({crash, ended(0, 6, 0, SIGINT)}).summary(exited(1), user_sends(SIGINT, 5));
  CHECK(summary.ending.status == 130);
  CHECK(summary.report.starts_with(
      "hpclaunch: interrupted (Ctrl-C); no rank failed before\n"
      "hpclaunch: rank 5 ended with SIGSEGV after it was signalled to stop\n"));
}

TEST_CASE("a launcher whose output nobody reads", "[supervised][status]") {
  const JobFacts facts = user_sends(SIGPIPE, 9);
  Record begun = ended(4, 0, 0);
  begun.is_begin = true;
  for (const RankExit& launcher : {exited(255), killed_by(SIGPIPE)}) {
    const Summary summary =
        of({begun, stopped(1, 9), ended(2, 1, 0, SIGPIPE)}).summary(launcher, facts);
    CHECK(summary.ending.status == 141);
    CHECK(summary.report ==
          "hpclaunch: the reader of standard output has exited (SIGPIPE); no rank failed before\n");
  }
  const Summary failed = of({ended(2, 1, 7)}).summary(killed_by(SIGPIPE), facts);
  CHECK(failed.ending.status == 7);
  CHECK(failed.report.starts_with("hpclaunch: rank 2 failed first: "));
}

TEST_CASE("a log that is lost is no end of its rank", "[supervised][status]") {
  Record lost = ended(2, 0, 0);
  lost.log_error = 28;
  RankStatus ranks = of({lost});
  CHECK(ranks.started_nodes() == 1);
  CHECK(ranks.failures() == 0);
  ranks.add(ended(2, 1, 7), kStart, kStart + 2);
  CHECK(ranks.failures() == 1);
}

TEST_CASE("a launcher that kills ranks at once is said to do so", "[supervised][status]") {
  JobFacts facts = user_sends(SIGTERM, 0.5);
  Plan plan = two_nodes();
  plan.supervision.termination.at_stop = "it kills ranks";
  const auto report = [&] { return RankStatus(plan).summary(exited(1), facts).report; };
  const std::string sent =
      "hpclaunch: sent SIGTERM to the launcher: it kills ranks; no rank failed before\n";
  CHECK(report().starts_with(sent));
  facts.forwarded = SIGUSR1;  // later
  CHECK(report().starts_with(sent));
  facts.ended_by = SIGINT;
  CHECK(report().starts_with(
      "hpclaunch: interrupted (Ctrl-C): it kills ranks; no rank failed before\n"));
  facts.ended_by = SIGTERM;
  RankStatus ranks(plan);
  ranks.add(ended(2, 1, 0, SIGTERM), kStart, kStart + 10);
  CHECK(ranks.summary(exited(1), facts).report.find("it kills ranks") != std::string::npos);
}

TEST_CASE("silent ranks that had started do not miss a redirected stream", "[supervised][status]") {
  Record begun = ended(4, 0, 0);
  begun.is_begin = true;
  const auto report = [](const std::vector<Record>& records) {
    return of(records).summary(exited(0), plain()).report;
  };
  CHECK(report({}).find("redirect standard error") != std::string::npos);
  CHECK(report({begun}).find("redirect standard error") == std::string::npos);
}

TEST_CASE("the node that a launcher says it has lost", "[supervised][lost]") {
  using hpclaunch::sys::supervised::LostNode;
  const std::vector<hpclaunch::TerminationPolicy::NameInText> texts = {
      {"Remote daemon:", " on node "}, {"Remote host:", "Remote host:"}};
  const std::string lost =
      "----\nPRTE has lost communication with a remote daemon.\n\n"
      "  HNP daemon   : [prterun-n1-757@0,0] on node n1\n"
      "  Remote daemon: [prterun-n1-757@0,2] on node n3\n\nThis is usually due to";
  std::vector<SilentRanks> silent = {{"n1.x", "0-1", 2}, {"n3.x", "4-5", 2}};
  for (SilentRanks& node : silent) node.whole_node = true;
  for (std::size_t size = 1; size <= lost.size(); size += 7) {
    LostNode node(texts);
    for (std::size_t at = 0; at < lost.size(); at += size) node.feed(lost.substr(at, size), 5);
    CHECK(node.name() == "n3");
    CHECK(node.at() == 5);
    CHECK(node.among(silent) == &silent[1]);
    node.feed("\n  Remote host:   n1\n", 9);
    CHECK(node.name() == "n3");
  }
  LostNode agent(texts);
  agent.feed(std::string(2000, 'x') + "\n  Local host:    n1\n  Remote host:   n3\n  Daemon", 7);
  CHECK(agent.name() == "n3");
  silent[1].whole_node = false;
  CHECK(agent.among(silent) == nullptr);
  for (const char* text :
       {"Remote daemon: on n3\n", " on node n3\n", "Remote host:\n", "Remote host: n3"}) {
    INFO(text);
    LostNode none(texts);
    none.feed(text, 1);
    CHECK(none.name().empty());
    CHECK(none.among(silent) == nullptr);
  }
  LostNode deaf({});
  deaf.feed(lost, 1);
  CHECK(deaf.name().empty());
}

TEST_CASE("records that add nothing", "[supervised][status]") {
  RankStatus ranks(two_nodes());
  Record elsewhere = ended(2, 1, 0);
  elsewhere.node = 1;
  ranks.add(elsewhere, kStart, kStart + 10);
  CHECK(ranks.started_nodes() == 0);
  ranks.add(ended(2, 1, 0), kStart, kStart + 10);
  ranks.add(ended(2, 1, 7), kStart, kStart + 10);
  CHECK(ranks.failures() == 0);
}

#if defined(SYS_pidfd_open) && defined(SYS_pidfd_getfd)
/// Both ends of a TCP connection. Copies of them are open elsewhere: what ends it is shutdown(2).
class Connection {
 public:
  Connection() {
    const int listening = socket(AF_INET, SOCK_STREAM, 0);
    sockaddr_in where{};
    where.sin_family = AF_INET;
    where.sin_addr.s_addr = htonl(INADDR_LOOPBACK);
    socklen_t size = sizeof where;
    auto* const address = reinterpret_cast<sockaddr*>(&where);
    REQUIRE(bind(listening, address, size) == 0);
    REQUIRE(listen(listening, 1) == 0);
    REQUIRE(getsockname(listening, address, &size) == 0);
    ends_[0] = socket(AF_INET, SOCK_STREAM, 0);
    REQUIRE(connect(ends_[0], address, size) == 0);
    ends_[1] = accept(listening, nullptr, nullptr);
    REQUIRE(ends_[1] >= 0);
    close(listening);
  }
  Connection(const Connection&) = delete;
  Connection& operator=(const Connection&) = delete;
  ~Connection() {
    for (const int end : ends_) close(end);
  }
  void leave(std::size_t end) const { REQUIRE(shutdown(ends_.at(end), SHUT_WR) == 0); }

 private:
  std::array<int, 2> ends_{-1, -1};
};

bool may_copy_descriptors() {
  const auto process = static_cast<int>(syscall(SYS_pidfd_open, getpid(), 0));
  const auto copy = static_cast<int>(syscall(SYS_pidfd_getfd, process, STDERR_FILENO, 0));
  if (process >= 0) close(process);
  if (copy >= 0) close(copy);
  return copy >= 0;
}

TEST_CASE("a connection is lost where others are left", "[supervised][links]") {
  if (!may_copy_descriptors()) {
    WARN("left out: this kernel copies no descriptors of a process");
    return;
  }
  for (const bool all : {false, true}) {
    INFO("all: " << all);
    const Connection one;
    const Connection other;
    Links links;
    links.watch(getpid());
    one.leave(0);
    if (all) {
      one.leave(1);
      other.leave(0);
      other.leave(1);
    }
    links.take_ended();
    links.drop();
    std::vector<SilentRanks> silent = {{"192.0.2.1", "0", 1}, {"127.0.0.1", "1", 1}};
    for (SilentRanks& node : silent) node.whole_node = true;
    double at = 0;
    const SilentRanks* const lost = links.lost_among(silent, at);
    CHECK(lost == (all ? nullptr : &silent[1]));
    CHECK((at > 0) == !all);
    silent[1].whole_node = false;
    CHECK(links.lost_among(silent, at) == nullptr);
  }
}
#endif

}  // namespace
