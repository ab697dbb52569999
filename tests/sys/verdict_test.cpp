// How a job went, from what is known of the ends of its ranks, its nodes' connections and its launcher.
#include "sys/verdict.h"

#include <csignal>
#include <string>
#include <string_view>
#include <vector>

#include "support/catch.h"

namespace {

using namespace hpclaunch::sys;
using hpclaunch::Plan;

// Ranks 0-3 on n1, 4-6 on n2.
Plan two_nodes() {
  Plan plan;
  plan.launch.launcher = "slurm";
  plan.hosts.names = {"n1", "n2"};
  plan.placement.classes.resize(2);
  plan.placement.classes[0].ranks.resize(4);
  plan.placement.classes[1].ranks.resize(3);
  plan.placement.layout = {{0, 1}, {1, 1}};
  return plan;
}

const Plan kPlan = two_nodes();
constexpr double kStart = 1000;
constexpr const char* kAddress = "10.0.0.1 port 4711";

RankExit ended(int rank, double at, int exit_status, int signal = 0, int sent = 0) {
  RankExit end;
  end.rank = rank;
  end.pid = 100 + rank;
  end.seconds = kStart + at;
  end.exit_status = exit_status;
  end.signal = signal;
  end.sent = sent;
  return end;
}

// With TERM, by the launcher or by us.
RankExit stopped(int rank, double at) { return ended(rank, at, 0, SIGTERM, SIGTERM); }

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
  facts.launcher_at = kStart + 100;
  facts.all_can_connect = true;
  facts.where = kAddress;
  return facts;
}

// The user sends it `at` seconds after the start.
JobFacts user_sends(int signal, double at) {
  JobFacts facts = plain();
  facts.forwarded = facts.ended_by = signal;
  facts.ended_at = kStart + at;
  return facts;
}

JobFacts we_stop(double at) {
  JobFacts facts = plain();
  facts.stopped_at = kStart + at;
  return facts;
}

void begin(Verdict& verdict, int first, int last) {
  for (int rank = first; rank <= last; ++rank) verdict.begun(rank, rank < 4 ? "n1" : "n2");
}

void lose(Verdict& verdict, int first, int last, double at) {
  for (int rank = first; rank <= last; ++rank) verdict.gone(rank, kStart + at);
}

// All ranks have begun.
Verdict of(const std::vector<RankExit>& ends, const Plan& plan = kPlan) {
  Verdict verdict(plan);
  begin(verdict, 0, 6);
  for (const RankExit& end : ends) verdict.ended(end, "");
  return verdict;
}

std::vector<RankExit> well(int first, int last) {
  std::vector<RankExit> ends;
  for (int rank = first; rank <= last; ++rank) ends.push_back(ended(rank, 1, 0));
  return ends;
}

bool has(const Summary& summary, std::string_view text) {
  return summary.report.find(text) != std::string::npos;
}

constexpr const char* kLost =
    "hpclaunch: node n2 failed first: its connection ended, with ranks 4-6 on n2 running\n";

// ---- the ends of ranks --------------------------------------------------------------------------

TEST_CASE("all is well", "[supervised][verdict]") {
  const Verdict verdict = of(well(0, 6));
  CHECK(verdict.all_ended());
  CHECK(verdict.all_over());
  CHECK(verdict.ok() == 7);
  const Summary summary = verdict.summary({}, plain());
  CHECK(summary.report.empty());
  CHECK(summary.ending.status == 0);
  CHECK(summary.ending.ok == 7);
  CHECK(summary.ending.launcher_exit == 0);
}

TEST_CASE("the first in time is to blame, whatever order they are told in",
          "[supervised][verdict]") {
  Verdict verdict(kPlan);
  begin(verdict, 0, 6);
  verdict.ended(ended(0, 2.0, 1), "");
  verdict.ended(ended(5, 1.5, 7), "first words\nlast words\n");
  verdict.ended(stopped(1, 2.1), "");
  const Summary summary = verdict.summary(exited(143), plain());
  CHECK(summary.ending.status == 7);
  REQUIRE(summary.ending.first);
  CHECK(summary.ending.first->rank == 5);
  CHECK(summary.ending.first->local_rank == 1);
  CHECK(summary.ending.first->node == 1);
  CHECK(summary.ending.failed == 2);
  CHECK(summary.ending.ended == 1);
  CHECK(summary.report ==
        "hpclaunch: rank 5 failed first: host n2, pid 105, exit status 7, 1.5 s after start\n"
        "hpclaunch: last output of rank 5:\n  | first words\n  | last words\n"
        "hpclaunch: 1 other rank also failed\n"
        "hpclaunch: the launcher stopped 1 other rank\n"
        "hpclaunch: no exit status from ranks 2-3 on n1, ranks 4,6 on n2: killed later, or node "
        "lost\n");
  CHECK(has(verdict.summary(exited(143), we_stop(1.6)), "hpclaunch: stopped 1 other rank\n"));
}

TEST_CASE("a rank is on the host that it says", "[supervised][verdict]") {
  Verdict verdict(kPlan);
  verdict.begun(2, "n1");
  verdict.begun(5, "elsewhere.site");
  CHECK(verdict.host_of(2) == "n1");
  CHECK(verdict.host_of(4) == "n2");
  CHECK(verdict.host_of(5) == "elsewhere.site");
  verdict.ended(ended(5, 1, 1), "");
  const Summary summary = verdict.summary(exited(1), plain());
  REQUIRE(summary.ending.first);
  CHECK(summary.ending.first->host == "elsewhere.site");
}

TEST_CASE("a crash explains the exits just before it, and no earlier ones",
          "[supervised][verdict]") {
  const auto blamed = [](double crash) {
    return of({ended(0, 1.0, 1), ended(6, crash, 0, SIGSEGV)})
        .summary({}, plain())
        .ending.first->rank;
  };
  CHECK(blamed(1.04) == 6);
  CHECK(blamed(1.2) == 0);
}

TEST_CASE("of those that fail at the same time the lower rank is named", "[supervised][verdict]") {
  const Summary summary = of({ended(5, 1, 2), ended(3, 1, 4)}).summary(exited(4), plain());
  REQUIRE(summary.ending.first);
  CHECK(summary.ending.first->rank == 3);
}

TEST_CASE("a rank that began and has no end is no success", "[supervised][verdict]") {
  const Verdict verdict = of(well(0, 3));
  const Summary summary = verdict.summary({}, plain());
  CHECK(summary.ending.status == kSilenceStatus);
  REQUIRE(summary.ending.silent.size() == 1);
  CHECK(summary.ending.silent[0].ranks == "4-6");
  CHECK(summary.ending.silent[0].connected);
  CHECK(summary.report ==
        "hpclaunch: no exit status from ranks 4-6 on n2: killed later, or node lost\n");
  CHECK(verdict.summary(exited(143), plain()).ending.status == 143);
}

TEST_CASE("what is told twice adds nothing", "[supervised][verdict]") {
  Verdict verdict(kPlan);
  begin(verdict, 2, 2);
  verdict.ended(ended(2, 1, 0), "");
  verdict.ended(ended(2, 1, 7), "");
  begin(verdict, 2, 2);
  CHECK(verdict.failures() == 0);
  CHECK(verdict.ok() == 1);
  CHECK(verdict.has_ended(2));
  verdict.gone(2, kStart + 2);  // its monitor, after its end
  CHECK(verdict.gone_since() == 0);
}

TEST_CASE("a node has started when a rank of it has connected, and each rank when it has",
          "[supervised][verdict]") {
  Verdict verdict(kPlan);
  CHECK(verdict.not_started() == "ranks 0-3 on n1, ranks 4-6 on n2");
  begin(verdict, 1, 1);
  begin(verdict, 1, 1);
  CHECK(verdict.started_nodes() == 1);
  CHECK(verdict.not_started() == "ranks 0,2-3 on n1, ranks 4-6 on n2");
  begin(verdict, 4, 4);
  CHECK(verdict.started_nodes() == 2);
  begin(verdict, 0, 3);
  CHECK(verdict.not_started() == "ranks 5-6 on n2");
  begin(verdict, 5, 6);
  CHECK(verdict.not_started().empty());
  CHECK(verdict.running() == "ranks 0-3 on n1, ranks 4-6 on n2");  // to have begun is no end
  verdict.ended(ended(5, 1, 0), "");
  CHECK(verdict.running() == "ranks 0-3 on n1, ranks 4,6 on n2");
}

TEST_CASE("a crash that is known late may be the cause", "[supervised][verdict]") {
  RankExit crash = ended(5, 2.3, 0, SIGSEGV, SIGTERM);
  CHECK(has(of({ended(0, 2, 1), crash}).summary(exited(1), plain()),
            "rank 5 ended with SIGSEGV after it was signalled to stop: it may have failed before "
            "rank 0\n"));
  crash.signal = SIGABRT;  // as a victim ends whose connection was lost
  CHECK_FALSE(has(of({ended(0, 2, 1), crash}).summary(exited(1), plain()), "may have"));
}

TEST_CASE("a rank that the launcher ended has not failed first", "[supervised][verdict]") {
  const Summary all = of({stopped(0, 1), stopped(5, 1.1)}).summary(exited(143), plain());
  CHECK_FALSE(all.ending.first);
  CHECK(all.ending.status == 143);
  CHECK(all.report.starts_with("hpclaunch: the launcher stopped 2 ranks; no rank failed before\n"));
  const Summary one = of({stopped(0, 1), ended(5, 2, 3)}).summary(exited(143), plain());
  CHECK(one.ending.first->rank == 5);
  CHECK(one.ending.status == 3);
  const RankExit survivor = ended(5, 9, 4, 0, SIGTERM);  // TERM did not end it; it failed later
  const Summary late = of({stopped(0, 1), survivor}).summary(exited(143), plain());
  CHECK(late.ending.first->rank == 5);
  CHECK(late.ending.status == 4);
}

TEST_CASE("many silent nodes are counted", "[supervised][verdict]") {
  Plan plan = two_nodes();
  plan.placement.classes = {hpclaunch::NodeClass{std::vector<hpclaunch::RankPlan>(2)}};
  plan.placement.layout = {{0, 20}};
  plan.hosts.names = {};
  for (int node = 0; node < 20; ++node) plan.hosts.names.push_back("h" + std::to_string(node));
  CHECK(Verdict(plan).not_started().ends_with("ranks 14-15 on h7, and 24 ranks on 12 nodes"));
}

TEST_CASE("ranks that stayed too long were ended", "[supervised][verdict]") {
  JobFacts facts = we_stop(9);
  facts.timed_out = true;
  std::vector<RankExit> ends = well(0, 4);
  ends.push_back(stopped(5, 9.1));
  ends.push_back(ended(6, 9.2, 1, 0, SIGTERM));  // it catches TERM, and exits
  const Summary summary = of(ends).summary(exited(143), facts);
  CHECK(summary.ending.status == kTimedOutStatus);
  CHECK_FALSE(summary.ending.first);
  CHECK(summary.ending.ok == 5);
  CHECK(summary.ending.ended == 2);
  CHECK(summary.report.starts_with(
      "hpclaunch: ended 2 ranks that stayed after the others had ended (--end-timeout)\n"));
  CHECK_FALSE(has(summary, "no rank failed before"));
  ends.back() = ended(6, 8, 3);  // it failed before that
  const Summary failed = of(ends).summary(exited(143), facts);
  CHECK(failed.ending.status == 3);
  CHECK(has(failed, "hpclaunch: rank 6 failed first: "));
}

// ---- nodes that are lost ------------------------------------------------------------------------

TEST_CASE("a node whose connection ended is named before the ranks that ended after it",
          "[supervised][verdict]") {
  Verdict verdict = of({});
  lose(verdict, 4, 6, 5);
  CHECK(verdict.gone_since() == kStart + 5);
  CHECK_FALSE(verdict.all_over());
  for (const RankExit& end : {ended(0, 5.5, 1), stopped(1, 6.1), stopped(2, 6.1), stopped(3, 6.1)})
    verdict.ended(end, "");
  CHECK(verdict.all_over());
  CHECK_FALSE(verdict.all_ended());
  const Summary summary = verdict.summary(exited(143), we_stop(6));
  CHECK(summary.ending.status == kSilenceStatus);
  REQUIRE(summary.ending.lost.size() == 1);
  CHECK(summary.ending.lost[0].node == 1);
  CHECK(summary.ending.lost[0].whole_node);
  CHECK(summary.report.starts_with(std::string(kLost) +
                                   "hpclaunch: rank 0 failed after that: host n1,"));
  CHECK(has(summary, "hpclaunch: stopped 3 other ranks\n"));
  CHECK_FALSE(has(summary, "no exit status"));
  CHECK_FALSE(has(summary, "exited with status 143"));  // the launcher: a consequence
}

TEST_CASE("a node is lost, and no rank failed", "[supervised][verdict]") {
  Verdict verdict = of({stopped(0, 6), stopped(1, 6), stopped(2, 6), stopped(3, 6)});
  lose(verdict, 4, 6, 5);
  JobFacts facts = we_stop(5.9);
  facts.launcher_stuck = true;
  for (const RankExit& launcher : {exited(0), exited(1), killed_by(SIGTERM)}) {
    const Summary summary = verdict.summary(launcher, facts);
    CHECK(summary.ending.status == kSilenceStatus);
    CHECK_FALSE(summary.ending.first);
    CHECK(summary.report == std::string(kLost) + "hpclaunch: stopped 4 ranks\n");
  }
}

TEST_CASE("a node that is lost after a failure is not the cause", "[supervised][verdict]") {
  const auto failed_at = [](double at) {
    Verdict verdict = of({ended(0, at, 1)});
    lose(verdict, 4, 6, 5);
    return verdict.summary(exited(1), plain());
  };
  const Summary before = failed_at(4);
  CHECK(before.ending.status == 1);
  CHECK(before.ending.lost.empty());
  CHECK(before.report.starts_with("hpclaunch: rank 0 failed first: "));
  CHECK(has(before,
            "hpclaunch: no exit status from ranks 1-3 on n1, ranks 4-6 on n2: killed later,"
            " or node lost\n"));
  CHECK(failed_at(4.96).ending.lost.size() == 1);  // one event: its peers found out first
  CHECK(failed_at(6).ending.lost.size() == 1);
}

TEST_CASE("a node that is lost at our stop is not the cause", "[supervised][verdict]") {
  Verdict verdict = of({stopped(0, 5), stopped(1, 5), stopped(2, 5), stopped(3, 5)});
  lose(verdict, 4, 6, 5);
  CHECK(verdict.summary(exited(1), we_stop(4.9)).ending.lost.empty());
  CHECK(verdict.summary(exited(1), we_stop(5.1)).ending.lost.size() == 1);
}

TEST_CASE("a node that is lost when the user ends the job is not the cause",
          "[supervised][verdict]") {
  const auto lost_at = [](double at) {
    Verdict verdict = of({stopped(0, 5), stopped(1, 5), stopped(2, 5), stopped(3, 5)});
    lose(verdict, 4, 6, at);
    return verdict.summary(exited(1), user_sends(SIGTERM, 5));
  };
  for (const double at : {4.99, 5.2}) {  // who signals all processes reaches some before us
    INFO(at);
    const Summary summary = lost_at(at);
    CHECK(summary.ending.lost.empty());
    CHECK(summary.ending.status == 143);
    CHECK(
        summary.report.starts_with("hpclaunch: sent SIGTERM to the ranks; no rank failed before\n"
                                   "hpclaunch: no exit status from ranks 4-6 on n2"));
  }
  const Summary before = lost_at(3);
  CHECK(before.ending.status == kSilenceStatus);
  CHECK(before.report.starts_with(kLost));
}

TEST_CASE("of nodes that are lost the first is named first", "[supervised][verdict]") {
  const auto lost_at = [](double n1, double n2, double launcher) {
    Verdict verdict = of({});
    lose(verdict, 0, 3, n1);
    lose(verdict, 4, 6, n2);
    CHECK(verdict.all_over());
    JobFacts facts = plain();
    facts.launcher_at = kStart + launcher;
    return verdict.summary(exited(255), facts).ending;
  };
  const Ending in_turn = lost_at(6, 5, 9);
  REQUIRE(in_turn.lost.size() == 2);
  CHECK(in_turn.lost[0].host == "n2");
  CHECK(in_turn.lost[1].host == "n1");
  CHECK(in_turn.status == kSilenceStatus);
  const Ending given_up =
      lost_at(5.01, 5, 5.02);  // by the launcher, which takes the other one along
  REQUIRE(given_up.lost.size() == 1);
  CHECK(given_up.lost[0].host == "n2");
  CHECK(lost_at(5.01, 5, 4.9).lost.empty());
  CHECK(lost_at(5.01, 5, 4.9).status == 255);
}

TEST_CASE("a node that the launcher has missed before its connection ended is named",
          "[supervised][verdict]") {
  Verdict verdict = of({});
  begin(verdict, 0, 6);
  for (int rank = 0; rank < 4; ++rank) verdict.ended(ended(rank, 5, 0, SIGTERM, SIGTERM), "");
  JobFacts facts = plain();
  facts.launcher_at = kStart + 6;
  const Summary summary = verdict.summary(exited(143), facts);
  REQUIRE(summary.ending.lost.size() == 1);
  CHECK(summary.ending.lost[0].host == "n2");
  CHECK(summary.ending.status == kSilenceStatus);
  CHECK(
      has(summary, "node n2 failed first: its connection is silent, with ranks 4-6 on n2 running"));
  facts.ended_by = SIGTERM;  // the user stopped them
  facts.ended_at = kStart + 4;
  CHECK(verdict.summary(exited(143), facts).ending.lost.empty());
}

TEST_CASE("the only node of a job can be lost", "[supervised][verdict]") {
  Plan plan = two_nodes();
  plan.placement.layout = {{0, 1}};
  plan.hosts.names = {"n1"};
  Verdict verdict(plan);
  begin(verdict, 0, 3);
  lose(verdict, 0, 3, 5);
  const Summary summary = verdict.summary(exited(1), plain());
  CHECK(summary.ending.status == kSilenceStatus);
  CHECK(summary.report ==
        "hpclaunch: node n1 failed first: its connection ended, with ranks 0-3 on n1 running\n");
}

TEST_CASE("of a node that is partly lost only those ranks are named", "[supervised][verdict]") {
  Verdict verdict = of(well(0, 3));
  lose(verdict, 5, 5, 5);
  const Summary running = verdict.summary(exited(1), plain());  // 4 and 6 have no end either
  REQUIRE(running.ending.lost.size() == 1);
  CHECK_FALSE(running.ending.lost[0].whole_node);
  CHECK(running.ending.status == kSilenceStatus);
  CHECK(has(running, "hpclaunch: rank 5 on n2 failed first: killed, with the monitor beside it\n"));
  for (const int rank : {4, 6}) verdict.ended(stopped(rank, 6), "");
  const Summary later = verdict.summary(exited(1), we_stop(5.9));
  CHECK(later.report.starts_with("hpclaunch: rank 5 on n2 failed first: killed, "));
}

TEST_CASE("another monitor of the node took its place", "[supervised][verdict]") {
  Verdict verdict = of(well(0, 3));
  lose(verdict, 4, 6, 5);
  begin(verdict, 4, 6);
  CHECK(verdict.gone_since() == 0);
  for (const RankExit& end : well(4, 6)) verdict.ended(end, "");
  const Summary summary = verdict.summary({}, plain());
  CHECK(summary.ending.status == 0);
  CHECK(summary.report.empty());
}

TEST_CASE("a launcher that ends first takes the nodes with it", "[supervised][verdict]") {
  Verdict verdict = of({ended(0, 1, 0)});
  lose(verdict, 1, 3, 5);
  lose(verdict, 4, 6, 5.2);
  JobFacts facts = plain();
  facts.launcher_at = kStart + 4.9;
  const Summary summary = verdict.summary(killed_by(SIGKILL), facts);
  CHECK(summary.ending.lost.empty());
  CHECK(summary.ending.status == 137);
  CHECK(summary.ending.launcher_signal == SIGKILL);
  CHECK(summary.report ==
        "hpclaunch: no exit status from ranks 1-3 on n1, ranks 4-6 on n2: killed later, or node "
        "lost\nhpclaunch: slurm was stopped by SIGKILL (signal 9)\n");
  CHECK(verdict.summary({}, facts).ending.status == kSilenceStatus);
}

// ---- nodes that never connected -----------------------------------------------------------------

TEST_CASE("a node that never connected is believed when the launcher says 0",
          "[supervised][verdict]") {
  Verdict verdict(kPlan);
  begin(verdict, 0, 3);
  for (const RankExit& end : well(0, 3)) verdict.ended(end, "");
  const Summary summary = verdict.summary({}, plain());
  CHECK(summary.ending.status == 0);
  REQUIRE(summary.ending.silent.size() == 1);
  CHECK_FALSE(summary.ending.silent[0].connected);
  CHECK(summary.report ==
        "hpclaunch: no connection from ranks 4-6 on n2: not started, or connections to 10.0.0.1 "
        "port 4711 are refused or dropped\n");
}

TEST_CASE("a node that never connected has the status that the launcher says",
          "[supervised][verdict]") {
  Verdict verdict(kPlan);
  begin(verdict, 0, 3);
  for (const RankExit& end : well(0, 3)) verdict.ended(end, "");
  const Summary summary = verdict.summary(exited(5), plain());
  CHECK(summary.ending.status == 5);
  CHECK(summary.ending.lost.empty());
  CHECK(has(summary, "hpclaunch: no connection from ranks 4-6 on n2: "));
  CHECK(has(summary, "hpclaunch: slurm exited with status 5\n"));
}

TEST_CASE("no rank has run", "[supervised][verdict]") {
  JobFacts facts = plain();
  const Verdict verdict(kPlan);
  const Summary failed = verdict.summary(exited(5), facts);
  CHECK(failed.ending.status == kNotStartedStatus);
  CHECK(failed.report == "hpclaunch: no rank has started\nhpclaunch: slurm exited with status 5\n");
  CHECK(verdict.summary(killed_by(SIGKILL), facts).ending.status == kNotStartedStatus);
  facts.all_can_connect = false;  // they may have run
  CHECK(verdict.summary(exited(5), facts).ending.status == 5);
  const Summary unheard = verdict.summary({}, facts);
  CHECK(unheard.ending.status == 0);
  CHECK(has(unheard, "hpclaunch: no connection from ranks 0-3 on n1, ranks 4-6 on n2: "));
}

TEST_CASE("the user ends a job of which no rank has run", "[supervised][verdict]") {
  const Summary summary = Verdict(kPlan).summary(exited(1), user_sends(SIGINT, 2));
  CHECK(summary.ending.status == 130);
  CHECK(summary.report ==
        "hpclaunch: interrupted (Ctrl-C); no rank failed before\nhpclaunch: no rank has started\n");
}

TEST_CASE("nodes that do not start in time", "[supervised][verdict]") {
  JobFacts facts = plain();
  facts.start_seconds = 60;
  facts.launcher_stuck = true;
  const Summary summary = Verdict(kPlan).summary(killed_by(SIGKILL), facts);
  CHECK(summary.ending.status == kNotStartedStatus);
  CHECK(summary.report ==
        "hpclaunch: ranks 0-3 on n1, ranks 4-6 on n2 did not start within 60 s; stopped slurm\n"
        "hpclaunch: try: read the launcher's messages, run hpclaunch verify, or --start-timeout "
        "SECONDS\n");
}

TEST_CASE("where the launcher binds and starts nothing, the shim may", "[supervised][verdict]") {
  constexpr const char* kHint = "try: --bind-via shim, where the launcher refuses the CPUs";
  Plan plan = two_nodes();
  CHECK_FALSE(has(Verdict(plan).summary(exited(192), plain()), kHint));
  plan.placement.bind_via = hpclaunch::BindVia::launcher;
  CHECK(has(Verdict(plan).summary(exited(192), plain()), kHint));
}

// ---- the launcher, and the user -----------------------------------------------------------------

TEST_CASE("the launcher's own end", "[supervised][verdict]") {
  const Verdict ranks = of(well(0, 6));
  const Summary failed = ranks.summary(exited(5), plain());
  CHECK(failed.ending.status == 5);
  CHECK(failed.report == "hpclaunch: slurm exited with status 5, but all ranks exited with 0\n");
  const Summary killed = ranks.summary(killed_by(SIGKILL), plain());
  CHECK(killed.ending.status == 137);
  CHECK(killed.report == "hpclaunch: slurm was stopped by SIGKILL (signal 9)\n");
  JobFacts stuck = plain();
  stuck.launcher_stuck = true;
  const Summary ended_it = ranks.summary(killed_by(SIGKILL), stuck);
  CHECK(ended_it.ending.status == 0);
  CHECK(ended_it.report == "hpclaunch: slurm did not exit; stopped it\n");
}

TEST_CASE("what ends after the user's signal has not failed", "[supervised][verdict]") {
  const RankExit handled = ended(2, 5.1, 1, 0, SIGINT);  // a program that catches the signal
  const std::vector<RankExit> ends = {handled, ended(0, 5.2, 1), ended(1, 5.2, 0, SIGINT),
                                      ended(5, 5.3, 130)};
  for (const int signal : {SIGINT, SIGTERM, SIGHUP, SIGQUIT}) {
    INFO(signal);
    const Summary summary = of(ends).summary(exited(255), user_sends(signal, 5));
    CHECK_FALSE(summary.ending.first);
    CHECK(summary.ending.status == 128 + signal);
    CHECK(summary.ending.interrupted_by == signal);
    CHECK(summary.ending.failed == 0);
    CHECK(summary.ending.ended == 4);
    CHECK(has(summary, "; no rank failed before\n"));
    CHECK_FALSE(has(summary, "exited with status 255"));
  }
  const Summary well_ended = of(well(0, 6)).summary({}, user_sends(SIGTERM, 0.5));
  CHECK(well_ended.ending.status == 0);
  CHECK(well_ended.report.empty());
  CHECK(of(well(0, 6)).summary(exited(1), user_sends(SIGTERM, 0.5)).ending.status == 143);
}

TEST_CASE("what failed before the user's signal is named", "[supervised][verdict]") {
  const auto first = [](const RankExit& end, double sent_at) {
    return of({end, ended(0, sent_at + 0.1, 0, SIGTERM)})
        .summary(exited(255), user_sends(SIGTERM, sent_at))
        .ending;
  };
  const Ending failed = first(ended(5, 1, 7), 5);
  REQUIRE(failed.first);
  CHECK(failed.first->rank == 5);
  CHECK(failed.status == 7);
  CHECK(failed.failed == 1);
  CHECK(failed.ended == 1);
  CHECK(first(ended(5, 4.99, 7), 5).first);
  CHECK_FALSE(first(ended(5, 5.01, 7), 5).first);
  CHECK_FALSE(first(ended(5, 4.99, 0, SIGTERM), 5).first);  // all processes were signalled
  CHECK_FALSE(first(ended(5, 4.99, 143), 5).first);         // and this one says so by its status
  CHECK(first(ended(5, 4.9, 0, SIGTERM), 5).first);         // this one alone, by another
  CHECK(first(ended(5, 4.99, 0, SIGUSR1), 5).first);
}

TEST_CASE("a crash after the user's signal is said", "[supervised][verdict]") {
  const Summary summary = of({ended(5, 6, 0, SIGSEGV, SIGINT), ended(0, 6, 0, SIGINT)})
                              .summary(exited(1), user_sends(SIGINT, 5));
  CHECK(summary.ending.status == 130);
  CHECK(summary.report.starts_with(
      "hpclaunch: interrupted (Ctrl-C); no rank failed before\n"
      "hpclaunch: rank 5 ended with SIGSEGV after it was signalled to stop\n"));
}

TEST_CASE("a launcher whose output nobody reads", "[supervised][verdict]") {
  const JobFacts facts = user_sends(SIGPIPE, 9);
  for (const RankExit& launcher : {exited(255), killed_by(SIGPIPE)}) {
    const Summary summary = of({stopped(1, 9), ended(2, 1, 0, SIGPIPE)}).summary(launcher, facts);
    CHECK(summary.ending.status == 141);
    CHECK(summary.report ==
          "hpclaunch: the reader of standard output has exited (SIGPIPE); no rank failed before\n");
  }
  const Summary failed = of({ended(2, 1, 7)}).summary(killed_by(SIGPIPE), facts);
  CHECK(failed.ending.status == 7);
  CHECK(failed.report.starts_with("hpclaunch: rank 2 failed first: "));
}

TEST_CASE("ranks that had to be killed after the user's signal are counted", "[verdict]") {
  Plan plan = two_nodes();
  plan.supervision.output.grace_seconds = 5;
  Verdict verdict(plan);
  JobFacts facts = plain();
  facts.ended_by = facts.forwarded = SIGTERM;
  facts.ended_at = kStart + 10;
  for (int rank = 0; rank < 5; ++rank) verdict.ended(ended(rank, 10.5, 0, SIGTERM, SIGTERM), "");
  for (int rank = 5; rank < 7; ++rank) verdict.ended(ended(rank, 15, 0, SIGKILL, SIGKILL), "");
  Summary summary = verdict.summary(exited(0), facts);
  CHECK(summary.report ==
        "hpclaunch: sent SIGTERM to the ranks; killed 2 ranks that still ran 5 s later\n");
  CHECK(summary.ending.status == 128 + SIGTERM);
  facts.ended_by = SIGINT;
  facts.killed_at_once = true;
  summary = verdict.summary(exited(0), facts);
  CHECK(summary.report == "hpclaunch: interrupted (Ctrl-C); killed 2 ranks\n");
}

TEST_CASE("ranks of our own have no connections", "[local][verdict]") {
  Plan plan = two_nodes();
  plan.hosts.names = {"n1"};
  plan.placement.classes.resize(1);
  plan.placement.layout = {{0, 1}};
  const auto judge = [&](const std::vector<RankExit>& ends, const JobFacts& facts) {
    Verdict verdict(plan);
    for (const RankExit& end : ends) verdict.ended(end, "");
    if (const RankExit* first = verdict.first_failure(facts))
      verdict.last_output(first->rank, "here\n");
    return verdict.summary(RankExit(), facts);
  };
  JobFacts facts = plain();
  facts.where.clear();
  facts.logs = "logs/2";
  facts.stopped_at = kStart + 1.05;
  // At once: the lower rank; a crash explains the exits before it.
  CHECK(judge({ended(2, 1, 1), ended(1, 1, 1), stopped(0, 2), stopped(3, 2)}, facts).report ==
        "hpclaunch: rank 1 failed first: host n1, pid 101, exit status 1, 1.0 s after start\n"
        "hpclaunch: last output of rank 1:\n  | here\n"
        "hpclaunch: full output of rank 1: logs/2/rank-1.log\n"
        "hpclaunch: 1 other rank also failed\nhpclaunch: stopped 2 other ranks\n");
  CHECK(judge({ended(2, 1, 1), ended(3, 1.04, 0, SIGSEGV)}, facts).ending.first->rank == 3);
  // What nobody can kill stays without an end, and is none of a lost node.
  facts.ended_by = SIGTERM;
  facts.ended_at = kStart + 1;
  const Summary stuck = judge({stopped(0, 2), stopped(1, 2), stopped(2, 2)}, facts);
  CHECK(stuck.report == "hpclaunch: sent SIGTERM to the ranks; no rank failed before\n");
  CHECK(stuck.ending.lost.empty());
}

}  // namespace
