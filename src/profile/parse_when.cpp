#include <fmt/format.h>

#include <algorithm>
#include <array>

#include "facts.h"
#include "hpclaunch/text.h"
#include "profile/reader.h"

namespace hpclaunch::profile {
namespace {

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

/// What the author of ">4" means: {"gt": 4}; "" for other texts.
std::string meant(std::string_view text) {
  const Operator* found = nullptr;  // the one with the longest sign: ">=4" is not "> =4"
  for (const Operator& one : kOperators)
    if (one.kind <= Operator::Kind::order && text.starts_with(one.sign) &&
        (found == nullptr || one.sign.size() > found->sign.size()))
      found = &one;
  if (found == nullptr) return "";
  const std::string_view rest = trim(text.substr(found->sign.size()));
  if (rest.empty() || rest[0] < '0' || rest[0] > '9') return "";
  const std::string_view quote = parse_natural(rest) ? "" : "\"";
  return fmt::format(R"(write {{"{0}": {1}{2}{1}}})", found->name, quote, rest);
}

/// Values that the fact never has; the first of several is reported.
void check_values(const Test& test, const Item& at) {
  const FactInfo* fact = find_fact(test.fact);
  const bool equal = test.op == Test::Op::eq || test.op == Test::Op::ne;
  const bool pattern = test.op == Test::Op::like || test.op == Test::Op::unlike;
  if (fact == nullptr || pattern) return;
  for (const std::string& value : test.values) {
    if (value.empty()) continue;
    const bool no_number = fact->kind >= FactInfo::Kind::number && !parse_natural(value);
    const bool version = fact->kind == FactInfo::Kind::version;
    const std::string hint = no_number || version ? meant(value) : "";
    if (no_number)
      return at.fault(fmt::format("\"{}\" is a whole number, never {}", test.fact, shown(value)),
                      hint.empty() ? R"(write 4, [4, 8] or {"ge": 4, "le": 8})" : hint);
    if (version && !hint.empty())
      return at.fault(fmt::format("\"{}\" is a version, never {}", test.fact, shown(value)), hint);
    if (equal && !fact->words.empty() && std::ranges::count(fact->words, value) == 0)
      return at.fault(fmt::format("\"{}\" is never {}", test.fact, shown(value)),
                      suggestion_or_all(value, fact->words));
  }
}

void parse_tests(const std::string& fact, const Item& at, When& when) {
  const std::size_t problems_before = at.context().count();
  if (at->kind != Json::Kind::object) {
    when.push_back({fact, Test::Op::eq, plain_values(at)});
    if (at.context().count() == problems_before) check_values(when.back(), at);
    return;
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
    if (at.context().count() == problems_before) check_values(when.back(), value);
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
