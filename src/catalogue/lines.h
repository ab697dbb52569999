#pragma once
// JSON with the line of each member, which the library forgets.
#include <map>
#include <nlohmann/json.hpp>
#include <string>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::catalogue {

struct Document {
  std::string file;
  nlohmann::json root;
  std::map<std::string, int> lines;  ///< "/member/member" -> line, from 1
  std::map<std::string, std::vector<std::string>>
      order;  ///< object -> its members as they stand there

  /// Of the member, or of the innermost object around it that has one.
  SourceRef where(std::string path) const;
};

/// Errors: `invalid` for text that is no JSON (`//` comments are allowed) or has a member twice.
Result<Document> parse(const std::string& file, const std::string& text);

}  // namespace hpclaunch::catalogue
