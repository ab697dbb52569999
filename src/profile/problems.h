#pragma once
// What is wrong with one file, with places for editors.
#include <cstddef>
#include <string>
#include <string_view>
#include <vector>

#include "hpclaunch/result.h"

namespace hpclaunch::profile {

class Problems {
 public:
  Problems(std::string_view text, std::string file);

  /// `mark` is an offset in bytes into the text.
  void add(std::size_t mark, std::string pointer, std::string message, std::string hint = {});
  SourceRef place(std::size_t mark, std::string pointer) const;

  const std::vector<Error>& list() const { return list_; }
  bool full() const;

  /// In the order of the text; after kMaxProblems one more that reports the cut.
  std::vector<Error> take();

 private:
  std::string file_;
  std::vector<std::size_t> line_starts_;
  std::vector<Error> list_;
};

/// In double quotes, short enough for one line, control characters and broken UTF-8 as '?'.
std::string shown(std::string_view text);

}  // namespace hpclaunch::profile
