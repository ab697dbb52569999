#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "parse.h"

namespace hpclaunch::profile {
namespace {

/// "low-high" or "n".
void parse_width(Object& object, Binding& binding) {
  const Item at = object.find("cores", binding.split ? Need::optional : Need::required);
  if (binding.split) return;
  const std::string text = object.context().text(at);
  const std::size_t dash = text.find('-');
  const auto low = parse_natural(std::string_view(text).substr(0, dash), kMaxOffset);
  const auto high = dash == std::string::npos
                        ? low
                        : parse_natural(std::string_view(text).substr(dash + 1), kMaxOffset);
  if (low && high && *low <= *high) {
    binding.low = static_cast<int>(*low);
    binding.high = static_cast<int>(*high);
  } else if (!text.empty()) {
    object.context().fault(at, fmt::format("{} is not a core range", shown(text)),
                           "write it like \"0-3\"");
  }
}

std::vector<int> parse_numbers(Context& context, const Item& at, std::string_view of_what) {
  std::vector<int> numbers;
  for (const Item& item : context.elements(at, of_what))
    numbers.push_back(context.whole(item, 0, kMaxOffset));
  return numbers;
}

/// One list of bases for all groups, or a list of such lists.
std::vector<std::vector<int>> parse_at(Object& object) {
  const Item at = object.find("at");
  if (!at) return {};
  Context& context = object.context();
  const bool nested = at.json->kind == Json::Kind::array && !at.json->items.empty() &&
                      at.json->items[0].kind == Json::Kind::array;
  if (!nested) return {parse_numbers(context, at, "bases")};
  std::vector<std::vector<int>> lists;
  for (const Item& item : context.elements(at, "lists")) {
    lists.push_back(parse_numbers(context, item, "bases"));
    if (!lists.back().empty() && lists.back().size() != lists.front().size()) {
      context.fault(item,
                    fmt::format("{} here, and {} in the first list",
                                counted(static_cast<long>(lists.back().size()), "base"),
                                lists.front().size()),
                    "every group has as many ranks: make the lists equally long");
    }
  }
  return lists;
}

std::vector<int> parse_order(Object& object) {
  const Item at = object.find("groups");
  std::vector<int> order = parse_numbers(object.context(), at, "groups");
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end()) {
    object.context().fault(at, fmt::format("group {} appears twice", *twice),
                           "name each group once");
  }
  return order;
}

std::vector<Binding::Role> parse_roles(Object& binding) {
  std::vector<Binding::Role> roles;
  Context& context = binding.context();
  for (const auto& [name, value] : binding.members("roles", "roles")) {
    if (!is_word(name)) {
      context.fault(value, fmt::format("{} is not a valid name", shown(name)),
                    "use letters, digits, '-', '.', '_' and '+'");
    }
    Binding::Role& role = roles.emplace_back();
    role.name = name;
    Object::inside(context, value, [&](Object& object) {
      role.from_base = object.choice("from", kRoleOrigins) != "group";
      role.first = object.whole("first", 0, kMaxOffset, std::nullopt);
      role.stride = object.whole("stride", 0, kMaxOffset, 0);
      if (role.from_base)
        object.refuse("stride", "the rank's base moves already", "add \"from\": \"group\"");
    });
  }
  return roles;
}

void refuse_contradictions(Object& object, const Binding& binding) {
  for (const char* key : {"first", "stride", "at_least"}) {
    if (!binding.at.empty()) object.refuse(key, "\"at\" names every base", "remove one of the two");
  }
  if (!binding.split) return;
  for (const char* key : {"stride", "cores", "at", "at_least"})
    object.refuse(key, "\"split\" shares all cores evenly", "remove one of the two");
}

Binding::Per parse_per(Object& object) {
  const std::string per = object.choice("per", kGroups);
  if (per == "node") return Binding::Per::node;
  if (per == "numa") return Binding::Per::numa;
  return per == "l3" ? Binding::Per::l3 : Binding::Per::package;
}

}  // namespace

Binding parse_binding(Object& object) {
  Binding binding;
  binding.id = object.word("id", Need::required);
  binding.when = parse_when(object, {});
  binding.per = parse_per(object);
  binding.first = object.whole("first", 0, kMaxOffset, 0);
  binding.stride = object.whole("stride", 0, kMaxOffset, 1);
  binding.at_least = object.whole("at_least", 0, kMaxOffset, 0);
  binding.at = parse_at(object);
  binding.split = object.truth("split");
  parse_width(object, binding);
  binding.siblings = object.truth("siblings");
  binding.groups = parse_order(object);
  binding.interleave = object.truth("interleave");
  binding.roles = parse_roles(object);
  binding.origin = parse_origin(object, Need::required);
  refuse_contradictions(object, binding);
  return binding;
}

}  // namespace hpclaunch::profile
