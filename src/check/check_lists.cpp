#include "check_lists.h"

#include <fmt/format.h>

#include "hpclaunch/text.h"

namespace hpclaunch {

namespace {

// The value of a variable on every rank; nullptr where it differs or is not set.
const std::string* everywhere(const Plan& plan, const EnvSnapshot& env, const char* name) {
  const Setting* setting = plan.find_env(name);
  return setting == nullptr ? env.find(name) : std::get_if<std::string>(&setting->value());
}

// Entries of "1,4-7": 5. nullopt for text that is no such list.
std::optional<long> entries(std::string_view list) {
  long count = 0;
  for (const std::string_view piece : split(list, ',')) {
    const std::size_t dash = piece.find('-');
    const auto first = parse_natural(trim(piece.substr(0, dash)));
    const auto last =
        dash == std::string_view::npos ? first : parse_natural(trim(piece.substr(dash + 1)));
    if (!first || !last || *last < *first) return std::nullopt;
    count += *last - *first + 1;
  }
  return count;
}

}  // namespace

// Source: oneCCL src/common/env/env.cpp, parse_affinity: a list of any other length is an exception.
void check_lists(const Plan& plan, const EnvSnapshot& env, std::vector<Diagnostic>& diagnostics) {
  constexpr const char* kName = "CCL_WORKER_AFFINITY";
  const std::string* list = everywhere(plan, env, kName);
  if (list == nullptr || list->empty()) return;
  const std::optional<long> have = entries(*list);
  if (!have) return;
  const std::string* count = everywhere(plan, env, "CCL_WORKER_COUNT");
  const long workers = count == nullptr ? 1 : parse_natural(trim(*count)).value_or(1);
  for (const NodeClass& node : plan.classes) {
    const long ranks = static_cast<long>(node.ranks.size());
    if (*have == ranks * workers) continue;
    diagnostics.push_back(
        {"list-length", Severity::error,
         fmt::format("{} has {}, but oneCCL needs {}: {} on a node with {} each", kName,
                     *have == 1 ? "1 entry" : fmt::format("{} entries", *have), ranks * workers,
                     counted(ranks, "rank"), counted(workers, "worker")),
         fmt::format("--unset {}", kName)});
    return;
  }
}

}  // namespace hpclaunch
