// What the program carries: every profile reads without a problem and resolves among the others.
#include <algorithm>
#include <fstream>
#include <functional>
#include <iterator>

#include "hpclaunch/profile.h"
#include "support/catch.h"

using namespace hpclaunch;

namespace {

Result<Profile> find_builtin(const std::string& name) {
  for (const BuiltinProfile& one : builtin_profiles()) {
    if (one.name == name) return parse_profile(one.text, std::string(one.file)).profile;
  }
  return Error{ErrorKind::not_found, "no profile is named \"" + name + "\"", "", {}};
}

}  // namespace

TEST_CASE("built-in profiles are sorted, and are the files byte for byte") {
  const auto all = builtin_profiles();
  CHECK(std::ranges::adjacent_find(all, std::greater_equal<>(), &BuiltinProfile::name) ==
        all.end());  // none twice
  for (const BuiltinProfile& one : all) {
    INFO(one.file);
    constexpr std::string_view kPrefix = "builtin:";
    REQUIRE(one.file.starts_with(kPrefix));
    CHECK(one.file.ends_with("/" + std::string(one.name) + ".json"));
    std::ifstream in(HPCLAUNCH_SOURCE_DIR "/" + std::string(one.file.substr(kPrefix.size())),
                     std::ios::binary);
    CHECK(std::string{std::istreambuf_iterator<char>(in), {}} == one.text);
  }
}

TEST_CASE("built-in profiles have no problem, alone and resolved") {
  for (const BuiltinProfile& one : builtin_profiles()) {
    INFO(one.file);
    const ParsedProfile parsed = parse_profile(one.text, std::string(one.file));
    for (const Error& problem : parsed.problems)
      FAIL_CHECK(problem.where->line << ":" << problem.where->column << ": " << problem.message);
    CHECK(parsed.profile.name == one.name);
    const std::string packed = pack_profile(parsed.profile);
    CHECK(packed == one.parsed);
    CHECK(pack_profile(unpack_profile(packed)) == packed);
    CHECK(parsed.profile.part == (one.file.find("/part/") != std::string_view::npos));
    const Result<Profile> resolved = resolve_profile(parsed.profile, find_builtin);
    if (!resolved) FAIL_CHECK(resolved.error().message);
    const std::span<const BuiltinSignal> signals = one.detect;
    REQUIRE(signals.size() == parsed.profile.detect.size());
    for (std::size_t i = 0; i < signals.size(); ++i) {
      CHECK(signals[i].env == parsed.profile.detect[i].env);
      CHECK(signals[i].like == parsed.profile.detect[i].like);
      CHECK(signals[i].proves == parsed.profile.detect[i].proves);
    }
  }
}
