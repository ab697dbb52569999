#include <algorithm>
#include <random>
#include <sstream>

#include "hpclaunch/rank_report.h"
#include "hpclaunch/text.h"
#include "support/catch.h"
#include "support/report_pieces.h"

using namespace hpclaunch;

namespace {

constexpr const char* kFull =
    R"({"clock":1732212345.250,"cpuset":"0-15","memory_policy":"default","memory_allowed":"0",)"
    R"("devices":{"nvidia":4},"refused":["/dev/kfd"],"limits":{"core":"0"},"cpus":"0-3,8",)"
    R"("launcher_local_rank":0,"variables":{"A":"--------"},)"
    R"("values":{"RANK":"3","OMP_PLACES":"{0},{1}\\\" \u0001 \u00e4"},)"
    R"("before":{"clock":0,"cpus":"0-3","variables":{"A":"e40c292c"}},)"
    R"("facts":{"online":"0-15","numa":"0,8","gpus":["0001:18:00.0","0000:18:00.0"],)"
    R"("fabrics":["mlx5_1","mlx5_0"],"interfaces":[{"up":true,"name":"eth0","addresses":["10.0.0.1"]},)"
    R"({"up":false,"name":"ib0","addresses":[]}],"master":"n0","master_resolves":["10.0.0.9"],"host_resolves":["127.0.1.1"],)"
    R"("port":{"errno":98},"rooms":[{"path":"/tmp","errno":0,"free_bytes":123456789012},)"
    R"({"path":"/scratch","errno":13,"free_bytes":0}]}})";

RankReport full() {
  RankReport report;
  report.launcher_local_rank = 0;
  report.cpus = "0-3,8";
  report.cpuset = "0-15";
  report.memory_policy = "default";
  report.memory_allowed = "0";
  report.devices = {{"nvidia", 4}};
  report.refused = {"/dev/kfd"};
  report.values = {{"RANK", "3"}, {"OMP_PLACES", "{0},{1}\\\" \x01 ä"}};
  report.limits = {{"core", "0"}};
  report.variables = {{"A", std::string(kNoFingerprint)}};
  report.imported = true;
  report.cpus_before = "0-3";
  report.variables_before = {{"A", fingerprint("a")}};
  NodeFacts facts;
  facts.online = "0-15";
  facts.numa = "0,8";
  facts.gpus = {"0000:18:00.0", "0001:18:00.0"};
  facts.fabrics = {"mlx5_0", "mlx5_1"};
  facts.interfaces = {{"eth0", true, {"10.0.0.1"}}, {"ib0", false, {}}};
  facts.master = "n0";
  facts.master_resolves = {"10.0.0.9"};
  facts.host_resolves = {"127.0.1.1"};
  facts.port_problem = "Address already in use";
  facts.rooms = {{"/tmp", "", 123456789012ull}, {"/scratch", "Permission denied", 0}};
  report.facts = facts;
  return report;
}

// Takes each line with text around it, as launchers add it; the last answer.
std::optional<Result<RankSeen>> read(const std::string& lines, const std::string& before = "",
                                     const std::string& behind = "") {
  ReportPieces pieces;
  std::optional<Result<RankSeen>> last;
  std::istringstream stream(lines);
  for (std::string line; std::getline(stream, line);) {
    bool was_piece = false;
    last = pieces.take(before + line + behind, was_piece);
    CHECK(was_piece);
  }
  return last;
}

}  // namespace

TEST_CASE("a report is read as the shim writes it", "[report]") {
  const auto back = read(pieces_of("n1:42:3", kFull));
  REQUIRE(back.has_value());
  REQUIRE(back->has_value());
  CHECK(*(*back)->found == full());
  CHECK((*back)->host == "n1");
  CHECK((*back)->pid == 42);
  CHECK((*back)->rank == 3);
  CHECK((*back)->clock == 1732212345.25);
  const auto small = read(pieces_of("n1:42:3", "{\"clock\":1.5}"));
  REQUIRE((small && *small));
  CHECK(*(*small)->found == RankReport{});
}

TEST_CASE("a report of a running program", "[report]") {
  constexpr const char* kText =
      R"({"clock":1.5,"after":{"threads":9,"processes":2,"hidden":1,"groups":[{"name":"pool_","child":1,)"
      R"("threads":4,"each":1,"cpus":"0-3"}],"changes":[{"name":"A","set":1,"value":"x","processes":2},)"
      R"({"name":"B","child":1,"processes":1}],"ran":4,"exit":0}})";
  const auto back = read(pieces_of("n1:42:3", kText));
  REQUIRE((back && *back));
  const std::optional<Examined>& after = (*back)->found->after;
  REQUIRE(after.has_value());
  CHECK((after->threads == 9 && after->processes == 2 && after->hidden == 1));
  CHECK((after->ran == 4 && after->exit == 0 && after->signal == 0));
  CHECK(after->groups == std::vector<ThreadGroup>{{"pool_", true, 4, 1, "0-3"}});
  CHECK(after->changes ==
        std::vector<ChangedVariable>{{"A", false, true, "x", 2}, {"B", true, false, "", 1}});
  const std::string json = report_to_json(**back, RankPlace{}, *(*back)->found, "");
  CHECK(json.find(R"("after":{"threads":9,"processes":2,"hidden":1,"ran":4,"exit":0,"groups":)") !=
        std::string::npos);
  for (const char* bad : {R"({"clock":1,"after":7})", R"({"clock":1,"after":{"threads":"x"}})",
                          R"({"clock":1,"after":{"groups":{"a":1}}})"}) {
    const auto damaged = read(pieces_of("n1:42:3", bad));
    REQUIRE(damaged.has_value());
    CHECK_FALSE(damaged->has_value());
  }
}

TEST_CASE("launchers may put something around a report", "[report]") {
  const std::pair<const char*, const char*> around[] = {{"[3] ", ""},
                                                        {"3: ", ""},
                                                        {"[1,3]<stdout>:", ""},
                                                        {"no newline before", ""},
                                                        {"", " and more"},
                                                        {"", "\r"},
                                                        {"", "} ]"}};
  for (const auto& [before, behind] : around) {
    const auto back = read(pieces_of("n1:42:3", kFull), before, behind);
    REQUIRE(back.has_value());
    REQUIRE(back->has_value());
    CHECK(*(*back)->found == full());
  }
}

TEST_CASE("a damaged report is an error", "[report]") {
  const std::string line = pieces_of("n1:42:0", "{\"clock\":1.5}");
  for (std::size_t cut = kReportMark.size(); cut + 2 < line.size(); cut += 7) {
    const auto back = read(line.substr(0, cut));
    REQUIRE(back.has_value());
    CHECK_FALSE(back->has_value());
  }
  for (const std::string wrong :
       {"[]", "{\"launcher_local_rank\": \"x\"}", "{\"cpus\": 7}", "{\"facts\": []}",
        "{\"facts\": {\"rooms\": [1]}}", "{\"facts\": {\"interfaces\": [{}]}}", "null",
        "{\"launcher_local_rank\": 99999999999999999999999}"}) {
    const auto back =
        read(std::string(kReportMark) + "n1:7:1 1/1 " + std::to_string(wrong.size()) + " " + wrong);
    REQUIRE(back.has_value());
    INFO(wrong);
    CHECK_FALSE(back->has_value());
  }
}

TEST_CASE("a damaged sender is an error", "[report]") {
  for (const std::string sender :
       {"n1", "n1:7", "n1:7:", "n1:x:1", "n1:7:-1", "n1:7:9999999999", ":"}) {
    const auto back = read(std::string(kReportMark) + sender + " 1/1 2 {}");
    REQUIRE(back.has_value());
    INFO(sender);
    CHECK_FALSE(back->has_value());
  }
}

TEST_CASE("bytes that are not UTF-8 do not break a report in JSON", "[report]") {
  RankReport report;
  report.values["RANK"] = "\xff\xfe";
  CHECK(report_to_json({"n1", 1, 0, 1, nullptr}, {}, report, "").find("\xff") == std::string::npos);
}

TEST_CASE("fingerprints", "[report]") {
  CHECK(fingerprint("").size() == kFingerprint);
  CHECK(fingerprint("a") == fingerprint("a"));
  CHECK(fingerprint("a") != fingerprint("b"));
  CHECK(fingerprint("") != kNoFingerprint);
  const std::string json = report_to_json({"n1", 1, 0, 1, nullptr}, {}, full(), "torch");
  CHECK(json.find(fingerprint("a")) == std::string::npos);
}

TEST_CASE("variables whose value may be seen", "[report]") {
  CHECK(is_placement_variable("RANK"));
  CHECK(is_placement_variable("OMP_PLACES"));
  CHECK_FALSE(is_placement_variable("HF_TOKEN"));
  CHECK_FALSE(is_placement_variable("PATH"));
}

TEST_CASE("interfaces by name", "[report][interface]") {
  const std::vector<Interface> there = {{"hsn0", true, {"10.0.0.1"}},
                                        {"hsn1", false, {}},
                                        {"ib0", true, {}},
                                        {"eth0", true, {"1.2.3.4"}}};
  struct Case {
    const char* variable;
    const char* value;
    const char* problem;
  };
  constexpr Case kCases[] = {{"NCCL_SOCKET_IFNAME", "hsn", ""},
                             {"NCCL_SOCKET_IFNAME", "hsn1", "hsn1 is down"},
                             {"NCCL_SOCKET_IFNAME", "=hsn", "no interface hsn"},
                             {"NCCL_SOCKET_IFNAME", "=hsn0", ""},
                             {"NCCL_SOCKET_IFNAME", "^docker,lo", ""},
                             {"NCCL_SOCKET_IFNAME", "^=eth0", ""},
                             {"NCCL_SOCKET_IFNAME", "bond,eth", ""},
                             {"NCCL_SOCKET_IFNAME", "bond", "no interface bond*"},
                             {"NCCL_SOCKET_IFNAME", "ib", "ib0 has no address"},
                             {"NCCL_SOCKET_IFNAME", "", ""},
                             {"NCCL_SOCKET_IFNAME", ",", ""},
                             {"GLOO_SOCKET_IFNAME", "hsn", "no interface hsn"},
                             {"GLOO_SOCKET_IFNAME", "hsn0,eth0", ""},
                             {"GLOO_SOCKET_IFNAME", "hsn0,hsn1", "hsn1 is down"},
                             {"GLOO_SOCKET_IFNAME", "lo", ""},
                             {"TP_SOCKET_IFNAME", "eth0", ""},
                             {"FI_TCP_IFACE", "ib0", "ib0 has no address"},
                             {"CCL_KVS_IFACE", "nothing", "no interface nothing"}};
  for (const Case& one : kCases) {
    INFO(one.variable << "=" << one.value);
    CHECK(interface_problem(one.variable, one.value, there) == one.problem);
  }
}

TEST_CASE("a report in pieces, among those of others", "[report]") {
  RankReport first;
  first.cpus = std::string(4000, 'a');
  const RankReport second = full();
  std::vector<std::string> lines;
  for (const std::string& text :
       {pieces_of("n1:42:3", fmt::format("{{\"clock\":1,\"cpus\":\"{}\"}}", first.cpus)),
        pieces_of("n1:43:4", kFull)}) {
    for (const std::string_view line : split(text, '\n'))
      if (!line.empty()) lines.emplace_back(line);
  }
  REQUIRE(lines.size() >= 6);
  std::mt19937 random(5);
  for (int round = 0; round < 50; ++round) {
    std::shuffle(lines.begin(), lines.end(), random);
    ReportPieces pieces;
    std::vector<RankReport> seen;
    for (const std::string& line : lines) {
      CHECK(line.size() < kReportPiece);
      bool was_piece = false;
      CHECK_FALSE(pieces.take("some program's line", was_piece));
      CHECK_FALSE(was_piece);
      const auto report = pieces.take("[3] " + line + " and what a launcher adds", was_piece);
      CHECK(was_piece);
      if (report) seen.push_back(*(*report)->found);
    }
    REQUIRE(seen.size() == 2);
    CHECK(((seen[0] == first && seen[1] == second) || (seen[0] == second && seen[1] == first)));
    CHECK(pieces.unfinished() == 0);
  }
  ReportPieces pieces;
  bool was_piece = false;
  CHECK_FALSE(pieces.take(lines.front(), was_piece));
  CHECK(pieces.unfinished() == 1);
  for (const char* wrong : {"", "h:1", "h:1 1/2", "h:1 0/2 1 x", "h:1 3/2 1 x", "h:1 1/2 9 x",
                            "h:1 1/2 -1 x", "h:1 1/99999 1 x", "h:1 x/2 1 x"}) {
    INFO(wrong);
    const auto report = pieces.take(std::string(kReportMark) + wrong, was_piece);
    REQUIRE(report);
    CHECK_FALSE(*report);
  }
}
