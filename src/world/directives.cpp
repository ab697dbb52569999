#include "world/directives.h"

#include <fmt/format.h>

#include <algorithm>
#include <optional>

#include "hpclaunch/launcher.h"
#include "hpclaunch/text.h"

namespace hpclaunch::job {

namespace {

// "--mem=0", "-l select=2", "-q debug"
GivenOption option_of(const std::string& directive) {
  const bool resource = directive.starts_with("-l ");
  const std::size_t end =
      std::min(directive.find('='), resource ? directive.npos : directive.find(' '));
  return {directive.substr(0, end), end < directive.size() ? directive.substr(end + 1) : ""};
}

std::optional<BrokenRelation> broken_directive(std::string_view system,
                                               const std::vector<std::string>& directives,
                                               bool complete) {
  std::vector<GivenOption> options;
  for (const std::string& one : directives) options.push_back(option_of(one));
  for (BrokenRelation& one : Relations(system, "job").broken(options))
    if (!one.ignored && (complete || one.second != BrokenRelation::kNone)) return std::move(one);
  return std::nullopt;
}

}  // namespace

bool is_replaced(std::string_view system, const std::string& directive,
                 const std::vector<std::string>& typed) {
  return std::ranges::any_of(typed, [&](const std::string& one) {
    return broken_directive(system, {directive, one}, false).has_value();
  });
}

Status check_directives(const Scheduler& system, const std::vector<std::string>& directives) {
  const auto broken = broken_directive(system.name, directives, true);
  if (!broken) return Done{};
  const std::string& first = directives[broken->first];
  if (broken->second == BrokenRelation::kNone)
    return Error{ErrorKind::usage,
                 fmt::format("{} needs {}", first, joined(broken->needed, " or ")),
                 fmt::format("--batch={}=VALUE, or omit {}", broken->needed.front(), first)};
  return Error{ErrorKind::usage,
               fmt::format("{} refuses {} together with {}",
                           system.submit.substr(0, system.submit.find(' ')), first,
                           directives[broken->second]),
               "omit one of them"};
}

}  // namespace hpclaunch::job
