#include <fmt/format.h>

#include <algorithm>
#include <tuple>

#include "hpclaunch/lint.h"
#include "hpclaunch/text.h"

namespace hpclaunch::lint {

std::string fixed(std::string_view text, const std::vector<Finding>& findings) {
  std::vector<std::vector<Edit>> groups;  // of a finding: all of them or none
  for (const Finding& one : findings)
    if (one.certain && !one.edits.empty()) groups.push_back(one.edits);
  std::ranges::stable_sort(groups, {}, [](const std::vector<Edit>& edits) { return edits.size(); });
  std::vector<Edit> taken;
  const auto before = [](const Edit& a, const Edit& b) {
    return std::tie(a.begin, a.end) < std::tie(b.begin, b.end);
  };
  // Text may be put in front of what is removed, but only once.
  const auto clash = [](const Edit& first, const Edit& second) {
    return first.end > second.begin || (first.begin == second.begin && first.end == second.end);
  };
  for (const std::vector<Edit>& group : groups) {
    const bool bad = std::ranges::any_of(group, [&](const Edit& one) {
      const auto next = std::lower_bound(taken.begin(), taken.end(), one, before);
      return (next != taken.end() && clash(one, *next)) ||
             (next != taken.begin() && clash(*std::prev(next), one));
    });
    if (bad) continue;
    taken.insert(taken.end(), group.begin(), group.end());
    std::ranges::sort(taken, before);
  }
  std::string result;
  std::size_t at = 0;
  for (const Edit& one : taken) {
    result.append(text.substr(at, one.begin - at)).append(one.text);
    at = one.end;
  }
  return result.append(text.substr(at));
}

// The lines that differ are known by what is equal around them: fixes are few and small, so that each run of changed
// lines is found by the next pair of equal lines.
std::string unified_diff(std::string_view before, std::string_view after, const std::string& file) {
  if (before == after) return "";
  const std::vector<std::string_view> a = split(before, '\n');
  const std::vector<std::string_view> b = split(after, '\n');
  struct Hunk {
    std::size_t a, a_end, b, b_end;
  };
  std::vector<Hunk> hunks;
  std::size_t i = 0, j = 0;
  while (i < a.size() || j < b.size()) {
    if (i < a.size() && j < b.size() && a[i] == b[j]) {
      ++i;
      ++j;
      continue;
    }
    std::size_t x = i, y = j;
    for (std::size_t far = 1; x == i && y == j; ++far) {
      if (i + far >= a.size() && j + far >= b.size()) {
        x = a.size();
        y = b.size();
        break;
      }
      for (std::size_t k = 0; k <= far && x == i && y == j; ++k) {
        const std::size_t p = std::min(i + far, a.size()), q = std::min(j + k, b.size());
        if (p < a.size() && q < b.size() && a[p] == b[q])
          x = p, y = q;
        else if (i + k < a.size() && j + far < b.size() && a[i + k] == b[j + far])
          x = i + k, y = j + far;
      }
    }
    hunks.push_back({i, x, j, y});
    i = x;
    j = y;
  }
  std::string text = fmt::format("--- {}\n+++ {}\n", file, file);
  constexpr std::size_t kAround = 3;
  for (std::size_t h = 0; h < hunks.size();) {
    std::size_t last = h;
    while (last + 1 < hunks.size() && hunks[last + 1].a - hunks[last].a_end <= 2 * kAround) ++last;
    const std::size_t lead = std::min(kAround, hunks[h].a);
    const bool newline = a.back().empty();
    const std::size_t a_lines = a.size() - (newline ? 1 : 0);
    const std::size_t tail = std::min(kAround, a_lines - std::min(a_lines, hunks[last].a_end));
    const std::size_t first_a = hunks[h].a - lead, first_b = hunks[h].b - lead;
    text += fmt::format("@@ -{},{} +{},{} @@\n", first_a + 1, hunks[last].a_end + tail - first_a,
                        first_b + 1, hunks[last].b_end + tail - first_b);
    std::size_t at = first_a;
    for (std::size_t k = h; k <= last; ++k) {
      for (; at < hunks[k].a; ++at) text += fmt::format(" {}\n", a[at]);
      for (; at < hunks[k].a_end; ++at) text += fmt::format("-{}\n", a[at]);
      for (std::size_t n = hunks[k].b; n < hunks[k].b_end; ++n) text += fmt::format("+{}\n", b[n]);
    }
    for (std::size_t n = 0; n < tail; ++n, ++at) text += fmt::format(" {}\n", a[at]);
    h = last + 1;
  }
  return text;
}

}  // namespace hpclaunch::lint
