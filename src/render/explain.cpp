#include <fmt/format.h>

#include <algorithm>
#include <utility>

#include "hpclaunch/render.h"
#include "text.h"

namespace hpclaunch {

using namespace render;

namespace {

constexpr int kVerdict = 12;      // "  overridden", the widest
constexpr int kWidestValue = 40;  // wider ones get what follows them on a line of its own
constexpr int kLongest = 4000;    // a list of hosts; --json has all of it

/// Items of one node class, neighbours with equal ones taken together: "0", "2-5", and the item.
std::vector<std::pair<std::string, std::string>> item_runs(const std::vector<std::string>& items) {
  std::vector<std::pair<std::string, std::string>> runs;
  for (std::size_t first = 0; first < items.size();) {
    std::size_t last = first;
    while (last + 1 < items.size() && items[last + 1] == items[first]) ++last;
    runs.emplace_back(last == first ? fmt::format("{}", first) : fmt::format("{}-{}", first, last),
                      value_text(items[first]));
    first = last + 1;
  }
  return runs;
}

/// A value in its row, and the lines below it where it is too wide.
struct Shown {
  std::string inline_text;
  std::vector<std::string> below;
};

Shown shown(const Setting& setting, const Decision& decision) {
  const std::string text = shorten(shown_value(setting.name, decision), kLongest, Style{});
  const auto* items = std::get_if<PerRank>(&decision.value);
  if (items == nullptr || columns(text) <= kWidestValue || is_hidden(setting.name, decision))
    return {text, {}};
  Shown out{"one per local rank:", {}};
  for (std::size_t c = 0; c < items->items.size(); ++c) {
    const std::string prefix = items->items.size() > 1 ? fmt::format("class {} ", c) : "";
    const auto runs = item_runs(items->items[c]);
    std::size_t widest = 0;
    for (const auto& [ranks, item] : runs) widest = std::max(widest, ranks.size());
    for (const auto& [ranks, item] : runs)
      out.below.push_back(fmt::format("{}{:>{}}  {}", prefix, ranks, widest, item));
  }
  return out;
}

// The reason, its rule, condition and source.
std::vector<std::string> reasons(const Decision& decision) {
  std::vector<std::string> lines;
  if (!decision.why.empty()) lines.push_back(decision.why);
  if (!decision.rule.empty())
    lines.push_back(fmt::format("rule {} of profile {}", decision.rule, decision.profile));
  if (!decision.condition.empty()) lines.push_back("because " + decision.condition);
  if (!decision.source.empty())
    lines.push_back(fmt::format(
        "source {}{}", decision.source,
        decision.checked.empty() ? "" : fmt::format(", checked on {}", decision.checked)));
  if (!decision.printed.empty())
    lines.push_back(fmt::format("the source has: {}{}", decision.printed,
                                decision.printed_why.empty() ? "" : "; " + decision.printed_why));
  if (!decision.disputed.empty()) lines.push_back("another source: " + decision.disputed);
  return lines;
}

std::string block(const Setting& setting, const Style& style) {
  int layer_width = 0;
  int value_width = 0;
  for (const Decision& decision : setting.history) {
    layer_width = std::max(layer_width, columns(to_string(decision.layer)));
    const int value = columns(shown(setting, decision).inline_text);
    if (value <= kWidestValue) value_width = std::max(value_width, value);
  }
  const std::string indent(kVerdict + 2, ' ');
  std::string text = tinted(printable(setting.name), Tone::strong, style) + "\n";
  for (auto d = setting.history.rbegin(); d != setting.history.rend(); ++d) {
    const bool last = d == setting.history.rbegin();
    const Shown value = shown(setting, *d);
    const std::string where = where_text(d->where);
    std::string row = pad_right(last ? "  value" : "  overridden", kVerdict) + "  " +
                      pad_right(to_string(d->layer), layer_width) + "  ";
    const std::string whole =
        fmt::format("{}{}  {}", row, pad_right(value.inline_text, value_width), where);
    const bool wide =
        columns(value.inline_text) > kWidestValue || columns(whole) > std::max(style.width, 60);
    if (wide || where.empty())
      row += value.inline_text;
    else
      row = whole;
    const auto tone = [&](const std::string& line) {
      return (last ? line : tinted(line, Tone::faint, style)) + "\n";
    };
    text += tone(row);
    const int room = std::max(style.width - static_cast<int>(indent.size()), 20);
    for (const std::string& line : value.below) {
      std::string lead = indent;
      for (const std::string& piece :
           columns(line) <= room ? std::vector{line} : wrap(line, room - 4, ' '))
        text += tone(std::exchange(lead, std::string(indent.size() + 4, ' ')) + piece);
    }
    if (wide && !where.empty()) text += tone(indent + where);
    for (const std::string& reason : reasons(*d))
      for (const std::string& line : wrap(printable(reason), room, ' '))
        text += tinted(indent + line, Tone::faint, style) + "\n";
  }
  return text;
}

}  // namespace

std::string explain(const Plan& plan, const std::vector<std::string>& names, const Style& style) {
  std::vector<const Setting*> wanted;
  if (names.empty()) {
    for (const Setting& setting : plan.explanation.choices) wanted.push_back(&setting);
    for (const Setting& setting : plan.environment.settings) wanted.push_back(&setting);
  }
  for (const std::string& name : names)
    for (const Setting* setting : {plan.find_choice(name), plan.find_env(name)})
      if (setting != nullptr) wanted.push_back(setting);
  std::string text;
  for (const Setting* setting : wanted) text += (text.empty() ? "" : "\n") + block(*setting, style);
  return text;
}

}  // namespace hpclaunch
