#include "value.h"

#include <fmt/format.h>

#include "hpclaunch/render.h"
#include "text.h"

namespace hpclaunch {

namespace {

std::string item_text(const std::string& item) {
  return item.empty() ? "''" : render::printable(item);
}

std::string joined(const PerRank& value) {
  std::string text;
  for (std::size_t c = 0; c < value.items.size(); ++c) {
    if (c > 0) text += " | ";
    for (std::size_t r = 0; r < value.items[c].size(); ++r)
      text += (r > 0 ? " / " : "") + item_text(value.items[c][r]);
  }
  return text;
}

}  // namespace

std::string value_text(const Value& value) {
  if (std::holds_alternative<Unset>(value)) return "(unset)";
  if (const auto* text = std::get_if<std::string>(&value)) return item_text(*text);
  if (const auto* items = std::get_if<PerRank>(&value)) return joined(*items);
  return fmt::format("<{}>", to_string(std::get<RankFact>(value)));
}

namespace render {

std::vector<ItemRun> item_runs(const std::vector<std::string>& items) {
  std::vector<ItemRun> runs;
  for (std::size_t first = 0; first < items.size();) {
    std::size_t last = first;
    while (last + 1 < items.size() && items[last + 1] == items[first]) ++last;
    runs.push_back({last == first ? fmt::format("{}", first) : fmt::format("{}-{}", first, last),
                    item_text(items[first])});
    first = last + 1;
  }
  return runs;
}

std::string shown_value(std::string_view name, const Decision& decision) {
  return is_hidden(name, decision) ? std::string(kHidden) : value_text(decision.value);
}

}  // namespace render

}  // namespace hpclaunch
