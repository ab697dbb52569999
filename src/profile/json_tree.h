#pragma once
// JSON as a tree that keeps the place of each value and the order of members.
#include <cstdint>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "problems.h"

namespace hpclaunch::profile {

struct Member;

struct Json {
  enum class Kind { null, boolean, integer, number, string, array, object };
  Kind kind = Kind::null;
  bool truth = false;
  std::int64_t whole = 0;       ///< of an integer
  std::string text;             ///< of a string; of a number as it was written
  std::size_t mark = 0;         ///< offset of its key, or of the value itself where it has none
  std::vector<Json> items;      ///< of an array
  std::vector<Member> members;  ///< of an object; no key twice

  const Json* find(std::string_view key) const;
};

struct Member {
  std::string key;
  Json value;
};

/// "a string", "an object", ...
std::string_view noun(Json::Kind kind);

/// One token of an RFC 6901 pointer with its '/' before it.
std::string step(std::string_view key);
std::string step(std::size_t index);

/// Reports broken JSON, text that is too long or too deep, and repeated keys (of which the
/// first is kept). `//` comments are skipped. nullopt when there is no tree.
std::optional<Json> parse_tree(std::string_view text, Problems& problems);

}  // namespace hpclaunch::profile
