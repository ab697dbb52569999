#include "sys/supervised/lost_node.h"

#include <algorithm>

#include "hpclaunch/hosts.h"
#include "hpclaunch/text.h"

namespace hpclaunch::sys::supervised {

void LostNode::feed(std::string_view bytes, double now) {
  constexpr std::size_t kLongest = 512;
  while (name_.empty() && !texts_.empty() && !bytes.empty()) {
    const std::size_t end = bytes.find('\n');
    open_ += bytes.substr(0, std::min(end, kLongest - std::min(kLongest, open_.size())));
    if (end == std::string_view::npos) return;
    bytes.remove_prefix(end + 1);
    at_ = now;
    read(open_);
    open_.clear();
  }
}

void LostNode::read(std::string_view line) {
  for (const TerminationPolicy::NameInText& text : texts_) {
    const std::size_t mark = line.find(text.mark);
    const std::size_t before = line.find(text.before, std::min(mark, line.size()));
    if (mark == std::string_view::npos || before == std::string_view::npos) continue;
    const std::string_view rest = trim(line.substr(before + text.before.size()));
    name_ = rest.substr(0, rest.find_first_of(" \t,"));
    return;
  }
}

const SilentRanks* LostNode::among(const std::vector<SilentRanks>& silent) const {
  const auto is_it = [&](const SilentRanks& node) {
    return node.whole_node && same_host(node.host, name_);
  };
  const auto found = std::ranges::find_if(silent, is_it);
  return name_.empty() || found == silent.end() ? nullptr : &*found;
}

}  // namespace hpclaunch::sys::supervised
