// Profiles: problems are values with a place in the text, and what hpclaunch does not need changes nothing else.
#include "hpclaunch/profile.h"

#include <algorithm>
#include <tuple>

#include "fuzz/expect.h"

using namespace hpclaunch;
using fuzz::expect;

extern "C" int LLVMFuzzerTestOneInput(const std::uint8_t* data, std::size_t size) {
  const std::string text(fuzz::text_of(data, size));
  const auto lines = std::ranges::count(text, '\n') + 1;
  const ParsedProfile all = parse_profile(text, "fuzz.json");
  std::tuple last(0, 0);
  for (const Error& problem : all.problems) {
    expect(problem.where && problem.where->line <= lines, "a place in the text", problem.message);
    const std::tuple place(problem.where->line, problem.where->column);
    const bool cut = &problem == &all.problems.back() && all.problems.size() > 100;
    expect(cut || last <= place, "problems in the order of the text", problem.message);
    last = place;
  }
  const ParsedProfile start = parse_profile(text, "fuzz.json", Cases::skip);
  if (!all.problems.empty()) return 0;
  expect(start.problems.empty(), "fewer problems without cases");
  expect(start.profile.rules.size() == all.profile.rules.size(), "the same rules without cases");
  const auto none = [](const std::string&) -> Result<Profile> {
    return Error{ErrorKind::not_found, "there is no other"};
  };
  if (const Result<Profile> once = resolve_profile(all.profile, none)) {
    const Result<Profile> twice = resolve_profile(*once, none);
    expect(twice && twice->rules.size() == once->rules.size(), "resolved is resolved");
  }
  return parse_profile(text + "\n// end", "fuzz.json").problems.empty() ? 0 : 1;
}
