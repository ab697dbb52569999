// Which site is this?
#include "hpclaunch/profile.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

const std::vector<SiteSignals> kSites = {
    {"alpha", {{"PBS_JOBID", "*.alpha.example", true}, {"", "x[0-9]*", false}}},
    {"beta", {{"CC_CLUSTER", "beta", true}, {"", "*.beta.example", true}, {"", "x[0-9]*", false}}},
    {"gamma", {{"CC_CLUSTER", "b*", true}}},
};

Detection detect(std::vector<std::string> env, const std::vector<std::string>& hosts) {
  return detect_site(kSites, EnvSnapshot(std::move(env)), hosts);
}

using Pairs = std::vector<std::pair<std::string, std::string>>;
using Texts = std::vector<std::string>;

}  // namespace

TEST_CASE("one proof is enough, and support says the rest") {
  const Detection found = detect({"PBS_JOBID=17.pbs.alpha.example"}, {"login", "x17.local"});
  CHECK(found.profile == "alpha");
  CHECK(found.proofs == Texts{"PBS_JOBID=17.pbs.alpha.example matches *.alpha.example"});
  CHECK(found.support == Texts{"host x17.local matches x[0-9]*"});
  CHECK(found.rivals.empty());
  CHECK(found.hints == Pairs{{"beta", "host x17.local matches x[0-9]*"}});
}

TEST_CASE("support alone proves nothing") {
  const Detection found = detect({}, {"x1"});
  CHECK(found.profile.empty());
  CHECK(found.proofs.empty());
  CHECK(found.hints ==
        Pairs{{"alpha", "host x1 matches x[0-9]*"}, {"beta", "host x1 matches x[0-9]*"}});
}

TEST_CASE("nothing matches") {
  const Detection found = detect({"PBS_JOBID=17.elsewhere", "CC_CLUSTER="}, {"", "laptop"});
  CHECK(found.profile.empty());
  CHECK(found.rivals.empty());
  CHECK(found.hints.empty());
  CHECK(detect_site({}, EnvSnapshot(), {}).profile.empty());
}

TEST_CASE("two proved sites are a conflict, and neither wins") {
  const Detection found = detect({"CC_CLUSTER=beta"}, {"n1.beta.example"});
  CHECK(found.profile.empty());
  CHECK(found.proofs.empty());
  CHECK(found.rivals == Pairs{{"beta", "CC_CLUSTER=beta matches beta"},
                              {"beta", "host n1.beta.example matches *.beta.example"},
                              {"gamma", "CC_CLUSTER=beta matches b*"}});
}

TEST_CASE("hosts ignore letter case and may match by the short name; variables do neither") {
  const std::vector<SiteSignals> sites = {{"one", {{"", "Node[0-9]", true}}},
                                          {"two", {{"NAME", "Abc", true}}}};
  const auto look = [&](std::vector<std::string> env, const std::vector<std::string>& hosts) {
    return detect_site(sites, EnvSnapshot(std::move(env)), hosts).profile;
  };
  CHECK(look({}, {"NODE7.Example.Org"}) == "one");
  CHECK(look({}, {"node7"}) == "one");
  CHECK(look({}, {"node77.example.org"}).empty());
  CHECK(look({"NAME=Abc"}, {}) == "two");
  CHECK(look({"NAME=abc"}, {}).empty());
  CHECK(look({"NAME=Abc.x"}, {}).empty());
}
