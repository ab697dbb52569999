// Damaged plans and odd environments through the shim's functions; AddressSanitizer and UBSan
// watch. The seed is fixed: the same inputs every time.
#include <algorithm>
#include <random>

#include "shim/run_rank.h"
#include "support/catch.h"

using namespace hpclaunch;
using hpclaunch::test::run_rank;
using hpclaunch::test::wire_of;

namespace {

class Source {
 public:
  explicit Source(unsigned seed) : engine_(seed) {}
  int below(int limit) { return static_cast<int>(engine_() % static_cast<unsigned>(limit)); }
  const std::string& of(const std::vector<std::string>& list) {
    return list[static_cast<std::size_t>(below(static_cast<int>(list.size())))];
  }
  char byte() { return static_cast<char>(below(256)); }

 private:
  std::mt19937 engine_;
};

const std::vector<std::string> kPieces = {
    ":",
    "=",
    "/",
    "@",
    "%",
    "%00",
    "%3D",
    "%2",
    "@.rank",
    "@.node",
    "@.",
    ":class=2",
    ":class=0",
    ":cpus=",
    "0-8191",
    "8192",
    ":rank=R",
    ":local=L",
    ":verify=on",
    ":layout=0*1",
    "2147483647",
    "/1*",
    ",",
    "-",
    ":A=",
    "hl2.",
    ":%61=",
    ":expect=1/2",
    "4294967296",
    ":class=1",
    "0*",
    "//",
    ":core=",
    ":dir=%2F",
    "unlimited",
    "%2Ftmp",
    ":same=A*abcde",
    "/B*-_012",
    ":absent=A",
    "/B",
    ":hosts=abc",
    "...",
    ":part=0-1",
    "/2-3",
    ":granted=4",
    ":stay=kill",
    ":notice=10*1",
    ":end=with-parent",
    ":port=29500",
    ":after=30",
};

std::string column(Source& random, int ranks, bool cpus) {
  std::string out;
  const int items = random.below(3) == 0 ? 1 : ranks;
  for (int i = 0; i < items; ++i) {
    if (i > 0) out += "/";
    const std::string number = std::to_string(random.below(200));
    out += cpus ? number + "-" + std::to_string(200 + random.below(100))
                : random.of({"", "@.rank", "@.local-size", "value", "%FF%01", number});
  }
  return out;
}

/// Mostly well formed.
std::string fields(Source& random) {
  const int classes = 1 + random.below(3);
  std::string out = ":rank=R";
  if (random.below(2) == 0) out += ":local=L";
  out += ":verify=" + random.of({"off", "warn", "strict"});
  if (random.below(2) == 0)
    out += ":core=" + random.of({"0", "unlimited", "1048576", "2147483648"});
  if (random.below(2) == 0) out += ":dir=%2Fa" + random.of({"", "/%2Fa%2Fb", "/%2F%FF%01/%2Fc"});
  if (random.below(2) == 0) out += ":same=A*abcde" + random.of({"", "/B*-_012/C1*00000"});
  if (random.below(2) == 0) out += ":absent=X" + random.of({"", "/Y/Z_9"});
  if (random.below(2) == 0) out += ":stay=" + random.of({"exit", "kill"});
  if (random.below(2) == 0) out += ":port=29500:notice=12*1800000000:end=with-parent";
  out += ":layout=";
  for (int runs = random.below(4); runs >= 0; --runs) {
    out += std::to_string(random.below(classes)) + "*" + std::to_string(1 + random.below(40));
    if (runs > 0) out += "/";
  }
  out += ":RANK=@.rank:ALL=x";
  for (int c = 0; c < classes; ++c) {
    const int ranks = 1 + random.below(6);
    out += ":class=" + std::to_string(ranks);
    for (int v = random.below(4); v > 0; --v) {
      out += ":V" + std::to_string(random.below(6)) + "=" + column(random, ranks, false);
    }
    if (random.below(2) == 0) {
      out += random.of({":cpus=", ":expect=", ":granted=300:part="}) + column(random, ranks, true);
    }
  }
  return out;
}

void damage(Source& random, std::string& text) {
  const auto at = [&] {
    return static_cast<std::size_t>(random.below(static_cast<int>(text.size()) + 1));
  };
  switch (random.below(6)) {
    case 0:
      text.insert(at(), 1, random.byte());
      break;
    case 1:
      text.erase(at(), 1 + static_cast<std::size_t>(random.below(8)));
      break;
    case 2:
      text.insert(at(), random.of(kPieces));
      break;
    case 3:
      text.resize(at());
      break;
    case 4:
      text.insert(at(), text.substr(at(), static_cast<std::size_t>(random.below(30))));
      break;
    default:
      if (!text.empty()) text[std::min(at(), text.size() - 1)] = random.byte();
  }
}

std::vector<std::string> environment(Source& random) {
  std::vector<std::string> out;
  for (int i = random.below(12); i > 0; --i) {
    out.push_back(random.of({"R=0", "R=", "V1=old", "V1", "", "=", "RANK=x", "HPCLAUNCH_PLAN=y",
                             "PATH=/bin", "V1=older", "ALL", "R=99999999999"}));
  }
  return out;
}

/// What holds whenever the shim goes on.
void check_laws(const test::RankResult& result, const std::vector<std::string>& before) {
  REQUIRE(result.place.local >= 0);
  REQUIRE(result.place.local < result.place.local_size);
  REQUIRE(result.place.node >= 0);
  REQUIRE(result.place.node <= result.place.rank);
  for (const std::string& path : result.directories) REQUIRE(path.front() == '/');
  std::vector<std::string> names;
  for (const std::string& entry : result.environment) {
    REQUIRE(entry.rfind("HPCLAUNCH_PLAN=", 0) != 0);
  }
  // What was there before comes first and in order; what is set has no second entry of its name.
  auto old = before.begin();
  std::size_t kept = 0;
  for (const std::string& entry : result.environment) {
    const auto found = std::find(old, before.end(), entry);
    if (found == before.end()) break;
    old = found + 1;
    ++kept;
  }
  for (std::size_t i = kept; i < result.environment.size(); ++i) {
    const std::string& entry = result.environment[i];
    const std::size_t equals = entry.find('=');
    REQUIRE(equals != std::string::npos);
    REQUIRE(equals > 0);
    const std::string name = entry.substr(0, equals + 1);
    const auto same = std::count_if(result.environment.begin(), result.environment.end(),
                                    [&](const auto& e) { return e.rfind(name, 0) == 0; });
    REQUIRE(same == 1);
  }
}

}  // namespace

TEST_CASE("damaged plans and odd environments: a fault or a sound result", "[shim][fuzz]") {
  Source random(20260116);
  int accepted = 0;
  int refused = 0;
  for (int round = 0; round < 40000; ++round) {
    std::string body = fields(random);
    const std::string good = body;
    // A right checksum lets damage reach the parser, which must only survive it; a wrong one has to be caught.
    const bool right_checksum = random.below(4) != 0;
    std::string wire = wire_of(body);
    for (int i = random.below(4); i > 0; --i) damage(random, right_checksum ? body : wire);
    const bool damaged = right_checksum ? body != good : wire != wire_of(good);
    if (right_checksum) wire = wire_of(body);
    const auto before = environment(random);
    const int rank = random.below(3) == 0 ? random.below(2147483647) : random.below(60);
    INFO("round " << round << " rank " << rank << " wire " << wire);
    const auto result = run_rank(wire, rank, before);
    if (damaged && !right_checksum) CHECK(!result.fault.empty());
    if (!result.fault.empty()) {
      ++refused;
    } else if (!result.beyond) {
      ++accepted;
      if (!damaged) check_laws(result, before);
    }
  }
  // The damage is neither so mild nor so thorough that one of the two is not exercised.
  CHECK(accepted > 4000);
  CHECK(refused > 4000);
}

TEST_CASE("bytes without any sense", "[shim][fuzz]") {
  Source random(7);
  for (int round = 0; round < 10000; ++round) {
    std::string body = ":rank=R";
    for (int i = random.below(30); i > 0; --i) {
      if (random.below(3) == 0) {
        body += random.byte();
      } else {
        body += random.of(kPieces);
      }
    }
    INFO("round " << round << " " << body);
    run_rank(wire_of(body), random.below(5));
  }
}
