#pragma once
// Which node a launcher says that it has lost, in what it writes. Pure.
#include <string>
#include <string_view>
#include <utility>
#include <vector>

#include "hpclaunch/launcher_traits.h"
#include "hpclaunch/sys.h"

namespace hpclaunch::sys::supervised {

class LostNode {
 public:
  explicit LostNode(std::vector<TerminationPolicy::NameInText> texts) : texts_(std::move(texts)) {}

  /// In pieces of any size, each with the UNIX time at which it came. The first name counts.
  void feed(std::string_view bytes, double now);
  const std::string& name() const { return name_; }  ///< "n3"; "" while there is none
  double at() const { return at_; }                  ///< when it was read

  /// The node of that name, where all of its ranks are silent; nullptr: none of these.
  const SilentRanks* among(const std::vector<SilentRanks>& silent) const;

 private:
  void read(std::string_view line);

  std::vector<TerminationPolicy::NameInText> texts_;
  std::string open_;  // the beginning of a line
  std::string name_;
  double at_ = 0;
};

}  // namespace hpclaunch::sys::supervised
