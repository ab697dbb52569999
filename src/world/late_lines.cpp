// Lines that a text of a job begins with: what would come between the plan and the ranks there is removed.
#include <fmt/format.h>
#include <fmt/ranges.h>

#include <algorithm>

#include "hpclaunch/render.h"
#include "world/later.h"

namespace hpclaunch::job {

std::string remove_foreign(const std::vector<std::string>& patterns) {
  constexpr int kWidth = 110;
  return fmt::format(
      "# Remove the rank variables of the job's own tasks: programs would take them for these "
      "ranks'.\n"
      "for name in $(env | sed -n 's/^\\([A-Za-z_][A-Za-z_0-9]*\\)=.*/\\1/p'); do\n"
      "  case $name in\n    {}) unset \"$name\" ;;\n  esac\ndone\n\n",
      fmt::join(render::fill(patterns, kWidth, " | "), " | \\\n    "));
}

std::string without_own(const Late& late, const std::vector<EnvChange>& changes, EnvFormat format) {
  std::string lines;
  const bool shell =
      format == EnvFormat::sh || format == EnvFormat::csh || format == EnvFormat::fish;
  if (late.system == nullptr || !shell) return lines;
  for (const OwnVariable& one : late.system->own_variables) {
    const auto yields = [&](const EnvChange& change) {
      return change.name == one.name && change.yields;
    };
    if (one.same_as.empty() || std::ranges::none_of(changes, yields)) continue;
    const char* form =
        format == EnvFormat::csh
            ? "if ( \"`env printenv {0}`\" == \"`env printenv {1}`\" ) unsetenv {0} ;\n"
        : format == EnvFormat::fish
            ? "test \"${0}\" = \"${1}\"; and set -e {0} ;\n"
            : "[ \"${{{0}-}}\" != \"${{{1}-}}\" ] || unset {0}  # {2} sets it to {1}\n";
    lines += fmt::format(fmt::runtime(form), one.name, one.same_as, late.system->title);
  }
  return lines;
}

}  // namespace hpclaunch::job
