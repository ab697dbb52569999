// Evaluates conditions, and explains which of their tests hold.
#include <fmt/format.h>
#include <fnmatch.h>

#include <algorithm>

#include "facts.h"
#include "hpclaunch/profile.h"
#include "hpclaunch/text.h"

namespace hpclaunch {
namespace {

bool in_order(std::string_view fact, Test::Op op, std::string_view value) {
  const std::optional<int> order = compare_versions(fact, value);
  if (!order) return false;
  if (*order == 0) return op == Test::Op::le || op == Test::Op::ge;
  return (*order < 0) == (op == Test::Op::lt || op == Test::Op::le);
}

bool matches(const std::string& pattern, const std::string& text) {
  return fnmatch(pattern.c_str(), text.c_str(), 0) == 0;
}

/// The first of the test's values that the fact equals or matches.
const std::string* first_met(const Test& test, const std::string& fact) {
  const bool pattern = test.op == Test::Op::like || test.op == Test::Op::unlike;
  for (const std::string& value : test.values) {
    if (pattern ? matches(value, fact) : value == fact) return &value;
  }
  return nullptr;
}

std::string_view symbol(Test::Op op) {
  const auto at = std::ranges::find(profile::kOperators, op, &profile::Operator::op);
  return at == profile::kOperators.end() ? "=" : at->sign;
}

std::string listed(const std::vector<std::string>& values) {
  std::string out;
  for (const std::string& value : values) {
    if (!out.empty()) out += " or ";
    out += value.empty() ? "\"\"" : value;
  }
  return out;
}

}  // namespace

bool holds(const Test& test, const Facts& facts) {
  const std::optional<std::string> fact = facts.find(test.fact);
  switch (test.op) {
    case Test::Op::is_set:
      return fact.has_value();
    case Test::Op::is_unset:
      return !fact.has_value();
    case Test::Op::eq:
    case Test::Op::like:
      return fact && first_met(test, *fact) != nullptr;
    case Test::Op::ne:
    case Test::Op::unlike:
      return !fact || first_met(test, *fact) == nullptr;
    default:
      return fact && !test.values.empty() && in_order(*fact, test.op, test.values.front());
  }
}

bool holds(const When& when, const Facts& facts) {
  return std::ranges::all_of(when, [&](const Test& test) { return holds(test, facts); });
}

bool is_late(const When& when) {
  return std::ranges::any_of(when, [](const Test& t) { return t.fact.starts_with("value."); });
}

std::string when_text(const When& when) {
  std::string out;
  for (const Test& test : when) {
    if (!out.empty()) out += ", ";
    const std::string_view sign = test.op == Test::Op::ne ? "is not" : symbol(test.op);
    out += test.op == Test::Op::is_set ? test.fact + " is set"
           : test.op == Test::Op::is_unset
               ? test.fact + " is not set"
               : fmt::format("{} {} {}", test.fact, sign, listed(test.values));
  }
  return out;
}

std::string met(const When& when, const Facts& facts) {
  std::string out;
  for (const Test& test : when) {
    if (!out.empty()) out += ", ";
    const std::optional<std::string> fact = facts.find(test.fact);
    if (!fact) {
      out += test.fact + " is not set";
      continue;
    }
    out += fmt::format("{} = {}", test.fact, fact->empty() ? "\"\"" : *fact);
    if (test.op == Test::Op::eq || test.op == Test::Op::is_set) continue;
    const std::string* one = test.op == Test::Op::like ? first_met(test, *fact) : nullptr;
    out += fmt::format(" {} {}", symbol(test.op), one != nullptr ? *one : listed(test.values));
  }
  return out;
}

std::string unmet(const When& when, const Facts& facts) {
  std::string out;
  for (const Test& test : when) {
    if (holds(test, facts)) continue;
    if (!out.empty()) out += "; ";
    if (test.op == Test::Op::is_set || test.op == Test::Op::is_unset) {
      out += fmt::format("{} {}", test.fact,
                         test.op == Test::Op::is_set ? "set, and it is not" : "not set, and it is");
      continue;
    }
    const std::optional<std::string> fact = facts.find(test.fact);
    out += fmt::format("{} {} {}, and it is {}", test.fact, symbol(test.op), listed(test.values),
                       !fact           ? "not set"
                       : fact->empty() ? "empty"
                                       : *fact);
  }
  return out;
}

}  // namespace hpclaunch
