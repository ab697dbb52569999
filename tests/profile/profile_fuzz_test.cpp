// Mutated profiles: nothing crashes or hangs, and nothing passes that does not mean the same again.
#include <algorithm>
#include <fstream>
#include <iterator>
#include <map>
#include <nlohmann/json.hpp>

#include "hpclaunch/profile.h"
#include "support/catch.h"
#include "support/dice.h"

using namespace hpclaunch;
using nlohmann::ordered_json;

namespace {

std::string read(const std::string& file) {
  std::ifstream in(HPCLAUNCH_SOURCE_DIR "/" + file, std::ios::binary);
  std::string text{std::istreambuf_iterator<char>(in), {}};
  REQUIRE_FALSE(text.empty());
  return text;
}

std::vector<std::string> seeds() {
  constexpr std::size_t kShort = 9000;
  std::vector<std::string> texts = {read("tests/profile/full.json")};
  for (const BuiltinProfile& one : builtin_profiles()) {
    if (texts.size() < 6 && one.text.size() < kShort) texts.emplace_back(one.text);
  }
  return texts;
}

std::string mutate_bytes(std::string text, Dice& dice) {
  for (std::size_t i = dice.below(6) + 1; i > 0 && !text.empty(); --i) {
    const std::size_t at = dice.below(text.size());
    const std::size_t length = dice.below(20);
    switch (dice.below(5)) {
      case 0:
        text[at] = static_cast<char>(dice.below(256));
        break;
      case 1:
        text[at] = "{}[]\",:\\/$*0-9"[dice.below(14)];
        break;
      case 2:
        text.erase(at, length);
        break;
      case 3:
        text.insert(at, text.substr(dice.below(text.size()), length));
        break;
      default:
        if (dice.below(8) == 0) text.resize(at);
    }
  }
  return text;
}

/// A member or element somewhere below, chosen by chance.
ordered_json& somewhere(ordered_json& root, Dice& dice) {
  ordered_json* at = &root;
  while (at->is_structured() && !at->empty()) {
    auto next = at->begin();
    std::advance(next, static_cast<std::ptrdiff_t>(dice.below(at->size())));
    at = &*next;
    if (dice.below(4) == 0) break;
  }
  return *at;
}

std::string mutate_values(const std::string& text, Dice& dice) {
  ordered_json root = ordered_json::parse(text, nullptr, true, true);
  const ordered_json odd[] = {nullptr,
                              true,
                              -1,
                              0,
                              4096,
                              1e300,
                              "",
                              "a",
                              "0-9999",
                              "${",
                              "${cpus}",
                              "$",
                              "*",
                              ordered_json::array(),
                              ordered_json::object(),
                              ordered_json::array({1}),
                              "2025-13-01",
                              99999999999999LL,
                              "\x01",
                              "none"};
  for (std::size_t i = dice.below(3) + 1; i > 0; --i) {
    ordered_json& value = somewhere(root, dice);
    switch (dice.below(4)) {
      case 0:
        value = odd[dice.below(std::size(odd))];
        break;
      case 1:
        value = somewhere(root, dice).dump().substr(0, 40);
        break;
      case 2: {
        const ordered_json copy = somewhere(root, dice);
        value = copy;
        break;
      }
      default:
        if (value.is_object() && !value.empty()) {
          value.erase(value.begin());
        } else if (value.is_array() && !value.empty()) {
          value.push_back(ordered_json(value[0]));
        } else {
          value = odd[dice.below(std::size(odd))];
        }
    }
  }
  return root.dump(1);
}

/// What must hold for any text at all. True when it has no problem.
bool check_text(const std::string& text) {
  const ParsedProfile parsed = parse_profile(text, "fuzz.json");
  for (const Error& problem : parsed.problems) {
    REQUIRE_FALSE(problem.message.empty());
    REQUIRE(problem.where);
    const std::string said = problem.message + problem.hint;
    REQUIRE(std::all_of(said.begin(), said.end(), [](char c) { return c >= ' ' && c <= '~'; }));
  }
  static const std::map<std::string, Profile> kBuiltin = [] {
    std::map<std::string, Profile> profiles;
    for (const BuiltinProfile& one : builtin_profiles())
      profiles[std::string(one.name)] = parse_profile(one.text, std::string(one.file)).profile;
    return profiles;
  }();
  const auto find = [](const std::string& name) -> Result<Profile> {
    const auto found = kBuiltin.find(name);
    if (found != kBuiltin.end()) return found->second;
    Profile empty;
    empty.name = name;
    return empty;
  };
  const Result<Profile> resolved = resolve_profile(parsed.profile, find);
  if (!resolved) REQUIRE_FALSE(resolved.error().message.empty());
  if (!parsed.problems.empty()) return false;
  REQUIRE(parse_profile(text, "fuzz.json").problems.empty());

  // What passes stands on its own feet: JSON for another reader, sound nodes, expandable templates.
  REQUIRE_NOTHROW(ordered_json::parse(text, nullptr, true, true));
  Facts facts;
  for (const FactInfo& fact : known_facts()) facts.rank[std::string(fact.name)] = "1";
  for (const NodeModel& node : parsed.profile.nodes) REQUIRE(check_topology(node.topology));
  for (const Rule& rule : parsed.profile.rules) {
    REQUIRE(rule.origin.why.empty() == !rule.whys.empty());
    for (const std::string& name : variables_of(rule))
      REQUIRE_FALSE(origin_of(rule, name).why.empty());
    for (const auto* list : {&rule.defaults, &rule.require, &rule.prepend}) {
      for (const Assignment& one : *list) {
        for (const std::string& name : facts_in(one.value)) facts.rank[name] = "1";
        REQUIRE(expand(one.value.text, facts));
      }
    }
    static_cast<void>(holds(rule.when, facts));
    static_cast<void>(met(rule.when, facts));
  }
  return true;
}

}  // namespace

TEST_CASE("1,000 mutated profiles") {
  const std::vector<std::string> texts = seeds();
  Dice dice(20260101);
  int passed = 0;
  for (int i = 0; i < 1000; ++i) {
    const std::string& seed = texts[dice.below(texts.size())];
    const std::string text =
        dice.below(2) == 0 ? mutate_bytes(seed, dice) : mutate_values(seed, dice);
    INFO("mutation " << i << ":\n" << text);
    passed += check_text(text) ? 1 : 0;
  }
  // Some changes are harmless (a comment, a sentence), most are not; both must be among them.
  CHECK(passed > 20);
  CHECK(passed < 700);
}

TEST_CASE("every prefix of a profile is broken") {
  std::string text = seeds()[0];
  while (text.back() != '}') text.pop_back();
  for (std::size_t size = 0; size < text.size(); size += 7) {
    INFO(size);
    REQUIRE_FALSE(check_text(text.substr(0, size)));
  }
}

TEST_CASE("without any one member, a profile is read or refused, never both") {
  const ordered_json root = ordered_json::parse(seeds()[0], nullptr, true, true);
  for (const auto& section : root.items()) {
    ordered_json less = root;
    less.erase(section.key());
    const bool needed = section.key() == "schema" || section.key() == "name";
    INFO(section.key());
    CHECK(check_text(less.dump()) == !needed);
  }
}
