#include "cli/catalogue.h"

#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/knowledge.h"
#include "hpclaunch/text.h"

namespace hpclaunch::cli {

namespace {

constexpr std::size_t kLabel = 13;  // where explain's own reasons begin

// The catalogue is plain ASCII, so bytes are columns.
std::string wrapped(const std::string& label, std::string_view text, std::size_t width) {
  std::string out = fmt::format("  {:<{}}", label, kLabel - 2);
  std::size_t column = kLabel;
  for (const std::string_view word : split(text, ' ')) {
    const bool first = column == kLabel;
    if (!first && column + 1 + word.size() > width) {
      out += "\n" + std::string(kLabel, ' ');
      column = kLabel;
    } else if (!first) {
      out += ' ';
      ++column;
    }
    out += word;
    column += word.size();
  }
  return out + "\n";
}

bool only_doubtful(const std::string& name) {
  return !knowledge::find(name) &&
         knowledge::check(name, "").about == knowledge::Verdict::About::unknown_name &&
         !knowledge::find_misspelling(name);
}

}  // namespace

std::string catalogue_text(const std::string& name, const Style& style) {
  if (only_doubtful(name)) return "";
  const auto width = static_cast<std::size_t>(std::max(style.width, 60));
  std::string text;
  for (const auto& [label, fact] : knowledge::describe(name)) text += wrapped(label, fact, width);
  return text;
}

std::string catalogue_doubt(const std::string& name) {
  const knowledge::Verdict verdict = knowledge::check(name, "");
  return verdict.about == knowledge::Verdict::About::unknown_name ? verdict.suggestion : "";
}

}  // namespace hpclaunch::cli
