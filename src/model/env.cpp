#include "hpclaunch/env.h"

#include <set>

namespace hpclaunch {

namespace {

std::string_view name_of(std::string_view entry) { return entry.substr(0, entry.find('=')); }

}  // namespace

EnvSnapshot::EnvSnapshot(std::vector<std::string> entries) : entries_(std::move(entries)) {
  for (const std::string& entry : entries_) {
    const std::size_t equals = entry.find('=');
    if (equals == std::string::npos) continue;
    values_.emplace(entry.substr(0, equals), entry.substr(equals + 1));
  }
}

const std::string* EnvSnapshot::find(std::string_view name) const {
  const auto at = values_.find(name);
  return at == values_.end() ? nullptr : &at->second;
}

std::string EnvSnapshot::get(std::string_view name, std::string_view otherwise) const {
  const std::string* value = find(name);
  return value != nullptr ? *value : std::string(otherwise);
}

EnvSnapshot EnvSnapshot::with(
    const std::map<std::string, std::optional<std::string>>& changes) const {
  std::vector<std::string> result;
  std::set<std::string, std::less<>> placed;
  for (const std::string& entry : entries_) {
    const auto change = changes.find(std::string(name_of(entry)));
    if (change == changes.end() || entry.find('=') == std::string::npos) {
      result.push_back(entry);
    } else if (change->second && placed.insert(change->first).second) {
      result.push_back(change->first + "=" + *change->second);
    }
  }
  for (const auto& [name, value] : changes)
    if (value && !placed.contains(name)) result.push_back(name + "=" + *value);
  return EnvSnapshot(std::move(result));
}

}  // namespace hpclaunch
