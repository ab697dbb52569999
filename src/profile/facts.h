#pragma once
// Facts, templates and operators of conditions: what parsing needs beside profile.h.
#include <array>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/profile.h"

namespace hpclaunch::profile {

/// The operators of conditions: as written in a profile, and as shown in messages.
struct Operator {
  std::string_view name;
  Test::Op op;
  enum class Kind { equal, order, pattern, set } kind;
  std::string_view sign;
};
inline constexpr std::array kOperators = std::to_array<Operator>({
    {"eq", Test::Op::eq, Operator::Kind::equal, "="},
    {"ne", Test::Op::ne, Operator::Kind::equal, "!="},
    {"lt", Test::Op::lt, Operator::Kind::order, "<"},
    {"le", Test::Op::le, Operator::Kind::order, "<="},
    {"gt", Test::Op::gt, Operator::Kind::order, ">"},
    {"ge", Test::Op::ge, Operator::Kind::order, ">="},
    {"like", Test::Op::like, Operator::Kind::pattern, "like"},
    {"unlike", Test::Op::unlike, Operator::Kind::pattern, "unlike"},
    {"set", Test::Op::is_set, Operator::Kind::set, "set"},
});

/// One value per rank: values may use it, conditions may not.
bool is_rank_fact(const FactInfo& fact);

/// Candidates for a misspelt `word`; groups take over what follows its first dot.
std::vector<std::string> fact_candidates(std::string_view word);

/// Offset of a '$' that starts neither ${...} nor $$; npos when there is none.
std::size_t broken_dollar(std::string_view text);

}  // namespace hpclaunch::profile
