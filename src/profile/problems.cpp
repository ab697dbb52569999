#include "problems.h"

#include <algorithm>
#include <utility>

#include "names.h"

namespace hpclaunch::profile {

Problems::Problems(std::string_view text, std::string file)
    : file_(std::move(file)), line_starts_{0} {
  for (std::size_t i = 0; i < text.size(); ++i) {
    if (text[i] == '\n') line_starts_.push_back(i + 1);
  }
}

bool Problems::full() const { return list_.size() >= kMaxProblems; }

SourceRef Problems::place(std::size_t mark, std::string pointer) const {
  const auto after = std::upper_bound(line_starts_.begin(), line_starts_.end(), mark);
  const auto line = static_cast<std::size_t>(after - line_starts_.begin());
  const std::size_t column = mark - line_starts_[line - 1] + 1;
  return {file_, static_cast<int>(line), static_cast<int>(column), std::move(pointer)};
}

void Problems::add(std::size_t mark, std::string pointer, std::string message, std::string hint) {
  if (full()) return;
  list_.push_back(
      {ErrorKind::invalid, std::move(message), std::move(hint), place(mark, std::move(pointer))});
}

std::vector<Error> Problems::take() {
  const bool cut = full();
  const auto at = [](const Error& error) {
    const SourceRef where = error.where.value_or(SourceRef{});
    return std::pair(where.line, where.column);
  };
  std::stable_sort(list_.begin(), list_.end(),
                   [&](const Error& a, const Error& b) { return at(a) < at(b); });
  if (cut) {
    list_.push_back({ErrorKind::invalid, "too many problems: the rest of the file was not reported",
                     "fix those above first", SourceRef{file_, 0, 0, ""}});
  }
  return std::move(list_);
}

std::string shown(std::string_view text) {
  constexpr std::size_t kShown = 80;
  std::string out = "\"";
  for (const char c : text.substr(0, kShown)) out += c < ' ' || c > '~' ? '?' : c;
  return out + (text.size() > kShown ? "...\"" : "\"");
}

}  // namespace hpclaunch::profile
