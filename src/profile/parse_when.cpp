#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "facts.h"
#include "hpclaunch/text.h"
#include "parse.h"

namespace hpclaunch::profile {
namespace {

constexpr std::size_t kMaxPattern = 256;

/// Why a fact may not be used here; "" when it may. `when`: in a condition, else in a template.
std::pair<std::string, std::string> objection(std::string_view name, const Allowed& allowed,
                                              bool when) {
  const FactInfo* fact = find_fact(name);
  if (fact == nullptr) {
    const std::string hint = suggestion(name, fact_candidates(name));
    return {fmt::format("unknown fact {}", shown(name)),
            hint.empty() ? "docs/reference/profile-format.md lists the facts" : hint};
  }
  if (is_rank_fact(*fact) && !allowed.rank && !(allowed.unit && name == "unit")) {
    return {fmt::format("{} differs by rank and cannot be used here", shown(name)),
            when ? "conditions use facts of the whole job"
                 : "use it in the values of \"default\", \"require\" and \"prepend\""};
  }
  if (fact->scope == FactInfo::Scope::late && !allowed.late) {
    return {fmt::format("{} is not known yet here", shown(name)),
            when ? "only rules may ask for value.NAME"
                 : "use it in a rule whose \"when\" asks for value.NAME"};
  }
  if (!allowed.never.empty() && name == allowed.never) {
    return {fmt::format("{} is decided by this condition", shown(name)), "use another fact"};
  }
  return {};
}

std::string plain_value(const Item& at) {
  switch (at->kind) {
    case Json::Kind::integer:
      return at->text;
    case Json::Kind::string:
      return at->text.empty() ? std::string() : at.text();  // "" is a value
    case Json::Kind::boolean:
      at.fault("a fact is a text or a whole number, not true or false",
               R"(write "yes" or "no", or {"set": true})");
      return "";
    default:
      at.fault(fmt::format("expected a string or a whole number, found {}", noun(at->kind)),
               at->kind == Json::Kind::number ? "write a version in quotes" : "");
      return "";
  }
}

/// Of one value or of a list of them.
template <class Read>
std::vector<std::string> each_of(const Item& at, std::string_view of_what, Read read) {
  if (at->kind != Json::Kind::array) return {read(at)};
  std::vector<std::string> values;
  for (const Item& item : at.elements(of_what)) values.push_back(read(item));
  return values;
}

std::vector<std::string> plain_values(const Item& at) { return each_of(at, "values", plain_value); }

std::string order_value(const Item& at) {
  if (at->kind == Json::Kind::array || at->kind == Json::Kind::object) {
    at.fault(fmt::format("an order needs one value, found {}", noun(at->kind)));
    return "";
  }
  std::string value = plain_value(at);
  const bool text = at->kind == Json::Kind::string;
  if (text && (value.empty() || value[0] < '0' || value[0] > '9'))
    at.fault(fmt::format("{} is neither a whole number nor a version", shown(value)),
             "write 16, or \"2025.3\"");
  return value;
}

std::vector<std::string> patterns(const Item& at) {
  std::vector<std::string> out =
      each_of(at, "patterns", [](const Item& one) { return one.text(); });
  if (std::ranges::any_of(out, [](const std::string& p) { return p.size() > kMaxPattern; }))
    at.fault(fmt::format("a pattern has more than {} bytes", kMaxPattern));
  return out;
}

Test parse_test(const std::string& fact, const Operator& op, const Item& at) {
  Test test{fact, op.op, {}};
  switch (op.kind) {
    case Operator::Kind::equal:
      test.values = plain_values(at);
      break;
    case Operator::Kind::order:
      test.values = {order_value(at)};
      break;
    case Operator::Kind::pattern:
      test.values = patterns(at);
      break;
    case Operator::Kind::set:
      if (!at.truth()) test.op = Test::Op::is_unset;
      break;
  }
  return test;
}

/// Facts of which every value is known: a test for another one would never hold.
std::span<const std::string_view> values_of(std::string_view fact) {
  static constexpr std::array<std::string_view, 2> kYesNo = {"yes", "no"};
  static const std::vector<std::string_view> kWithNone = [] {
    std::vector<std::string_view> names(std::begin(kSchedulerNames), std::end(kSchedulerNames));
    names.emplace_back("none");
    return names;
  }();
  if (fact == "cores_divide" || fact == "even" || fact == "in_job" || fact == "proxies" ||
      fact == "whole_node")
    return kYesNo;
  if (fact == "gpu_view") return kGpuViews;
  if (fact == "scheduler") return kWithNone;
  if (fact == "launcher") return kLauncherNames;
  return {};
}

void check_words(const Test& test, const Item& at) {
  const auto known = values_of(test.fact);
  if (known.empty() || (test.op != Test::Op::eq && test.op != Test::Op::ne)) return;
  for (const std::string& value : test.values) {
    if (value.empty() || std::find(known.begin(), known.end(), value) != known.end()) continue;
    at.fault(fmt::format("\"{}\" is never {}", test.fact, shown(value)),
             suggestion_or_all(value, known));
  }
}

void parse_tests(const std::string& fact, const Item& at, When& when) {
  if (at->kind != Json::Kind::object) {
    when.push_back({fact, Test::Op::eq, plain_values(at)});
    return check_words(when.back(), at);
  }
  for (const Item& value : at.members("operators")) {
    const auto op = std::ranges::find(kOperators, value->key, &Operator::name);
    if (op == kOperators.end()) {
      std::vector<std::string> candidates;
      candidates.reserve(kOperators.size());
      for (const Operator& one : kOperators) candidates.emplace_back(one.name);
      const std::string hint = suggestion(value->key, candidates);
      value.fault(fmt::format("unknown operator {}", shown(value->key)),
                  hint.empty() ? "operators: eq ne lt le gt ge like unlike set" : hint);
      continue;
    }
    when.push_back(parse_test(fact, *op, value));
    check_words(when.back(), value);
  }
}

}  // namespace

When parse_when(const Item& at, const Allowed& allowed) {
  When when;
  for (const Item& value : at.members("tests")) {
    auto [message, hint] = objection(value->key, allowed, true);
    if (!message.empty()) value.fault(std::move(message), std::move(hint));
    parse_tests(value->key, value, when);
  }
  return when;
}

std::vector<When> parse_whens(const Item& at, const Allowed& allowed) {
  std::vector<When> all;
  for (const Item& one : at.elements("conditions")) all.push_back(parse_when(one, allowed));
  return all;
}

std::string parse_template(const Item& at, const Allowed& allowed) {
  std::string text = at.text();
  if (broken_dollar(text) != std::string::npos) {
    at.fault("a '$' starts neither ${fact} nor $$", "write $$ for a dollar sign");
    return text;
  }
  for (const std::string& name : facts_in({text, Template::Each::once, ""})) {
    auto [message, hint] = objection(name, allowed, false);
    if (!message.empty()) at.fault(std::move(message), std::move(hint));
  }
  return text;
}

}  // namespace hpclaunch::profile
