#include "cli/catalogue.h"

#include <algorithm>

#include "cli/entry.h"
#include "hpclaunch/knowledge.h"

namespace hpclaunch::cli {

namespace {

constexpr std::size_t kLabel = 13;  // where explain's own reasons begin

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
  for (const auto& [label, fact] : knowledge::describe(name))
    text += entry(label, fact, kLabel, width);
  return text;
}

std::string catalogue_doubt(const std::string& name) {
  const knowledge::Verdict verdict = knowledge::check(name, "");
  return verdict.about == knowledge::Verdict::About::unknown_name ? verdict.suggestion : "";
}

}  // namespace hpclaunch::cli
