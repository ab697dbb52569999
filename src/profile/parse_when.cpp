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

std::string plain_value(Context& context, const Item& at) {
  switch (at.json->kind) {
    case Json::Kind::integer:
      return at.json->text;
    case Json::Kind::string:
      return at.json->text.empty() ? std::string() : context.text(at);  // "" is a value
    case Json::Kind::boolean:
      context.fault(at, "a fact is a text or a whole number, not true or false",
                    R"(write "yes" or "no", or {"set": true})");
      return "";
    default:
      context.fault(
          at, fmt::format("expected a string or a whole number, found {}", noun(at.json->kind)),
          at.json->kind == Json::Kind::number ? "write a version in quotes" : "");
      return "";
  }
}

std::vector<std::string> plain_values(Context& context, const Item& at) {
  if (at.json->kind != Json::Kind::array) return {plain_value(context, at)};
  std::vector<std::string> values;
  for (const Item& item : context.elements(at, "values"))
    values.push_back(plain_value(context, item));
  return values;
}

std::string order_value(Context& context, const Item& at) {
  std::string value;
  if (at.json->kind == Json::Kind::array || at.json->kind == Json::Kind::object) {
    context.fault(at, fmt::format("an order needs one value, found {}", noun(at.json->kind)));
    return value;
  }
  value = plain_value(context, at);
  const bool text = at.json->kind == Json::Kind::string;
  if (text && (value.empty() || value[0] < '0' || value[0] > '9')) {
    context.fault(at, fmt::format("{} is neither a whole number nor a version", shown(value)),
                  "write 16, or \"2025.3\"");
  }
  return value;
}

std::vector<std::string> patterns(Context& context, const Item& at) {
  std::vector<std::string> out;
  if (at.json->kind == Json::Kind::array) {
    out = context.texts(at, "patterns");
  } else {
    out.push_back(context.text(at));
  }
  if (std::any_of(out.begin(), out.end(),
                  [](const std::string& p) { return p.size() > kMaxPattern; })) {
    context.fault(at, fmt::format("a pattern has more than {} bytes", kMaxPattern));
  }
  return out;
}

Test parse_test(Context& context, const std::string& fact, const Operator& op, const Item& at) {
  Test test{fact, op.op, {}};
  switch (op.kind) {
    case Operator::Kind::equal:
      test.values = plain_values(context, at);
      break;
    case Operator::Kind::order:
      test.values = {order_value(context, at)};
      break;
    case Operator::Kind::pattern:
      test.values = patterns(context, at);
      break;
    case Operator::Kind::set:
      if (!context.truth(at)) test.op = Test::Op::is_unset;
      break;
  }
  return test;
}

/// Facts of which every value is known: a test for another one would never hold.
std::span<const std::string_view> values_of(std::string_view fact) {
  static constexpr std::array<std::string_view, 2> kYesNo = {"yes", "no"};
  static constexpr std::array<std::string_view, 7> kNone = {"pbs",    "slurm", "flux", "lsf",
                                                            "cobalt", "sge",   "none"};
  if (fact == "cores_divide" || fact == "even" || fact == "in_job" || fact == "whole_node")
    return kYesNo;
  if (fact == "gpu_view") return kGpuViews;
  if (fact == "scheduler") return kNone;
  if (fact == "launcher") return kLauncherNames;
  return {};
}

void check_words(Context& context, const Test& test, const Item& at) {
  const auto known = values_of(test.fact);
  if (known.empty() || (test.op != Test::Op::eq && test.op != Test::Op::ne)) return;
  for (const std::string& value : test.values) {
    if (value.empty() || std::find(known.begin(), known.end(), value) != known.end()) continue;
    context.fault(at, fmt::format("\"{}\" is never {}", test.fact, shown(value)),
                  suggestion_or_all(value, known));
  }
}

void parse_tests(Context& context, const std::string& fact, const Item& at, When& when) {
  if (at.json->kind != Json::Kind::object) {
    when.push_back({fact, Test::Op::eq, plain_values(context, at)});
    return check_words(context, when.back(), at);
  }
  for (const auto& [name, value] : context.members(at, "operators")) {
    const auto op = std::ranges::find(kOperators, std::string_view(name), &Operator::name);
    if (op == kOperators.end()) {
      std::vector<std::string> candidates;
      candidates.reserve(std::size(kOperators));
      for (const Operator& one : kOperators) candidates.emplace_back(one.name);
      const std::string hint = suggestion(name, candidates);
      context.fault(value, fmt::format("unknown operator {}", shown(name)),
                    hint.empty() ? "operators: eq ne lt le gt ge like unlike set" : hint);
      continue;
    }
    when.push_back(parse_test(context, fact, *op, value));
    check_words(context, when.back(), value);
  }
}

}  // namespace

When parse_when(Context& context, const Item& at, const Allowed& allowed) {
  When when;
  for (const auto& [fact, value] : context.members(at, "tests")) {
    auto [message, hint] = objection(fact, allowed, true);
    if (!message.empty()) context.fault(value, std::move(message), std::move(hint));
    parse_tests(context, fact, value, when);
  }
  return when;
}

When parse_when(Object& object, const Allowed& allowed) {
  return parse_when(object.context(), object.find("when"), allowed);
}

std::string parse_template(Context& context, const Item& at, const Allowed& allowed) {
  std::string text = context.text(at);
  if (broken_dollar(text) != std::string::npos) {
    context.fault(at, "a '$' starts neither ${fact} nor $$", "write $$ for a dollar sign");
    return text;
  }
  for (const std::string& name : facts_in({text, Template::Each::once, ""})) {
    auto [message, hint] = objection(name, allowed, false);
    if (!message.empty()) context.fault(at, std::move(message), std::move(hint));
  }
  return text;
}

}  // namespace hpclaunch::profile
