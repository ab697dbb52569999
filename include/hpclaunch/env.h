#pragma once
#include <map>
#include <optional>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch {

/// The process environment as a value, captured once in main. Entries keep their order and bytes, also
/// those without '=' and repeated names. Look-ups return the first entry of a name, as getenv does.
class EnvSnapshot {
 public:
  EnvSnapshot() = default;
  explicit EnvSnapshot(std::vector<std::string> entries);  ///< "NAME=value" each

  /// nullopt when not set; a pointer into this snapshot otherwise (an empty value is a value).
  const std::string* find(std::string_view name) const;
  std::string get(std::string_view name, std::string_view otherwise = "") const;
  bool has(std::string_view name) const { return find(name) != nullptr; }

  const std::vector<std::string>& entries() const { return entries_; }
  const std::map<std::string, std::string, std::less<>>& values() const { return values_; }

  /// A copy with `changes` applied: a value sets (in place when the name exists, else at the end,
  /// ascending), nullopt removes every entry of that name. Other entries are unchanged.
  EnvSnapshot with(const std::map<std::string, std::optional<std::string>>& changes) const;

 private:
  std::vector<std::string> entries_;
  std::map<std::string, std::string, std::less<>> values_;
};

/// Lines NAME=VALUE of a dotenv file, in order: comments, `export`, 'literal' and "with \\n escapes" values. Nothing is
/// expanded. Errors: `invalid` with line and column.
struct DotenvEntry {
  std::string name, value;
  int line = 0;
};
Result<std::vector<DotenvEntry>> parse_dotenv(std::string_view text, const std::string& file);

}  // namespace hpclaunch
