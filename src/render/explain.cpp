#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/render.h"
#include "text.h"

namespace hpclaunch {

namespace {

constexpr int kVerdict = 12;      // "  overridden", the widest
constexpr int kWidestValue = 40;  // wider ones get what follows them on a line of its own

/// A value in its row, and the lines below it where it is too wide.
struct Shown {
  std::string inline_text;
  std::vector<std::string> below;
};

Shown shown(const Setting& setting, const Decision& decision) {
  const std::string text = render::shown_value(setting.name, decision);
  const auto* items = std::get_if<PerRank>(&decision.value);
  if (items == nullptr || render::columns(text) <= kWidestValue ||
      render::is_hidden(setting.name, decision))
    return {text, {}};
  Shown out{"one per local rank:", {}};
  for (std::size_t c = 0; c < items->items.size(); ++c) {
    const std::string prefix = items->items.size() > 1 ? fmt::format("class {} ", c) : "";
    const std::vector<render::ItemRun> runs = render::item_runs(items->items[c]);
    std::size_t widest = 0;
    for (const render::ItemRun& run : runs) widest = std::max(widest, run.local_ranks.size());
    for (const render::ItemRun& run : runs)
      out.below.push_back(fmt::format("{}{:>{}}  {}", prefix, run.local_ranks, widest, run.item));
  }
  return out;
}

struct Widths {
  int layer = 0;
  int value = 0;
};

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
  Widths widths;
  for (const Decision& decision : setting.history) {
    widths.layer = std::max(widths.layer, render::columns(to_string(decision.layer)));
    const int value = render::columns(shown(setting, decision).inline_text);
    if (value <= kWidestValue) widths.value = std::max(widths.value, value);
  }
  const std::string indent(kVerdict + 2, ' ');
  std::string text =
      render::tinted(render::printable(setting.name), render::Tone::strong, style) + "\n";
  for (auto d = setting.history.rbegin(); d != setting.history.rend(); ++d) {
    const bool last = d == setting.history.rbegin();
    const Shown value = shown(setting, *d);
    const std::string where = render::where_text(d->where);
    std::string row = render::pad_right(last ? "  value" : "  overridden", kVerdict) + "  " +
                      render::pad_right(to_string(d->layer), widths.layer) + "  ";
    const bool wide = render::columns(value.inline_text) > kWidestValue;
    if (wide || where.empty())
      row += value.inline_text;
    else
      row += render::pad_right(value.inline_text, widths.value) + "  " + where;
    const auto tone = [&](const std::string& line) {
      return (last ? line : render::tinted(line, render::Tone::faint, style)) + "\n";
    };
    text += tone(row);
    for (const std::string& line : value.below) text += tone(indent + line);
    if (wide && !where.empty()) text += tone(indent + where);
    const int room = std::max(style.width - static_cast<int>(indent.size()), 20);
    for (const std::string& reason : reasons(*d))
      for (const std::string& line : render::wrap(render::printable(reason), room, ' '))
        text += render::tinted(indent + line, render::Tone::faint, style) + "\n";
  }
  return text;
}

}  // namespace

std::string explain(const Plan& plan, const std::vector<std::string>& names, const Style& style) {
  std::vector<const Setting*> wanted;
  if (names.empty()) {
    for (const Setting& setting : plan.choices) wanted.push_back(&setting);
    for (const Setting& setting : plan.env) wanted.push_back(&setting);
  }
  for (const std::string& name : names)
    for (const Setting* setting : {plan.find_choice(name), plan.find_env(name)})
      if (setting != nullptr) wanted.push_back(setting);
  std::string text;
  for (const Setting* setting : wanted) text += (text.empty() ? "" : "\n") + block(*setting, style);
  return text;
}

}  // namespace hpclaunch
