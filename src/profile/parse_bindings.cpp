#include <fmt/format.h>

#include <algorithm>

#include "hpclaunch/text.h"
#include "parse.h"

namespace hpclaunch::profile {
namespace {

/// "low-high" or "n".
void parse_width(const Item& at, Binding& binding) {
  const std::string text = at.text();
  const Result<CpuSet> range = CpuSet::parse(text);
  if (range && text.find(',') == std::string::npos) {
    binding.low = range->first();
    binding.high = range->last();
  } else if (!text.empty()) {
    at.fault(fmt::format("{} is not a core range", shown(text)), "write it like \"0-3\"");
  }
}

std::vector<int> parse_numbers(const Item& at, std::string_view of_what) {
  std::vector<int> numbers;
  for (const Item& item : at.elements(of_what)) numbers.push_back(item.whole(0, kMaxOffset));
  return numbers;
}

/// One list of bases for all groups, or a list of such lists.
std::vector<std::vector<int>> parse_at(const Item& at) {
  const std::vector<Item> items = at.items();
  const bool nested =
      at->kind == Json::Kind::array &&
      std::ranges::any_of(items, [](const Item& one) { return one->kind == Json::Kind::array; });
  if (!at) return {};
  if (!nested) return {parse_numbers(at, "bases")};
  std::vector<std::vector<int>> lists;
  for (const Item& item : items) {
    lists.push_back(parse_numbers(item, "bases"));
    if (!lists.back().empty() && !lists.front().empty() &&
        lists.back().size() != lists.front().size())
      item.fault(fmt::format("{} here, and {} in the first list",
                             counted(lists.back().size(), "base"), lists.front().size()),
                 "every group has as many ranks: make the lists equally long");
  }
  return lists;
}

std::vector<int> parse_order(const Item& at) {
  const std::size_t problems_before = at.context().count();
  std::vector<int> order = parse_numbers(at, "groups");
  std::vector<int> sorted = order;
  std::sort(sorted.begin(), sorted.end());
  const auto twice = std::adjacent_find(sorted.begin(), sorted.end());
  if (twice != sorted.end() && at.context().count() == problems_before)
    at.fault(fmt::format("group {} appears twice", *twice), "name each group once");
  return order;
}

Binding::Role parse_role(const Item& at) {
  Binding::Role role;
  role.name = at->key;
  if (!is_word(role.name))
    at.fault(fmt::format("{} is not a valid name", shown(role.name)),
             "use letters, digits, '-', '.', '_' and '+'");
  const Item from = at["from"];
  const std::string origin = from.choice(kRoleOrigins);
  role.from_base = origin != "group";
  role.first = at.need("first").whole(0, kMaxOffset);
  role.stride = at["stride"].whole(0, kMaxOffset, 0);
  if (role.from_base && (!from || !origin.empty()))
    at.refuse("stride", "the rank's base moves already", "add \"from\": \"group\"");
  return role;
}

void refuse_contradictions(const Item& at, const Binding& binding) {
  const auto refuse = [&](std::initializer_list<const char*> keys, const char* because) {
    for (const char* key : keys) at.refuse(key, because, "remove one of the two");
  };
  if (!binding.at.empty()) refuse({"first", "stride", "at_least"}, "\"at\" names every base");
  if (binding.across)
    refuse({"groups", "interleave", "roles"}, "with \"across\" each rank has cores of every group");
  if (binding.split)
    refuse({"stride", "cores", "at", "at_least"}, "\"split\" shares all cores evenly");
}

/// kGroups has the order of Binding::Per.
Binding::Per parse_per(const Item& at) {
  const auto known = std::ranges::find(kGroups, at.choice(kGroups));
  if (known == kGroups.end()) return Binding::Per::package;
  return static_cast<Binding::Per>(known - kGroups.begin());
}

}  // namespace

Binding parse_binding(const Item& at) {
  Binding binding;
  binding.id = at.need("id").word();
  binding.when = parse_when(at["when"], {});
  binding.per = parse_per(at["per"]);
  binding.first = at["first"].whole(0, kMaxOffset, 0);
  binding.stride = at["stride"].whole(0, kMaxOffset, 1);
  binding.at_least = at["at_least"].whole(0, kMaxOffset, 0);
  binding.at = parse_at(at["at"]);
  binding.across = at["across"].truth();
  const Item split = at["split"];
  binding.split = split.truth();
  const bool unsplit = !binding.split && (!split || split->kind == Json::Kind::boolean);
  if (binding.across && unsplit)
    at["across"].fault("\"across\" says how cores are split", "add \"split\": true");
  if (unsplit && !at["cores"] && at->kind == Json::Kind::object)
    at.fault("\"cores\" is missing", R"(add "cores" or "split")");
  if (unsplit) parse_width(at["cores"], binding);
  binding.siblings = at["siblings"].truth();
  binding.groups = parse_order(at["groups"]);
  binding.interleave = at["interleave"].truth();
  for (const Item& role : at["roles"].members("roles")) binding.roles.push_back(parse_role(role));
  binding.origin = parse_origin(at, Why::required);
  refuse_contradictions(at, binding);
  return binding;
}

}  // namespace hpclaunch::profile
