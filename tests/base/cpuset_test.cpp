#include "hpclaunch/cpuset.h"

#include <random>
#include <set>

#include "support/catch.h"

using hpclaunch::CpuSet;
using hpclaunch::ErrorKind;

TEST_CASE("CPU lists are read and written in the kernel's format", "[cpuset]") {
  const char* round_trips[] = {"0",           "0-3",  "0,2",    "0-3,8,104-107",
                               "1-8,105-112", "4095", "0-4095", "63-64"};
  for (const char* text : round_trips) {
    INFO(text);
    const auto set = CpuSet::parse(text);
    REQUIRE(set);
    CHECK(set->to_list() == text);
  }
  CHECK(CpuSet::parse("3,1,2,2-3")->to_list() == "1-3");
  CHECK(CpuSet{}.to_list().empty());
}

TEST_CASE("what is no CPU list is refused, with the piece quoted", "[cpuset]") {
  const std::pair<const char*, const char*> cases[] = {{"", "is empty"},
                                                       {"1,,2", "empty entry"},
                                                       {"1,", "empty entry"},
                                                       {"3-1", "counts down"},
                                                       {"4096", "beyond"},
                                                       {"0-4096", "beyond"},
                                                       {"a", "not a number"},
                                                       {"-1", "not a number"},
                                                       {"1-", "not a number"},
                                                       {"1-2-3", "not a number"},
                                                       {" 1", "not a number"},
                                                       {"0x3", "not a number"},
                                                       {"99999999999999999999", "not a number"}};
  for (const auto& [text, why] : cases) {
    INFO(text);
    const auto set = CpuSet::parse(text);
    REQUIRE_FALSE(set);
    CHECK(set.error().kind == ErrorKind::invalid);
    CHECK_THAT(set.error().message, ContainsSubstring(why));
  }
}

TEST_CASE("a CPU set behaves as a set of numbers", "[cpuset]") {
  std::mt19937 random(1);
  for (int round = 0; round < 300; ++round) {
    CpuSet a;
    CpuSet b;
    std::set<int> model_a;
    std::set<int> model_b;
    const int span = round % 3 == 0 ? 70 : CpuSet::kCapacity;
    for (int i = 0; i < 60; ++i) {
      const int x = static_cast<int>(random() % static_cast<unsigned>(span));
      const int y = static_cast<int>(random() % static_cast<unsigned>(span));
      a.add(x);
      model_a.insert(x);
      b.add(y);
      model_b.insert(y);
    }
    std::set<int> both;
    std::set<int> minus = model_a;
    for (const int n : model_b) {
      if (model_a.count(n) != 0) both.insert(n);
      minus.erase(n);
    }
    const std::vector<int> got_minus = (a - b).to_vector();
    CHECK(std::set<int>(got_minus.begin(), got_minus.end()) == minus);
    CHECK((a & b).count() == static_cast<int>(both.size()));
    CHECK((a | b).count() == static_cast<int>(model_a.size() + model_b.size() - both.size()));
    CHECK(a.intersects(b) == !both.empty());
    CHECK((a | b).contains(a));
    CHECK(a.contains(b) == (both == model_b));
    CHECK(a.first() == *model_a.begin());
    CHECK(a.last() == *model_a.rbegin());
    CHECK(*CpuSet::parse(a.to_list()) == a);
    const int gone = *model_a.begin();
    a -= *CpuSet::parse(std::to_string(gone));
    CHECK_FALSE(a.has(gone));
  }
  CHECK(CpuSet{}.first() == -1);
  CHECK(CpuSet{}.last() == -1);
  CHECK(CpuSet{}.contains(CpuSet{}));
  CHECK_FALSE(CpuSet{}.has(-1));
  CHECK_FALSE(CpuSet{}.has(CpuSet::kCapacity));
}
